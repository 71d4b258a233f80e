// The description of a module of vector kernels: constant data. Built once per instruction set, which the build
// specifies (GGUFMILL_SIMD_ISA).

#include "plugins/reference/module.h"
#include "plugins/ik/simd/k_types.h"
#include "plugins/ik/simd/ks_types.h"
#include "plugins/ik/simd/kt_types.h"
#include "plugins/ik/simd/llama_types.h"
#include "plugins/ik/simd/simple_types.h"

namespace ggufmill::simd {
namespace {

constexpr auto kKernels = reference::join(kIkKKernels, kIkKsKernels, kIkKtKernels, kIkQ60Kernels, kIkSimpleRowKernels,
                                          kIkScaledKernels, kIkAffineKernels);

}  // namespace
}  // namespace ggufmill::simd

extern "C" GGUFMILL_EXPORT constinit const ggufmill_module ggufmill_kernels_v1 =
    ggufmill::reference::module_of(ggufmill::simd::kKernels, "ik", GGUFMILL_SIMD_ISA);
