#pragma once
// The inverse conversion: turns a model with GGUF's names and layout back into the checkpoint that it came from.

#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// Returns the tensors under the names that the map's rules use, in their original form: rows of heads in their
// original order, experts as individual tensors, slices rejoined, additions undone. If a rule accepts several names,
// the first one is used. Tensors that the map computes are omitted; tensors that it dropped from the checkpoint are
// not restored. Types are the model's. If values of a quantized tensor are moved, they are converted to F32 and back
// to that type.
// Without a path of config.json, it is made from the metadata (restored_config()), and the model gets the note
// kRestoredConfig.
// Exit code 2 for tensors that no rule makes or whose conversion cannot be inverted, with the rule; 4 for a
// config.json that is invalid or belongs to another model.
Result<Model> restore_checkpoint(Model model, const CheckpointOrigin& origin);

// ---- the inverse of expressions: the values of a tensor from those of the tensors that were made of it ----

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
