#pragma once
// Facts about models and tensors that the rules of a recipe can test: which part of the model a tensor is, judged by
// its name, and its position. The classes, the order of the tests and the order of tensors match llama.cpp's quantizer
// (src/llama-quant.cpp, MIT).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

// Exact class of a tensor; every tensor has exactly one.
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
  kImageQkv,  // of models of images and video, unless they have the names above
  kImageDown,
  kOutput,
  kOther,
};

TensorClass class_of(std::string_view tensor_name);

// A set of classes, as named in recipes. Each exact class is a set ("attn_q", "ffn_down", "token_embd", ...). In
// addition:
//   attn_values  attn_v, attn_qkv and attn_kv_b: the tensors that produce the attention values
//   image_qkv, image_down  attn_qkv and ffn_down of models of images and video, by any of their names
//   head         output; without an output tensor (tied embeddings) token_embd, which is then in no other set
struct ClassSet {
  std::uint32_t bits = 0;
  bool head = false;  // true: includes a tied token_embd

  bool contains(TensorClass tensor_class, bool tied) const;
};

std::optional<ClassSet> class_named(std::string_view name);
std::vector<std::string> class_names();  // all names accepted by class_named()

struct ModelFacts {
  std::string architecture;         // general.architecture; empty if missing
  std::uint64_t layers = 0;         // (ARCH.block_count + pruned layers) * loops, like the reference
  std::uint64_t experts = 0;        // ARCH.expert_count
  std::uint64_t heads = 0;          // ARCH.attention.head_count, of the first layer
  std::uint64_t kv_heads = 0;       // ARCH.attention.head_count_kv, of the first layer; default: `heads`
  std::uint64_t embedding = 0;      // ARCH.embedding_length
  std::uint64_t vocabulary = 0;     // ARCH.vocab_size or, without it, the number of tokens
  std::uint64_t value_tensors = 0;  // number of tensors of the class set attn_values
  bool tied = true;                 // no output.weight: the token embedding is also the head
  bool importance = false;          // an importance matrix is given

  std::uint64_t head_groups() const { return kv_heads ? heads / kv_heads : 0; }
};

ModelFacts facts_of(const Model& model);

// Returns true if facts are derived from this metadata key, for any architecture.
bool decides_types(std::string_view key);

// Returns true for the keys among those whose value can differ from layer to layer. llama.cpp reads an override of such
// a key only if the model has the key.
bool decides_types_by_layer(std::string_view key);

struct TensorFacts {
  const Tensor* tensor = nullptr;
  TensorClass tensor_class = TensorClass::kOther;
  // Position among the `kind_count` tensors of its kind, counting only those decided by the recipe.
  std::uint64_t order = 0;
  std::uint64_t kind_count = 0;
  // Layer number from the name ("blk.N.") in models with experts, where order and layer differ; otherwise `order`.
  std::uint64_t depth = 0;
};

// Counts the tensors of each kind as they are decided in order. Not thread-safe.
class PlaceCounter {
 public:
  explicit PlaceCounter(const ModelFacts& model) : model_(model) {}
  // Returns the facts of the next tensor to be decided by a recipe, and counts the tensor.
  TensorFacts next(const Tensor& tensor);

 private:
  const ModelFacts& model_;
  std::uint64_t values_ = 0, ups_ = 0, gates_ = 0, downs_ = 0;
};

// Order in which llama.cpp's quantizer writes tensors: first those outside of layers, then layer by layer; by name
// within each group.
bool is_before(const Tensor& a, const Tensor& b);
void sort_by_layer(std::vector<Tensor>& tensors);

}  // namespace ggufmill
