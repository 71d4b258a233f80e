#pragma once
// What the rules of a recipe may ask of a model and of a tensor: what part of the model it is, by its name, and where.
// The classes, the order of the tests, and that of tensors are those of llama.cpp's quantizer (src/llama-quant.cpp,
// MIT).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

// The exact class of a tensor.
enum class TensorClass : std::uint8_t {
  kTokenEmbedding,
  kAttentionQ,
  kAttentionV,
  kAttentionK,
  kAttentionQkv,
  kAttentionKvB,
  kAttentionOutput,
  kFfnUp,
  kFfnGate,
  kFfnDown,
  kOutput,
  kOther,
};

TensorClass class_of(std::string_view tensor_name);

// A set of classes as recipes name it. Besides each exact class ("attn_q", "ffn_down", "token_embd", ...):
//   attn_values  attn_v, attn_qkv and attn_kv_b: what carries the attention's values
//   head         output; where there is none (tied embeddings) token_embd, which then is in no other class
struct ClassSet {
  std::uint32_t bits = 0;
  bool head = false;  // a tied token_embd belongs to it

  bool contains(TensorClass tensor_class, bool tied) const;
};

std::optional<ClassSet> class_named(std::string_view name);
std::vector<std::string> class_names();  // all that class_named() knows

struct ModelFacts {
  std::string architecture;         // general.architecture; empty where there is none
  std::uint64_t layers = 0;         // ARCH.block_count, and what was pruned, for each loop: as the reference counts
  std::uint64_t experts = 0;        // ARCH.expert_count
  std::uint64_t heads = 0;          // ARCH.attention.head_count, of the first layer
  std::uint64_t kv_heads = 0;       // ARCH.attention.head_count_kv, of the first layer; `heads` where there is none
  std::uint64_t value_tensors = 0;  // how many tensors are of the class attn_values
  bool tied = true;                 // there is no output.weight: the token embedding is the head as well
  bool importance = false;          // an importance matrix is given

  std::uint64_t head_groups() const { return kv_heads ? heads / kv_heads : 0; }
};

ModelFacts facts_of(const Model& model);

// Whether facts are read from the metadata key, of some architecture.
bool decides_types(std::string_view key);

struct TensorFacts {
  const Tensor* tensor = nullptr;
  TensorClass tensor_class = TensorClass::kOther;
  // Place among the tensors of its kind that a recipe has decided so far, of `kind_count`.
  std::uint64_t order = 0;
  std::uint64_t kind_count = 0;
  // Layer by its name ("blk.N.") in models with experts, where order and layer differ; else `order`.
  std::uint64_t depth = 0;
};

// Counts the kinds while tensors are taken one after the other. Not thread-safe.
class PlaceCounter {
 public:
  explicit PlaceCounter(const ModelFacts& model) : model_(model) {}
  // The facts of the next tensor that a recipe decides; counts it.
  TensorFacts next(const Tensor& tensor);

 private:
  const ModelFacts& model_;
  std::uint64_t values_ = 0, ups_ = 0, gates_ = 0, downs_ = 0;
};

// The order in which it writes tensors: those outside layers by name, then layer by layer, by name.
bool is_before(const Tensor& a, const Tensor& b);
void sort_by_layer(std::vector<Tensor>& tensors);

}  // namespace ggufmill
