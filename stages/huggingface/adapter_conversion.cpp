#include "stages/huggingface/adapter_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "pipeline/core/adapter.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/general.h"
#include "stages/huggingface/map/trainer_names.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Returns what to do about an adapter that does not fit the base in `folder`.
std::string check_base_help(const Adapter& adapter, const std::string& folder) {
  return fmt::format("check that {} is the model that the adapter was trained for{}", folder,
                     adapter.base.empty() ? "" : fmt::format(" ({})", quoted_name(adapter.base)));
}

// Warns of the adapter's tensors that the map drops.
void warn_of_dropped(const Adapter& adapter, const std::vector<MappedTensor>& mapped, const std::string& architecture,
                     std::vector<std::string>& warnings) {
  std::unordered_set<const Expression*> used;
  const auto add = [&](const auto& self, const Expression& node) -> void {
    used.insert(&node);
    for (const ExpressionRef& input : node.inputs) self(self, *input);
  };
  for (const MappedTensor& tensor : mapped) add(add, *tensor.values);
  for (const NamedTensor& tensor : adapter.tensors)
    if (!used.contains(tensor.values.get()))
      warnings.push_back(fmt::format("{}: {} is dropped: llama.cpp has no such tensor in '{}'", adapter.folder,
                                     quoted_name(tensor.name), architecture));
}

// Returns the matrices of a mapped product as they are stored.
Result<LowRankPair> stored_pair(const Adapter& adapter, const MappedTensor& product) {
  BOOST_OUTCOME_TRY(LowRankPair pair, pair_of(*product.values, adapter.use));
  if (pair.swapped)
    return input_error({}, adapter.transposed ? "'fan_in_fan_out' is set, but the weight is not transposed in the base"
                                              : "the base's weight is transposed");
  if (product.name == kLoraTransposed) {
    BOOST_OUTCOME_TRY(pair.a, expressions::transpose(pair.a, {1, 0}));
  }
  return pair;
}

Status add_mapped(const Adapter& adapter, MappedTensor mapped, std::vector<MappedTensor>& into) {
  if (mapped.values->shape.rank < 2 && mapped.name.find("_norm") != std::string::npos) {
    into.push_back(std::move(mapped));
    return ok();
  }
  auto pair = stored_pair(adapter, mapped);
  if (!pair)
    return input_error(
        adapter.folder, fmt::format("pair of {}: {}", quoted_name(mapped.name), pair.error().what),
        adapter.use == PairUse::kStored
            ? "merge the adapter while the model is converted: a pipeline file with `stages: [{lora: {adapter: ...}}]`"
            : "merge the adapter into its base model with PEFT's merge_and_unload(), and convert the result");
  into.push_back({mapped.name + std::string(kLoraA), std::move(pair.value().a)});
  into.push_back({mapped.name + std::string(kLoraB), std::move(pair.value().b)});
  return ok();
}

}  // namespace

Status check_base(const Adapter& adapter, const Checkpoint& base, const std::string& folder) {
  std::unordered_map<std::string_view, const Expression*> weights;
  for (const CheckpointTensor& tensor : base.tensors) weights[tensor.name] = tensor.values.get();
  for (const NamedTensor& tensor : adapter.tensors) {
    const auto found = weights.find(tensor.name);
    if (found == weights.end()) continue;
    const std::string_view type = found->second->type->name;
    if (type != "F32" && type != "F16" && type != "BF16") continue;
    Shape shape = tensor.values->shape;
    if (shape.dims == found->second->shape.dims) continue;
    std::swap(shape.dims[0], shape.dims[1]);
    const bool is_transposed = std::ranges::find(adapter.embeddings, tensor.name) != adapter.embeddings.end();
    if (is_transposed && shape.dims == found->second->shape.dims) continue;
    return input_error(adapter.folder,
                       fmt::format("the adapter changes {} of {}, but the base's is {}", quoted_name(tensor.name),
                                   describe(tensor.values->shape), describe(found->second->shape)),
                       check_base_help(adapter, folder));
  }
  return ok();
}

Result<std::vector<MappedTensor>> map_adapter(const Adapter& adapter, Architecture& map, Facts& facts,
                                              std::vector<std::string>& warnings) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : adapter.tensors) names.push_back(tensor.name);
  facts.set_tensors(
      std::move(names),
      [](const std::string& name, std::optional<std::uint64_t>) {
        return input_error({}, fmt::format("tensor {} is part of an adapter", quoted_name(name)));
      },
      [](const std::string&) { return 0; });
  map.computed.clear();
  map.types.clear();
  for (CheckpointRule& rule : map.tensors) {
    rule.required = rule.early = rule.by_layer = false;
    rule.required_in.reset();
  }
  std::vector<NamedTensor> own = adapter.tensors;
  BOOST_OUTCOME_TRY(const auto notes, remove_trainer_names(map, facts, own));
  for (const std::string& note : notes) warnings.push_back(fmt::format("{}: {}", adapter.folder, note));
  BOOST_OUTCOME_TRY(auto tensors, rename_tensors(map, facts, std::move(own)));
  auto mapped = map_tensors(map, facts, tensors, adapter.folder);
  if (!mapped) {
    Error error = std::move(mapped).error();
    if (const std::size_t others = error.also.size(); others != 0)
      error.detail += fmt::format("{}{} other tensor{}", error.detail.empty() ? "" : "\n", others,
                                  others == 1 ? " has an error" : "s have errors");
    error.also.clear();
    error.help = check_base_help(adapter, facts.folder().string());
    return error;
  }
  warn_of_dropped(adapter, mapped.value(), map.name, warnings);
  std::vector<MappedTensor> result;
  for (MappedTensor& tensor : mapped.value()) {
    BOOST_OUTCOME_TRY(add_mapped(adapter, std::move(tensor), result));
  }
  return result;
}

Result<ModelId> set_adapter_metadata(const Adapter& adapter, const WeightCount& weights, Metadata& metadata,
                                     std::vector<std::string>& warnings) {
  json::object config;
  if (const std::string path = fs::path(adapter.folder) / "config.json"; is_file(path)) {
    BOOST_OUTCOME_TRY(const json::value own, read_checkpoint_json(path));
    if (own.is_object()) config = own.get_object();
  }
  BOOST_OUTCOME_TRY(General general, read_general({adapter.folder, {}, {}, "adapter"}, config, weights));
  for (const MetadataEntry& entry : general.metadata.entries()) {
    metadata.set(entry.key, entry.value);
    if (entry.key == "general.type") metadata.set("adapter.type", metadata_string("lora"));
  }
  for (std::string& warning : general.warnings) warnings.push_back(std::move(warning));
  warnings.insert(warnings.end(), adapter.warnings.begin(), adapter.warnings.end());
  metadata.set(std::string(kLoraAlpha), metadata_float(MetadataType::kFloat32, adapter.alpha));
  if (!adapter.invocation_tokens.empty()) {
    std::vector<MetadataValue> tokens;
    for (const std::uint32_t token : adapter.invocation_tokens)
      tokens.push_back(metadata_unsigned(MetadataType::kUint32, token));
    metadata.set("adapter.alora.invocation_tokens", metadata_array(MetadataType::kUint32, tokens));
  }
  return std::move(general.id);
}

}  // namespace ggufmill::huggingface
