#pragma once
// What part of a model a tensor is, by its name. The classes and the order of the tests are those of llama.cpp's
// quantizer (src/llama-quant.cpp, MIT).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace ggufmill
