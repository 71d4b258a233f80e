#pragma once
// The stage `prune`: leaves layers out.

#include "pipeline/core/stage.h"
#include "stages/prune/layer_metadata.h"

namespace ggufmill {

// `prune: {layers: [6, 7]}` or `{layers: '0-3,10'}`: the tensors `blk.N.*` of these layers are left out, the other
// layers are numbered anew without gaps, and the metadata follows (layer_metadata.h). Layers that the model does not
// have are refused, and so is pruning all of them. What is attached to a tensor (importance) stays with it.
// Where only the last layers go, the result is that of llama-quantize --prune-layers, which can do no other.
StageSpec prune_stage();

// The layers of a model as the stage counts them: by its metadata, or by its tensors where those have more.
Result<LayerCount> count_layers(const Model& model);

}  // namespace ggufmill
