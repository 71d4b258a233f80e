// The description of the module of plain loops: constant data.

#include "plugins/reference/module.h"
#include "plugins/ik/iq1_rows.h"
#include "plugins/ik/k_types.h"
#include "plugins/ik/ks_types.h"
#include "plugins/ik/kt_types.h"
#include "plugins/ik/llama_types.h"
#include "plugins/ik/simple_types.h"

namespace ggufmill::ik {
namespace {

constexpr auto kKernels =
    reference::join(kKKernels, kKsKernels, kKtKernels, kQ60Kernels, kSimpleRowKernels, kIq1RowKernels, kLlamaKernels);

}  // namespace
}  // namespace ggufmill::ik

extern "C" GGUFMILL_EXPORT constinit const ggufmill_module ggufmill_kernels_v1 =
    ggufmill::reference::module_of(ggufmill::ik::kKernels, "ik", "reference");
