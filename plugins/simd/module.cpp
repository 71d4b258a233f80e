// The module description and its single table of kernels, all constant data. Built once per instruction
// set, which the build specifies (GGUFMILL_SIMD_ISA).

#include <array>
#include <cstddef>

#include "plugins/reference/number_types.h"
#include "plugins/simd/bit_types.h"
#include "plugins/simd/float_types.h"
#include "plugins/simd/fp4_types.h"
#include "plugins/simd/iq1_types.h"
#include "plugins/simd/iq2_types.h"
#include "plugins/simd/iq3_types.h"
#include "plugins/simd/iq4_types.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/search_types.h"
#include "plugins/simd/simple_types.h"
#include "plugins/simd/ternary_types.h"

namespace ggufmill::simd {
namespace {

template <std::size_t... kCounts>
constexpr auto join(const std::array<ggufmill_kernel, kCounts>&... families) {
  std::array<ggufmill_kernel, (kCounts + ...)> all{};
  std::size_t count = 0;
  auto append = [&](const auto& family) {
    for (const ggufmill_kernel& kernel : family) all[count++] = kernel;
  };
  (append(families), ...);
  return all;
}

// One line per family.
constexpr auto kKernels = join(  //
    kFloatKernels,               //
    kSimpleKernels,              //
    kKKernels,                   //
    kIq1Kernels,                 //
    kIq2Kernels,                 //
    kIq3Kernels,                 //
    kIq4Kernels,                 //
    kTernaryKernels,             //
    kFp4Kernels,                 //
    kBitKernels,                 //
    reference::kNumberKernels,   //
    kSearchKernels               //
);

}  // namespace
}  // namespace ggufmill::simd

extern "C" GGUFMILL_EXPORT constinit const ggufmill_module ggufmill_kernels_v1 = {
    GGUFMILL_MAGIC,
    sizeof(ggufmill_module),
    GGUFMILL_ABI_MAJOR,
    GGUFMILL_ABI_MINOR,
    sizeof(ggufmill_kernel),
    ggufmill::simd::kKernels.size(),
    "simd",
    GGUFMILL_VERSION,
    GGUFMILL_SIMD_ISA,
    "",  // nothing beyond the instruction set itself
    ggufmill::simd::kKernels.data(),
};
