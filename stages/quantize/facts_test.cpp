#include "stages/quantize/facts.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

MetadataValue number(std::uint64_t value) { return metadata_unsigned(MetadataType::kUint32, value); }

Model model_of(const std::vector<std::string>& names) {
  Model model;
  model.metadata.add("general.architecture", metadata_string("llama"));
  model.metadata.add("llama.block_count", number(4));
  for (const std::string& name : names) model.tensors.push_back(bare_tensor(name));
  return model;
}

std::vector<std::string> sorted(const std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) tensors.push_back(bare_tensor(name));
  sort_by_layer(tensors);
  std::vector<std::string> order;
  order.reserve(tensors.size());
  for (const Tensor& tensor : tensors) order.push_back(tensor.name);
  return order;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the class of a tensor is read from its name") {
  using C = TensorClass;
  const std::pair<const char*, TensorClass> cases[] = {
      {"token_embd.weight", C::kTokenEmbedding},
      {"per_layer_token_embd.weight", C::kTokenEmbedding},
      {"v.token_embd.weight", C::kOther},
      {"output.weight", C::kOutput},
      {"double_stream_blocks.0.block.ff_i.experts.1.w2.weight", C::kImageDown},
      {"double_stream_blocks.0.block.ff_i.shared_experts.w2.weight", C::kImageDown},
      {"double_stream_blocks.0.block.ff_t.w2.weight", C::kOther},
      {"layers.0.feed_forward.w2.weight", C::kImageDown},
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

TEST_CASE("a class contains only its own tensors") {
  const ClassSet down = class_named("ffn_down").value();
  CHECK(down.contains(TensorClass::kFfnDown, false));
  CHECK_FALSE(down.contains(TensorClass::kFfnUp, false));
}

TEST_CASE("attn_values covers all three kinds of value tensors") {
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

TEST_CASE("all listed classes are known, others are not") {
  for (const std::string& name : class_names()) CHECK(class_named(name));
  CHECK(class_names().size() == 16);
  CHECK_FALSE(class_named("ffn"));
}

TEST_CASE("the facts of a model are read from its metadata") {
  Model model = model_of({"blk.0.attn_v.weight", "blk.1.attn_qkv.weight", "blk.1.attn_k.weight", "output.weight"});
  model.metadata.add("llama.expert_count", number(8));
  model.metadata.add("llama.attention.head_count", number(32));
  model.metadata.add("llama.attention.head_count_kv", number(8));
  model.notes.set(notes::kImportanceGiven, true);
  const ModelFacts facts = facts_of(model);
  CHECK(facts.architecture == "llama");
  CHECK(facts.layers == 4);
  CHECK(facts.experts == 8);
  CHECK(facts.head_groups() == 4);
  CHECK(facts.value_tensors == 2);
  CHECK_FALSE(facts.tied);
  CHECK(facts.importance);
}

TEST_CASE("the vocabulary is the number of tokens unless the metadata has its size") {
  Model model = model_of({});
  const std::vector<MetadataValue> tokens(5, metadata_string("a"));
  model.metadata.add("tokenizer.ggml.tokens", metadata_array(MetadataType::kString, tokens));
  model.metadata.add("llama.embedding_length", number(64));
  CHECK(facts_of(model).vocabulary == 5);
  CHECK(facts_of(model).embedding == 64);
  model.metadata.add("llama.vocab_size", number(8));
  CHECK(facts_of(model).vocabulary == 8);
}

TEST_CASE("without metadata the facts are zeros") {
  const ModelFacts facts = facts_of(Model{});
  CHECK(facts.architecture.empty());
  CHECK(facts.layers == 0);
  CHECK(facts.head_groups() == 0);
  CHECK(facts.tied);
}

TEST_CASE("a single head count also applies to keys and values") {
  Model model = model_of({});
  model.metadata.add("llama.attention.head_count", number(32));
  CHECK(facts_of(model).head_groups() == 1);
}

TEST_CASE("with per-layer head counts, the first layer is used") {
  Model model = model_of({});
  model.metadata.add("llama.attention.head_count", number(32));
  model.metadata.add("llama.attention.head_count_kv", metadata_array(MetadataType::kUint32, {number(4), number(8)}));
  CHECK(facts_of(model).head_groups() == 8);
}

TEST_CASE("pruned layers are counted") {
  Model model = model_of({});
  model.notes.set(notes::kPrunedLayers, 2);
  CHECK(facts_of(model).layers == 6);
}

TEST_CASE("layers that a token passes several times are counted several times") {
  Model model = model_of({});
  model.metadata.add("llama.num_loops", number(3));
  CHECK(facts_of(model).layers == 12);
}

TEST_CASE("tensors are counted by their kind") {
  ModelFacts model;
  model.value_tensors = 3;
  model.layers = 9;
  PlaceCounter counter(model);
  const Tensor v = bare_tensor("blk.5.attn_v.weight"), qkv = bare_tensor("blk.5.attn_qkv.weight");
  const Tensor down = bare_tensor("blk.5.ffn_down.weight"), up = bare_tensor("blk.5.ffn_up.weight");
  CHECK(counter.next(v).order == 0);
  CHECK(counter.next(qkv).order == 1);
  CHECK(counter.next(v).kind_count == 3);
  CHECK(counter.next(down).order == 0);
  CHECK(counter.next(up).order == 0);
  CHECK(counter.next(down).order == 1);
  CHECK(counter.next(down).kind_count == 9);
}

TEST_CASE("depth is the layer in the name for models with experts, otherwise the position within the kind") {
  ModelFacts model;
  const Tensor down = bare_tensor("blk.5.ffn_down.weight"), other = bare_tensor("blk.x.ffn_down.weight");
  CHECK(PlaceCounter(model).next(down).depth == 0);
  model.experts = 8;
  CHECK(PlaceCounter(model).next(down).depth == 5);
  CHECK(PlaceCounter(model).next(other).depth == 0);
}

TEST_CASE("the keys that affect types are known for any architecture") {
  for (const char* key :
       {"general.architecture", "llama.block_count", "x.num_loops", "x.expert_count", "x.attention.head_count",
        "x.attention.head_count_kv", "x.embedding_length", "x.vocab_size", "tokenizer.ggml.tokens"})
    CHECK(decides_types(key));
  for (const char* key : {"general.name", "llama.context_length", "llama.expert_used_count"})
    CHECK_FALSE(decides_types(key));
}

TEST_CASE("tensors outside layers come first, then the layers by number, each sorted by name") {
  CHECK(sorted({"blk.10.a", "blk.2.b", "token_embd.weight", "blk.2.a", "output.weight"}) ==
        Names{"output.weight", "token_embd.weight", "blk.2.a", "blk.2.b", "blk.10.a"});
}

TEST_CASE("names that only look like layers are outside layers") {
  CHECK(sorted({"blk.0.a", "v.blk.1.a", "blk.x", "enc.blk.0.a"}) ==
        Names{"blk.x", "enc.blk.0.a", "v.blk.1.a", "blk.0.a"});
}
