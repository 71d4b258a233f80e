#include "stages/quantize/facts.h"

namespace ggufmill {
namespace {

constexpr std::string_view kArchitecture = "general.architecture";
// After the architecture's name.
constexpr const char* kLayers = ".block_count";
constexpr const char* kExperts = ".expert_count";
constexpr const char* kHeads = ".attention.head_count";
constexpr const char* kKvHeads = ".attention.head_count_kv";

// A whole number, or the first of an array of them (one for each layer).
std::uint64_t number_at(const Model& model, const std::string& key, std::uint64_t otherwise) {
  const MetadataValue* value = model.metadata.find(key);
  if (!value) return otherwise;
  if (const auto number = as_unsigned(*value)) return *number;
  const auto first = array_items(*value, 1);
  return first.empty() ? otherwise : as_unsigned(first.front()).value_or(otherwise);
}

bool carries_values(TensorClass tensor_class) { return class_named("attn_values")->contains(tensor_class, false); }

}  // namespace

ModelFacts facts_of(const Model& model) {
  ModelFacts facts;
  if (const MetadataValue* value = model.metadata.find(kArchitecture))
    facts.architecture = as_string(*value).value_or("");
  const std::string& arch = facts.architecture;
  facts.layers = number_at(model, arch + kLayers, 0) + model.notes.get(notes::kPrunedLayers);
  facts.experts = number_at(model, arch + kExperts, 0);
  facts.heads = number_at(model, arch + kHeads, 0);
  facts.kv_heads = number_at(model, arch + kKvHeads, facts.heads);
  facts.importance = model.notes.get(notes::kImportanceGiven);
  for (const Tensor& tensor : model.tensors) {
    const TensorClass tensor_class = class_of(tensor.name);
    facts.value_tensors += carries_values(tensor_class) ? 1 : 0;
    if (tensor_class == TensorClass::kOutput) facts.tied = false;
  }
  return facts;
}

bool decides_types(std::string_view key) {
  return key == kArchitecture || key.ends_with(kLayers) || key.ends_with(kExperts) || key.ends_with(kHeads) ||
         key.ends_with(kKvHeads);
}

TensorFacts PlaceCounter::next(const Tensor& tensor) {
  TensorFacts facts{&tensor, class_of(tensor.name), 0, model_.layers, 0};
  if (carries_values(facts.tensor_class)) {
    facts.order = values_++;
    facts.kind_count = model_.value_tensors;
  }
  if (facts.tensor_class == TensorClass::kFfnUp) facts.order = ups_++;
  if (facts.tensor_class == TensorClass::kFfnGate) facts.order = gates_++;
  if (facts.tensor_class == TensorClass::kFfnDown) facts.order = downs_++;
  facts.depth = model_.experts > 1 ? layer_of(tensor.name).value_or(facts.order) : facts.order;
  return facts;
}

}  // namespace ggufmill
