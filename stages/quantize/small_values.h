#pragma once
// Values of small tensors, such as norms, that an objective depends on.

#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill {

// Reads the values of a tensor of F32 (stored so, or computed from F32, F16 and BF16 alone) with at most
// kMaxSmallValues elements. Other tensors are refused with exit code 4, like sources that cannot be read.
inline constexpr std::uint64_t kMaxSmallValues = 1 << 18;
Result<std::vector<float>> read_small_values(const Expression& tensor);

}  // namespace ggufmill
