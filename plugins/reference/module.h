#pragma once
// The description of a module, from the arrays of kernels of its families.

#include <algorithm>
#include <array>
#include <cstddef>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::reference {

// Returns all kernels of several arrays.
template <std::size_t... kSizes>
constexpr auto join(const std::array<ggufmill_kernel, kSizes>&... arrays) {
  std::array<ggufmill_kernel, (kSizes + ...)> all{};
  auto* to = all.data();
  ((to = std::ranges::copy(arrays, to).out), ...);
  return all;
}

// Returns the description of a module for an instruction set, which refers to `kernels`.
template <std::size_t kCount>
constexpr ggufmill_module module_of(const std::array<ggufmill_kernel, kCount>& kernels, const char* name,
                                    const char* isa) {
  return {
      GGUFMILL_MAGIC,
      sizeof(ggufmill_module),
      GGUFMILL_ABI_MAJOR,
      GGUFMILL_ABI_MINOR,
      sizeof(ggufmill_kernel),
      kCount,
      name,
      GGUFMILL_VERSION,
      isa,
      "",  // no features beyond those of the instruction set
      kernels.data(),
  };
}

}  // namespace ggufmill::reference
