// The module description and its single table of kernels, all constant data. Built once per instruction
// set, which the build specifies (GGUFMILL_SIMD_ISA).

#include "plugins/reference/module.h"
#include "plugins/reference/number_types.h"
#include "plugins/simd/crumb_types.h"
#include "plugins/simd/float_types.h"
#include "plugins/simd/iq1_types.h"
#include "plugins/simd/iq2_types.h"
#include "plugins/simd/iq3_types.h"
#include "plugins/simd/iq4_types.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/search_types.h"
#include "plugins/simd/simple_types.h"

namespace ggufmill::simd {
namespace {

// One line per family.
constexpr auto kKernels = reference::join(  //
    kFloatKernels,                          //
    kSimpleKernels,                         //
    kKKernels,                              //
    kIq1Kernels,                            //
    kIq2Kernels,                            //
    kIq3Kernels,                            //
    kTableKernels,                          //
    kCrumbKernels,                          //
    reference::kNumberKernels,              //
    kSearchKernels                          //
);

}  // namespace
}  // namespace ggufmill::simd

extern "C" GGUFMILL_EXPORT constinit const ggufmill_module ggufmill_kernels_v1 =
    ggufmill::reference::module_of(ggufmill::simd::kKernels, "simd", GGUFMILL_SIMD_ISA);
