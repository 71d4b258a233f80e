// The description of the module: constant data.

#include "plugins/ik/k_types.h"

extern "C" GGUFMILL_EXPORT constinit const ggufmill_module ggufmill_kernels_v1 = {
    GGUFMILL_MAGIC,
    sizeof(ggufmill_module),
    GGUFMILL_ABI_MAJOR,
    GGUFMILL_ABI_MINOR,
    sizeof(ggufmill_kernel),
    ggufmill::ik::kKKernels.size(),
    "ik",
    GGUFMILL_VERSION,
    "reference",
    "",
    ggufmill::ik::kKKernels.data(),
};
