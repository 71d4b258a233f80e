#include "stages/quantize/tensor_class.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the class of a tensor is read from its name") {
  using C = TensorClass;
  const std::pair<const char*, TensorClass> cases[] = {
      {"token_embd.weight", C::kTokenEmbedding},
      {"per_layer_token_embd.weight", C::kTokenEmbedding},
      {"v.token_embd.weight", C::kOther},
      {"output.weight", C::kOutput},
      {"output_norm.weight", C::kOther},
      {"blk.0.attn_q.weight", C::kAttentionQ},
      {"blk.0.attn_q_norm.weight", C::kOther},
      {"blk.10.attn_k.weight", C::kAttentionK},
      {"blk.3.attn_v.weight", C::kAttentionV},
      {"blk.3.attn_qkv.weight", C::kAttentionQkv},
      {"blk.3.attn_kv_b.weight", C::kAttentionKvB},
      {"blk.3.attn_output.weight", C::kAttentionOutput},
      {"blk.3.ffn_up_exps.weight", C::kFfnUp},
      {"blk.3.ffn_gate.weight", C::kFfnGate},
      {"blk.3.ffn_gate_inp.weight", C::kFfnGate},
      {"blk.3.ffn_down.4.weight", C::kFfnDown},
      {"blk.3.attn_q.bias", C::kOther},
      {"", C::kOther},
  };
  for (const auto& [name, tensor_class] : cases) {
    CAPTURE(name);
    CHECK(class_of(name) == tensor_class);
  }
}

TEST_CASE("a class by its name holds just its tensors") {
  const ClassSet down = class_named("ffn_down").value();
  CHECK(down.contains(TensorClass::kFfnDown, false));
  CHECK_FALSE(down.contains(TensorClass::kFfnUp, false));
}

TEST_CASE("attn_values are all three kinds of tensors that carry values") {
  const ClassSet values = class_named("attn_values").value();
  CHECK(values.contains(TensorClass::kAttentionV, false));
  CHECK(values.contains(TensorClass::kAttentionQkv, false));
  CHECK(values.contains(TensorClass::kAttentionKvB, false));
  CHECK_FALSE(values.contains(TensorClass::kAttentionK, false));
}

TEST_CASE("a tied token embedding is the head and nothing else") {
  const ClassSet head = class_named("head").value();
  const ClassSet embedding = class_named("token_embd").value();
  CHECK(head.contains(TensorClass::kTokenEmbedding, true));
  CHECK_FALSE(embedding.contains(TensorClass::kTokenEmbedding, true));
  CHECK_FALSE(head.contains(TensorClass::kTokenEmbedding, false));
  CHECK(embedding.contains(TensorClass::kTokenEmbedding, false));
  CHECK(head.contains(TensorClass::kOutput, false));
}

TEST_CASE("every class that is listed is known, others are not") {
  for (const std::string& name : class_names()) CHECK(class_named(name));
  CHECK(class_names().size() == 14);
  CHECK_FALSE(class_named("ffn"));
}
