#include "stages/prune/prune_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// The layer number in a tensor name, and its position.
struct NamedLayer {
  std::uint64_t layer;
  std::size_t at, length;
};

// Finds the first "blk.N." anywhere in a name, as the reference does: encoders have names such as "v.blk.N.".
std::optional<NamedLayer> find_layer(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  for (std::size_t at = name.find(kBlock); at != name.npos; at = name.find(kBlock, at + 1)) {
    const auto layer = layer_of(name.substr(at));
    if (!layer) continue;
    const std::size_t number = at + kBlock.size();
    return NamedLayer{*layer, number, name.find('.', number) - number};
  }
  return {};
}

std::uint64_t highest_layer(const std::vector<Tensor>& tensors) {
  std::uint64_t highest = 0;
  for (const Tensor& tensor : tensors)
    if (const auto found = find_layer(tensor.name)) highest = std::max(highest, found->layer + 1);
  return highest;
}

// Sets the location of an error to the file that contains the metadata.
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
      if (const auto found = find_layer(tensor.name)) {
        if (pruned_.contains(found->layer)) continue;
        if (const std::uint64_t gone = pruned_.count(0, found->layer))
          tensor.name.replace(found->at, found->length, std::to_string(found->layer - gone));
      }
      kept.push_back(std::move(tensor));
    }
    model.tensors = std::move(kept);
    // Encoders can have more layers than the key counts. Recipes add the number to the new value of the key, to get the
    // old one, so it may wrap around.
    const std::uint64_t left = count.layers - pruned_.count(0, count.layers);
    const std::uint64_t pruned_before = model.notes.get(notes::kPrunedLayers);
    model.notes.set(notes::kPrunedLayers, pruned_before + count.own_layers - left);
    prune_metadata(count, pruned_, model);
    return model;
  }

 private:
  Status check(std::uint64_t layers) const {
    if (layers == 0) return error_at(origin_, "the model has no layers to prune: no tensor has 'blk.N.' in its name");
    if (pruned_.last() >= layers)
      return error_at(origin_, fmt::format("layer {} does not exist", pruned_.last()),
                      fmt::format("the model has layers 0 to {}", layers - 1));
    if (pruned_.count(0, layers) == layers)
      return error_at(origin_, fmt::format("all {} layers would be pruned", layers), "keep at least one");
    return ok();
  }

  Origin origin_;
  LayerSet pruned_;
};

std::string fault_in_layers(const ConfigNode& node) {
  const Status added = LayerSet().add(node.scalar);
  return added ? std::string() : added.error().what;
}

// Returns the layers in a list of numbers and ranges, each of which passed fault_in_layers().
Result<LayerSet> layer_set(const std::vector<std::string>& numbers) {
  LayerSet layers;
  for (const std::string& each : numbers) {
    BOOST_OUTCOME_TRY(layers.add(each));
  }
  return layers;
}

// Keys as in llama.cpp, src/llama-arch.cpp.
constexpr std::string_view kBlockCount = "block_count";
constexpr std::string_view kLeadingDense = "leading_dense_block_count";  // number of dense layers at the start
constexpr std::string_view kNextPredict = "nextn_predict_layers";        // number of prediction layers at the end
constexpr std::string_view kSharedCache = "attention.shared_kv_layers";  // number of layers directly before those
constexpr std::string_view kSections = "rope.dimension_sections";        // an array that is not indexed by layer
constexpr std::string_view kPeriods[] = {"attention.sliding_window_pattern", "full_attention_interval",
                                         "interleave_moe_layer_step", "moe_every_n_layers", "rescale_every_n_layers"};

class LayerKeys {
 public:
  LayerKeys(const LayerCount& before, const LayerSet& pruned, Model& model)
      : prefix_(before.architecture + "."),
        layers_(before.layers),
        own_layers_(before.own_layers),
        pruned_(pruned),
        model_(model),
        next_predict_(std::min(own_layers_, number(kNextPredict).value_or(0))) {}

  void prune() {
    cut_arrays();
    shrink(kLeadingDense, 0, number(kLeadingDense).value_or(0));
    const std::uint64_t own = own_layers_ - next_predict_;
    shrink(kSharedCache, own - std::min(own, number(kSharedCache).value_or(0)), own);
    shrink(kNextPredict, own, own_layers_);
    warn_of_periods();
    const std::uint64_t left = layers_ - pruned_.count(0, layers_);
    model_.metadata.set_at_end(key(kBlockCount), metadata_unsigned(MetadataType::kUint32, left));
  }

 private:
  std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  std::optional<std::uint64_t> number(std::string_view name) const {
    const MetadataValue* value = model_.metadata.find(key(name));
    return value ? as_unsigned(*value) : std::nullopt;
  }

  bool by_layer(const MetadataEntry& entry) const {
    const auto array = as_array(entry.value);
    return array && entry.key.starts_with(prefix_) && entry.key != key(kSections) &&
           metadata_type_bytes(array->element) > 0 &&
           (array->count == own_layers_ || (array->count == own_layers_ - next_predict_ && array->count > 0));
  }

  void cut_arrays() {
    std::vector<MetadataEntry> cut;
    for (const MetadataEntry& entry : model_.metadata.entries())
      if (by_layer(entry)) cut.push_back({entry.key, cut_array(entry.value)});
    for (MetadataEntry& entry : cut) model_.metadata.set(std::move(entry.key), std::move(entry.value));
  }

  MetadataValue cut_array(const MetadataValue& array) const {
    const std::vector<MetadataValue> items = array_items(array);
    std::vector<MetadataValue> kept;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (!pruned_.contains(i)) kept.push_back(items[i]);
    return metadata_array(as_array(array)->element, kept);
  }

  // Reduces a key that counts layers in the range from `begin` to `end` - 1.
  void shrink(std::string_view name, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t gone = pruned_.count(begin, end);
    const MetadataValue* value = model_.metadata.find(key(name));
    if (gone == 0 || !value) return;
    model_.metadata.set(key(name), metadata_unsigned(value->type, *number(name) - gone));
  }

  void warn_of_periods() {
    const std::uint64_t gone = pruned_.count(0, own_layers_);
    if (pruned_.count(own_layers_ - gone, own_layers_) == gone) return;
    for (const std::string_view name : kPeriods)
      if (const auto period = number(name); period && *period > 1)
        model_.warnings.push_back(
            fmt::format("metadata key '{}' is {} and depends on the layer number, but layers in the middle are pruned: "
                        "the role of the layers after them may have changed",
                        key(name), *period));
  }

  std::string prefix_;
  std::uint64_t layers_, own_layers_;
  const LayerSet& pruned_;
  Model& model_;
  std::uint64_t next_predict_;
};

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
  const Form<std::string> text =
      ggufmill::text().checked(fault_in_layers).doc("Numbers and ranges, both ends included.").example("'0-3,10'");
  const auto list = list_of(text).at_least(1).doc("A list of numbers and ranges.").example("[6, 7]");
  const auto layers =
      either<LayerSet>(converted<LayerSet>(text, [](const std::string& numbers) { return layer_set({numbers}); }),
                       converted<LayerSet>(list, layer_set));
  return stage_spec(
      "prune",
      map_of<PruneOptions>({field("layers", &PruneOptions::layers, layers,
                                  "The layers to remove, counted from 0; the remaining layers are renumbered.")
                                .required()
                                .example("[6, 7]")
                                .at(&PruneOptions::origin)})
          .doc("Removes layers: their tensors and their part of the per-layer metadata.")
          .example("{layers: '0-3,10'}"),
      make_prune_stage);
}

Result<LayerCount> layer_count(const Metadata& metadata, std::uint64_t highest) {
  const MetadataValue* architecture = metadata.find("general.architecture");
  const auto name = architecture ? as_string(*architecture) : std::nullopt;
  if (!name)
    return input_error("", "the model has no general.architecture, so the key for its number of layers is not known",
                       "set it first: stages: [{metadata: {set: {general.architecture: llama}}}]");
  LayerCount count{std::string(*name), highest, highest};
  const std::string key = fmt::format("{}.{}", *name, kBlockCount);
  const MetadataValue* value = metadata.find(key);
  if (!value) return count;
  const auto layers = as_unsigned(*value);
  if (!layers || *layers >= kMaxLayers)
    return input_error("", fmt::format("{} is {}, not a number of layers", quoted_name(key), describe(*value)));
  count.layers = std::max(highest, *layers);
  count.own_layers = *layers;
  return count;
}

void prune_metadata(const LayerCount& before, const LayerSet& pruned, Model& model) {
  LayerKeys(before, pruned, model).prune();
}

}  // namespace ggufmill
