// The description of the module: constant data.

#include <algorithm>
#include <array>

#include "plugins/ik/k_types.h"
#include "plugins/ik/ks_types.h"
#include "plugins/ik/kt_types.h"
#include "plugins/ik/llama_types.h"
#include "plugins/ik/simple_types.h"

namespace ggufmill::ik {
namespace {

template <std::size_t... kSizes>
constexpr auto joined(const std::array<ggufmill_kernel, kSizes>&... arrays) {
  std::array<ggufmill_kernel, (kSizes + ...)> all{};
  auto to = all.begin();
  ((to = std::ranges::copy(arrays, to).out), ...);
  return all;
}
constexpr auto kKernels = joined(kKKernels, kKsKernels, kKtKernels, kQ60Kernels, kSimpleRowKernels, kLlamaKernels);

}  // namespace
}  // namespace ggufmill::ik

extern "C" GGUFMILL_EXPORT constinit const ggufmill_module ggufmill_kernels_v1 = {
    GGUFMILL_MAGIC,
    sizeof(ggufmill_module),
    GGUFMILL_ABI_MAJOR,
    GGUFMILL_ABI_MINOR,
    sizeof(ggufmill_kernel),
    ggufmill::ik::kKernels.size(),
    "ik",
    GGUFMILL_VERSION,
    "reference",
    "",
    ggufmill::ik::kKernels.data(),
};
