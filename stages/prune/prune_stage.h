#pragma once
// The stage `prune`: leaves layers out.

#include <memory>

#include "pipeline/config/registry.h"
#include "stages/prune/layer_metadata.h"
#include "stages/prune/layer_set.h"

namespace ggufmill {

struct PruneOptions {
  LayerSet layers;  // at least one
  Origin origin;    // of `layers`
};

// The tensors `blk.N.*` of these layers are left out, the other layers are numbered anew without gaps, and the metadata
// follows (layer_metadata.h). Layers that the model does not have are refused, and so is pruning all of them. What is
// attached to a tensor (importance) stays with it. Where only the last layers go, the result is that of
// llama-quantize --prune-layers, which can do no other.
std::unique_ptr<Stage> make_prune_stage(PruneOptions options);
// `prune: {layers: [6, 7]}` or `{layers: '0-3,10'}`.
StageSpec prune_stage();

// The layers of a model as the stage counts them: by its metadata, or by its tensors where those have more.
Result<LayerCount> count_layers(const Model& model);

}  // namespace ggufmill
