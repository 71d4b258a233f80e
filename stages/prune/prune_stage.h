#pragma once
// The stage `prune`: removes layers.

#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/model.h"
#include "stages/prune/layer_set.h"

namespace ggufmill {

struct PruneOptions {
  LayerSet layers;  // at least one
  Origin origin;    // position of `layers`
};

// Creates the stage. It removes the tensors of these layers, which have "blk.N." anywhere in their names, so also those
// of encoders ("v.blk.N."); renumbers the other layers without gaps; and updates the metadata: see prune_metadata().
// Layers missing in the model are an error, and so is pruning all layers. Data attached to a tensor (importance) is
// kept. The tensors are those of llama-quantize --prune-layers.
std::unique_ptr<Stage> make_prune_stage(PruneOptions options);
// Returns the specification of `prune: {layers: [6, 7]}` or `{layers: '0-3,10'}`.
StageSpec prune_stage();

// Number of layers according to a model.
struct LayerCount {
  std::string architecture;      // prefix of the keys
  std::uint64_t layers = 0;      // ARCHITECTURE.block_count, or more if tensors have higher numbers
  std::uint64_t own_layers = 0;  // ARCHITECTURE.block_count; without it, `layers`
};

// Determines the layers from metadata and from `highest`, the highest layer number among the tensors plus one. Fails
// with exit code 4 if general.architecture is missing or the count is invalid.
Result<LayerCount> layer_count(const Metadata& metadata, std::uint64_t highest);

// Returns the number of a model's layers as used by the stage: from its metadata, or from its tensors if these have
// more.
Result<LayerCount> count_layers(const Model& model);

// Updates the keys of the architecture for the remaining layers:
// - arrays of numbers or booleans with one item per layer lose the items of pruned layers;
// - counts of first or last layers (leading_dense_block_count, nextn_predict_layers, attention.shared_kv_layers)
//   decrease by the number of pruned layers among them;
// - block_count becomes a uint32 and moves to the end, as the reference writes it.
// Adds a warning for each key that defines a pattern by layer number, unless only the last layers are pruned. The
// reference updates only block_count.
void prune_metadata(const LayerCount& before, const LayerSet& pruned, Model& model);

}  // namespace ggufmill
