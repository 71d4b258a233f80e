#pragma once
// The way back: a model in GGUF's names and layout as the checkpoint that it came from.

#include "pipeline/core/checkpoint.h"

namespace ggufmill::huggingface {

// Tensors under the names that the map's rules know them by, each as it was there: heads' rows in their order, experts
// one by one, what was cut put together, what was added taken away. Of several names that a rule takes it is the first.
// Tensors that the map computes are left out; those that it left out of the checkpoint do not come back. Types are the
// model's; where values of a quantized tensor are moved, it becomes F32 before it becomes that type.
// Exit code 2 for tensors that no rule makes or that have no way back, with the rule; 4 for a config.json that is wrong
// or of another model.
Result<Model> restore_checkpoint(Model model, const CheckpointOrigin& origin);

}  // namespace ggufmill::huggingface
