#pragma once
// The way back through expressions: the values of a tensor from those of what was made of it.

#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// A tensor of F32 that is not known, for expressions to be made of.
Result<ExpressionRef> unknown_tensor(const Shape& shape);

// Something that was made of an unknown tensor, and where its values are. Both of one shape, but for ones at its end.
struct KnownValues {
  ExpressionRef made;
  ExpressionRef values;
};

// The values of `unknown`, of its shape. All `values` are of one type; where they were computed with they become F32.
// Moved, cut and joined values are put back in their places, what was added is taken away. The error has no place and
// no tensor: an operation that has no way back, or parts of the tensor that nothing is made of.
Result<ExpressionRef> find_values(const ExpressionRef& unknown, const std::vector<KnownValues>& known);

}  // namespace ggufmill::huggingface
