#pragma once
// Evaluates a tensor expression element by element, directly from the definitions of its operations, as a reference for
// the rows and boxes of the engine.

#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill {

// Returns the values in memory order, columns first. Extents are read from their files: F64, F32, F16, BF16, F8_E4M3,
// F8_E5M2, I8, U8, I32, I64, and U2 to U6 (lowest bits first). Casts round to F16 and BF16, and do not change the
// values of other types. Throws std::runtime_error for unknown types and operations.
std::vector<float> expression_values(const Expression& expression);

}  // namespace ggufmill
