#include "stages/quantize/facts.h"

#include <algorithm>
#include <cstdio>

#include "pipeline/core/rows.h"

namespace ggufmill {
namespace {

struct NamePart {
  std::string_view part;
  TensorClass tensor_class;
  std::string_view other_part = "";  // also in the name
};

// The first match wins.
constexpr NamePart kParts[] = {
    {"attn_qkv.weight", TensorClass::kAttentionQkv},
    {"attn_kv_b.weight", TensorClass::kAttentionKvB},
    {"attn_v.weight", TensorClass::kAttentionV},
    {"attn_k.weight", TensorClass::kAttentionK},
    {"attn_q.weight", TensorClass::kAttentionQ},
    {"attn_output.weight", TensorClass::kAttentionOutput},
    {"ffn_up", TensorClass::kFfnUp},
    {"ffn_gate", TensorClass::kFfnGate},
    {"ffn_down", TensorClass::kFfnDown},
    // Models of images and video. Source: the patch of llama.cpp of ComfyUI-GGUF (Apache-2.0).
    {"attn.qkv.weight", TensorClass::kImageQkv},
    {"attention.qkv.weight", TensorClass::kImageQkv},
    {".ffn.2.weight", TensorClass::kImageDown},
    {".ff.net.2.weight", TensorClass::kImageDown},
    {".mlp.layer2.weight", TensorClass::kImageDown},
    {".adaln_modulation_mlp.2.weight", TensorClass::kImageDown},
    {".feed_forward.w2.weight", TensorClass::kImageDown},
    {"experts.", TensorClass::kImageDown, ".w2.weight"},
    {".to_v.weight", TensorClass::kAttentionV},
    {"_attn.v.weight", TensorClass::kAttentionV},
    {"_attn.v_proj.weight", TensorClass::kAttentionV},
    {".attn.w1v.weight", TensorClass::kAttentionV},
    {".attn.w2v.weight", TensorClass::kAttentionV},
};

constexpr std::uint32_t bit(TensorClass tensor_class) { return 1u << static_cast<unsigned>(tensor_class); }

struct NamedSet {
  std::string_view name;
  ClassSet set;
};

constexpr NamedSet kSets[] = {
    {"token_embd", {bit(TensorClass::kTokenEmbedding)}},
    {"attn_q", {bit(TensorClass::kAttentionQ)}},
    {"attn_k", {bit(TensorClass::kAttentionK)}},
    {"attn_v", {bit(TensorClass::kAttentionV)}},
    {"attn_qkv", {bit(TensorClass::kAttentionQkv)}},
    {"attn_kv_b", {bit(TensorClass::kAttentionKvB)}},
    {"attn_values",
     {bit(TensorClass::kAttentionV) | bit(TensorClass::kAttentionQkv) | bit(TensorClass::kAttentionKvB)}},
    {"attn_output", {bit(TensorClass::kAttentionOutput)}},
    {"ffn_up", {bit(TensorClass::kFfnUp)}},
    {"ffn_gate", {bit(TensorClass::kFfnGate)}},
    {"ffn_down", {bit(TensorClass::kFfnDown)}},
    {"image_qkv", {bit(TensorClass::kAttentionQkv) | bit(TensorClass::kImageQkv)}},
    {"image_down", {bit(TensorClass::kFfnDown) | bit(TensorClass::kImageDown)}},
    {"output", {bit(TensorClass::kOutput)}},
    {"head", {bit(TensorClass::kOutput), true}},
    {"other", {bit(TensorClass::kOther)}},
};

constexpr std::string_view kArchitecture = "general.architecture";
// Suffixes of metadata keys, after the name of the architecture.
constexpr const char* kLayers = ".block_count";
constexpr const char* kLoops = ".num_loops";  // passes through the layers; each pass counts every layer again
constexpr const char* kExperts = ".expert_count";
constexpr const char* kHeads = ".attention.head_count";
constexpr const char* kKvHeads = ".attention.head_count_kv";
constexpr const char* kEmbedding = ".embedding_length";
constexpr const char* kVocabulary = ".vocab_size";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

// Returns an integer value or, if the value is an array with one number for each layer, its first number. Returns
// `otherwise` if there is neither.
std::uint64_t number_at(const Model& model, const std::string& key, std::uint64_t otherwise) {
  const MetadataValue* value = model.metadata.find(key);
  if (!value) return otherwise;
  if (const auto number = as_unsigned(*value)) return *number;
  const auto first = array_items(*value, 1);
  return first.empty() ? otherwise : as_unsigned(first.front()).value_or(otherwise);
}

std::uint64_t token_count(const Model& model) {
  const MetadataValue* tokens = model.metadata.find(kTokens);
  const auto array = tokens ? as_array(*tokens) : std::nullopt;
  return array ? array->count : 0;
}

bool carries_values(TensorClass tensor_class) { return class_named("attn_values")->contains(tensor_class, false); }

// Returns N of "blk.N", parsed as by sscanf("blk.%d."), or -1 for other names.
int scanned_layer(const std::string& name) {
  int layer = -1;
  return std::sscanf(name.c_str(), "blk.%9d.", &layer) == 1 ? layer : -1;
}

}  // namespace

TensorClass class_of(std::string_view name) {
  if (name == "output.weight") return TensorClass::kOutput;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return TensorClass::kTokenEmbedding;
  for (const NamePart& row : kParts)
    if (name.find(row.part) != std::string_view::npos && name.find(row.other_part) != std::string_view::npos)
      return row.tensor_class;
  return TensorClass::kOther;
}

bool ClassSet::contains(TensorClass tensor_class, bool tied) const {
  if (tied && tensor_class == TensorClass::kTokenEmbedding) return head;
  return (bits & bit(tensor_class)) != 0;
}

std::optional<ClassSet> class_named(std::string_view name) {
  for (const NamedSet& row : kSets)
    if (row.name == name) return row.set;
  return {};
}

std::vector<std::string> class_names() {
  std::vector<std::string> names;
  for (const NamedSet& row : kSets) names.emplace_back(row.name);
  return names;
}

ModelFacts facts_of(const Model& model) {
  ModelFacts facts;
  if (const MetadataValue* value = model.metadata.find(kArchitecture))
    facts.architecture = as_string(*value).value_or("");
  const std::string& arch = facts.architecture;
  facts.layers = number_at(model, arch + kLayers, 0) + model.notes.get(notes::kPrunedLayers);
  const std::uint64_t loops = std::max<std::uint64_t>(number_at(model, arch + kLoops, 1), 1);
  facts.layers = capped_product(facts.layers, loops);
  facts.experts = number_at(model, arch + kExperts, 0);
  facts.heads = number_at(model, arch + kHeads, 0);
  facts.kv_heads = number_at(model, arch + kKvHeads, facts.heads);
  facts.embedding = number_at(model, arch + kEmbedding, 0);
  facts.vocabulary = number_at(model, arch + kVocabulary, token_count(model));
  facts.importance = model.notes.get(notes::kImportanceGiven);
  for (const Tensor& tensor : model.tensors) {
    const TensorClass tensor_class = class_of(tensor.name);
    facts.value_tensors += carries_values(tensor_class) ? 1 : 0;
    if (tensor_class == TensorClass::kOutput) facts.tied = false;
  }
  return facts;
}

bool decides_types(std::string_view key) {
  return key == kArchitecture || key.ends_with(kLayers) || key.ends_with(kLoops) || key.ends_with(kExperts) ||
         key.ends_with(kHeads) || key.ends_with(kKvHeads) || key.ends_with(kEmbedding) || key.ends_with(kVocabulary) ||
         key == kTokens;
}

bool decides_types_by_layer(std::string_view key) { return key.ends_with(kHeads) || key.ends_with(kKvHeads); }

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

bool is_before(const Tensor& a, const Tensor& b) {
  const int layer_a = scanned_layer(a.name);
  const int layer_b = scanned_layer(b.name);
  return layer_a != layer_b ? layer_a < layer_b : a.name < b.name;
}

void sort_by_layer(std::vector<Tensor>& tensors) { std::stable_sort(tensors.begin(), tensors.end(), is_before); }

}  // namespace ggufmill
