#include "stages/prune/prune_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "stages/prune/layer_set.h"

namespace ggufmill {
namespace {

std::string with_layer(const std::string& name, std::uint64_t layer) {
  const std::size_t dot = name.find('.');
  return fmt::format("{}.{}{}", name.substr(0, dot), layer, name.substr(name.find('.', dot + 1)));
}

std::uint64_t highest_layer(const std::vector<Tensor>& tensors) {
  std::uint64_t highest = 0;
  for (const Tensor& tensor : tensors)
    if (const auto layer = layer_of(tensor.name)) highest = std::max(highest, *layer + 1);
  return highest;
}

// Names the file that the metadata is of.
Error in_file(Error error, const Model& model) {
  if (!model.files.empty()) error.where = model.files.front()->path;
  return error;
}

class PruneStage : public Stage {
 public:
  explicit PruneStage(PruneOptions options) : origin_(std::move(options.origin)), pruned_(std::move(options.layers)) {}

  Result<Model> apply(Model model) const override {
    BOOST_OUTCOME_TRY(const LayerCount count, count_layers(model));
    BOOST_OUTCOME_TRY(check(count.layers));
    std::vector<Tensor> kept;
    for (Tensor& tensor : model.tensors) {
      const auto layer = layer_of(tensor.name);
      if (layer && pruned_.contains(*layer)) continue;
      if (const std::uint64_t gone = layer ? pruned_.count(0, *layer) : 0)
        tensor.name = with_layer(tensor.name, *layer - gone);
      kept.push_back(std::move(tensor));
    }
    model.tensors = std::move(kept);
    prune_metadata(count, pruned_, model);
    const std::uint64_t pruned_before = model.notes.get(notes::kPrunedLayers);
    model.notes.set(notes::kPrunedLayers, pruned_before + pruned_.count(0, count.layers));
    return model;
  }

 private:
  Status check(std::uint64_t layers) const {
    if (layers == 0) return error_at(origin_, "the model has no layers to prune: no tensor 'blk.N.*'");
    if (pruned_.last() >= layers)
      return error_at(origin_, fmt::format("layer {} does not exist", pruned_.last()),
                      fmt::format("the model has {} layers, 0 to {}", layers, layers - 1));
    if (pruned_.count(0, layers) == layers)
      return error_at(origin_, fmt::format("all {} layers would be pruned", layers), "leave at least one");
    return ok();
  }

  Origin origin_;
  LayerSet pruned_;
};

std::string fault_in_layers(const ConfigNode& node) {
  const Status added = LayerSet().add(node.scalar);
  return added ? std::string() : added.error().what;
}

Result<std::unique_ptr<Stage>> make(const ConfigNode& value) {
  const ConfigNode& node = *value.find("layers");
  PruneOptions options{{}, origin_of(node)};
  const std::vector<ConfigNode> one{node};
  for (const ConfigNode& item : node.is_list() ? node.items : one)
    if (const Status added = options.layers.add(item.scalar); !added)
      return error_at(item, added.error().what, "write numbers and ranges: [6, 7] or '0-3,10'");
  return make_prune_stage(std::move(options));
}

}  // namespace

std::unique_ptr<Stage> make_prune_stage(PruneOptions options) {
  return std::make_unique<PruneStage>(std::move(options));
}

Result<LayerCount> count_layers(const Model& model) {
  auto count = layer_count(model.metadata, highest_layer(model.tensors));
  if (!count) return in_file(count.error(), model);
  return count;
}

StageSpec prune_stage() {
  const FieldSpec text{
      .doc = "Numbers and ranges, both ends included.", .example = "'0-3,10'", .check = fault_in_layers};
  const FieldSpec list{
      .kind = FieldKind::kList, .doc = "Such numbers and ranges.", .example = "[6, 7]", .item = {text}, .minimum = 1};
  const FieldSpec layers{.name = "layers",
                         .kind = FieldKind::kOneOf,
                         .doc = "The layers to leave out, counted from 0; the others are numbered anew.",
                         .required = true,
                         .example = "[6, 7]",
                         .alternatives = {text, list}};
  return {{.name = "prune",
           .kind = FieldKind::kMap,
           .doc = "Leaves layers out: their tensors, and their share of the metadata that goes by layer.",
           .example = "{layers: '0-3,10'}",
           .fields = {layers}},
          true,
          make};
}

}  // namespace ggufmill
