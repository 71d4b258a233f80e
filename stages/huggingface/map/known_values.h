#pragma once
// Inverts expressions: recovers the values of a tensor from the values of the tensors that were made of it.

#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// Returns a placeholder F32 tensor, as an input for expressions.
Result<ExpressionRef> unknown_tensor(const Shape& shape);

// An expression made of an unknown tensor, and its known values. Both have the same shape, except for trailing
// dimensions of 1.
struct KnownValues {
  ExpressionRef made;
  ExpressionRef values;
};

// Returns the values of `unknown`, in its shape. All `values` must have the same type; values that need computation
// become F32. Reordered, sliced and concatenated values are put back in place, and additions, multiplications and
// negated exponentials are inverted. Errors carry neither a place nor a tensor name: an operation that cannot be
// inverted, or parts of the tensor that nothing was made of.
Result<ExpressionRef> find_values(const ExpressionRef& unknown, const std::vector<KnownValues>& known);

}  // namespace ggufmill::huggingface
