#include "stages/quantize/tensor_class.h"

namespace ggufmill {
namespace {

struct NamePart {
  std::string_view part;
  TensorClass tensor_class;
};

// First match wins.
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
    {"output", {bit(TensorClass::kOutput)}},
    {"head", {bit(TensorClass::kOutput), true}},
    {"other", {bit(TensorClass::kOther)}},
};

}  // namespace

TensorClass class_of(std::string_view name) {
  if (name == "output.weight") return TensorClass::kOutput;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return TensorClass::kTokenEmbedding;
  for (const NamePart& row : kParts)
    if (name.find(row.part) != std::string_view::npos) return row.tensor_class;
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

}  // namespace ggufmill
