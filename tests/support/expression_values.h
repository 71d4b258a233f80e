#pragma once
// The values of a tensor expression, element by element as its operations are defined: what the engine's rows and boxes
// must come to.

#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill {

// In the order of memory, columns first. Extents are read from their files: F64, F32, F16, BF16, F8_E4M3, F8_E5M2,
// I8, U8, I32, I64, and U4, whose low half comes first. Casts change no value. Throws std::runtime_error for what it
// does not know.
std::vector<float> expression_values(const Expression& expression);

}  // namespace ggufmill
