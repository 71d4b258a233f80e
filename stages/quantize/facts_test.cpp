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

}  // namespace

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

TEST_CASE("without metadata the facts are zeros") {
  const ModelFacts facts = facts_of(Model{});
  CHECK(facts.architecture.empty());
  CHECK(facts.layers == 0);
  CHECK(facts.head_groups() == 0);
  CHECK(facts.tied);
}

TEST_CASE("one number of heads is for keys and values as well") {
  Model model = model_of({});
  model.metadata.add("llama.attention.head_count", number(32));
  CHECK(facts_of(model).head_groups() == 1);
}

TEST_CASE("of heads given layer by layer the first layer's count") {
  Model model = model_of({});
  model.metadata.add("llama.attention.head_count", number(32));
  model.metadata.add("llama.attention.head_count_kv", metadata_array(MetadataType::kUint32, {number(4), number(8)}));
  CHECK(facts_of(model).head_groups() == 8);
}

TEST_CASE("layers that were pruned are counted") {
  Model model = model_of({});
  model.notes.set(notes::kPrunedLayers, 2);
  CHECK(facts_of(model).layers == 6);
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

TEST_CASE("depth is the layer in the name where there are experts, else the place among the kind") {
  ModelFacts model;
  const Tensor down = bare_tensor("blk.5.ffn_down.weight"), other = bare_tensor("blk.x.ffn_down.weight");
  CHECK(PlaceCounter(model).next(down).depth == 0);
  model.experts = 8;
  CHECK(PlaceCounter(model).next(down).depth == 5);
  CHECK(PlaceCounter(model).next(other).depth == 0);
}

TEST_CASE("the keys that decide types are known, of any architecture") {
  for (const char* key : {"general.architecture", "llama.block_count", "x.expert_count", "x.attention.head_count",
                          "x.attention.head_count_kv"})
    CHECK(decides_types(key));
  for (const char* key : {"general.name", "llama.context_length", "llama.expert_used_count"})
    CHECK_FALSE(decides_types(key));
}
