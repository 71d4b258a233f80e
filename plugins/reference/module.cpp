// The module description and its single table of kernels, all constant data. Compiled twice: into the program, as
// ggufmill_reference_module, and into the loadable module, as ggufmill_kernels_v1.

#include "plugins/reference/module.h"
#include "plugins/reference/bit_types.h"
#include "plugins/reference/fp4_types.h"
#include "plugins/reference/iq1_types.h"
#include "plugins/reference/iq4_types.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/lattice_types.h"
#include "plugins/reference/number_types.h"
#include "plugins/reference/reference.h"
#include "plugins/reference/search_types.h"
#include "plugins/reference/simple_types.h"
#include "plugins/reference/ternary_types.h"

namespace ggufmill::reference {
namespace {

constexpr auto kKernels = join(kFloatKernels, kSimpleKernels, kKKernels, kIq1Kernels, kLatticeKernels, kIq4Kernels,
                               kTernaryKernels, kFp4Kernels, kBitKernels, kNumberKernels, kSearchKernels);

}  // namespace
}  // namespace ggufmill::reference

#ifdef GGUFMILL_LOADABLE
#define GGUFMILL_MODULE ggufmill_kernels_v1
#else
#define GGUFMILL_MODULE ggufmill_reference_module
#endif

extern "C" GGUFMILL_EXPORT constinit const ggufmill_module GGUFMILL_MODULE =
    ggufmill::reference::module_of(ggufmill::reference::kKernels, "reference", "reference");
