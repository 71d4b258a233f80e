#pragma once
// The stage `prune`: leaves layers out.

#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/model.h"
#include "stages/prune/layer_set.h"

namespace ggufmill {

struct PruneOptions {
  LayerSet layers;  // at least one
  Origin origin;    // of `layers`
};

// The tensors `blk.N.*` of these layers are left out, the other layers are numbered anew without gaps, and the metadata
// follows: see prune_metadata(). Layers that the model does not have are refused, and so is pruning all of them. What
// is attached to a tensor (importance) stays with it. Where only the last layers go, the result is that of
// llama-quantize --prune-layers, which can do no other.
std::unique_ptr<Stage> make_prune_stage(PruneOptions options);
// `prune: {layers: [6, 7]}` or `{layers: '0-3,10'}`.
StageSpec prune_stage();

// What a model says of its layers.
struct LayerCount {
  std::string architecture;  // prefix of the keys
  std::uint64_t layers = 0;  // ARCHITECTURE.block_count, or more where tensors have higher numbers
};

// `highest`: one more than the highest layer number among the tensors. Exit code 4 where general.architecture is
// missing or the count is none.
Result<LayerCount> layer_count(const Metadata& metadata, std::uint64_t highest);

// The layers of a model as the stage counts them: by its metadata, or by its tensors where those have more.
Result<LayerCount> count_layers(const Model& model);

// Brings the keys of the architecture in line with the layers that are left:
// - arrays of numbers or booleans with one item for each layer lose those of the pruned ones;
// - counts of first or last layers (leading_dense_block_count, nextn_predict_layers, attention.shared_kv_layers) go
//   down by the pruned layers among them, where there are any;
// - block_count becomes a uint32 at the end, as the reference writes it.
// A warning for each key that gives a pattern by layer number, unless only the last layers went. The reference changes
// block_count alone.
void prune_metadata(const LayerCount& before, const LayerSet& pruned, Model& model);

}  // namespace ggufmill
