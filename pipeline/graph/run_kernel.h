#pragma once
// One call of a kernel, and what its status means.

#include <string>

#include "pipeline/core/error.h"
#include "pipeline/kernels/kernels.h"

namespace ggufmill {

// `tensor` is for messages. Exit code 4 for values that the type cannot hold, 1 for a kernel that fails.
Status run_kernel(const KernelChoice& choice, const ggufmill_call& call, const std::string& tensor);

}  // namespace ggufmill
