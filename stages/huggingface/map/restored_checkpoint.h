#pragma once
// The inverse conversion: turns a model with GGUF's names and layout back into the checkpoint that it came from.

#include "pipeline/core/checkpoint.h"

namespace ggufmill::huggingface {

// Returns the tensors under the names that the map's rules use, in their original form: rows of heads in their
// original order, experts as individual tensors, slices rejoined, additions undone. If a rule accepts several names,
// the first one is used. Tensors that the map computes are omitted; tensors that it dropped from the checkpoint are
// not restored. Types are the model's. If values of a quantized tensor are moved, they are converted to F32 and back
// to that type.
// Exit code 2 for tensors that no rule makes or whose conversion cannot be inverted, with the rule; 4 for a
// config.json that is invalid or belongs to another model.
Result<Model> restore_checkpoint(Model model, const CheckpointOrigin& origin);

}  // namespace ggufmill::huggingface
