#include "pipeline/core/complete_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/core/expected_tensors.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

Tensor tensor(std::string name, std::vector<std::uint64_t> dims) {
  Shape shape{static_cast<std::uint32_t>(dims.size()), {1, 1, 1, 1}};
  std::copy(dims.begin(), dims.end(), shape.dims.begin());
  Tensor made;
  made.name = std::move(name);
  made.expression = expressions::constant(shape, std::vector<float>(shape.elements())).value();
  made.type = made.expression->type;
  return made;
}

MetadataValue u32(std::uint64_t value) { return metadata_unsigned(MetadataType::kUint32, value); }

// A Llama with two layers, 8 columns, 2 heads of which 1 has keys, 12 hidden values, and 10 tokens.
Model llama(bool biases = false) {
  Model model;
  model.metadata.add("general.architecture", metadata_string("llama"));
  for (const auto& [key, value] :
       {std::pair("block_count", 2), std::pair("embedding_length", 8), std::pair("feed_forward_length", 12),
        std::pair("attention.head_count", 2), std::pair("attention.head_count_kv", 1)})
    model.metadata.add(fmt::format("llama.{}", key), u32(static_cast<std::uint64_t>(value)));
  model.metadata.add("tokenizer.ggml.tokens",
                     metadata_array(MetadataType::kString, std::vector<MetadataValue>(10, metadata_string("a"))));
  const auto add = [&](std::string name, std::vector<std::uint64_t> dims) {
    model.tensors.push_back(tensor(std::move(name), std::move(dims)));
  };
  add("token_embd.weight", {8, 10});
  add("output_norm.weight", {8});
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("blk.{}.", i);
    add(layer + "attn_norm.weight", {8});
    add(layer + "attn_q.weight", {8, 8});
    add(layer + "attn_k.weight", {8, 4});
    add(layer + "attn_v.weight", {8, 4});
    if (biases) add(layer + "attn_k.bias", {4});
    add(layer + "attn_output.weight", {8, 8});
    add(layer + "ffn_norm.weight", {8});
    add(layer + "ffn_gate.weight", {8, 12});
    add(layer + "ffn_up.weight", {8, 12});
    add(layer + "ffn_down.weight", {12, 8});
  }
  return model;
}

void remove(Model& model, const std::string& name) {
  REQUIRE(std::erase_if(model.tensors, [&](const Tensor& each) { return each.name == name; }) == 1);
}

std::string missing(const Model& model) { return fmt::format("{}", fmt::join(find_holes(model).missing, " ")); }

std::string misshapen(const Model& model) {
  std::string text;
  for (const WrongShape& each : find_holes(model).misshapen) text += each.name + " " + describe(each) + "\n";
  return text;
}

}  // namespace

TEST_CASE("a complete model has no holes") {
  CHECK(find_holes(llama()).empty());
  CHECK(find_holes(llama(true)).empty());
  CHECK(find_holes(llama()).layers == 2);
}

TEST_CASE("each tensor that the loader requires is missed, in one layer and in all") {
  const Model whole = llama();
  for (const Tensor& each : whole.tensors) {
    Model model = llama();
    remove(model, each.name);
    CHECK(missing(model) == each.name);
  }
  Model model = llama();
  remove(model, "blk.0.ffn_up.weight");
  remove(model, "blk.1.ffn_up.weight");
  CHECK(missing(model) == "blk.0.ffn_up.weight blk.1.ffn_up.weight");
}

TEST_CASE("the number of layers is that of the metadata") {
  Model model = llama();
  model.metadata.set("llama.block_count", u32(3));
  CHECK(find_holes(model).missing.size() == 9);
  model.metadata.set("llama.block_count", u32(0xffffffff));  // only the first are listed
  CHECK(find_holes(model).missing.size() == 2046 * 9);
}

TEST_CASE("a bias that other layers have is doubtful, one that no layer has is not") {
  Model model = llama(true);
  remove(model, "blk.1.attn_k.bias");
  CHECK(find_holes(model).doubtful == std::vector<std::string>{"blk.1.attn_k.bias"});
  CHECK(missing(model) == "");
}

TEST_CASE("shapes are those of the metadata and the vocabulary") {
  Model model = llama();
  model.tensors[0] = tensor("token_embd.weight", {8, 12});
  CHECK(misshapen(model) == "token_embd.weight has the shape 8 x 12, but 8 x 10 is expected\n");
  model = llama();
  std::ranges::find(model.tensors, "blk.1.ffn_down.weight", &Tensor::name)->expression = tensor("", {8, 12}).expression;
  CHECK(misshapen(model) == "blk.1.ffn_down.weight has the shape 8 x 12, but 12 x 8 is expected\n");
  model.metadata.remove("llama.feed_forward_length");
  CHECK(misshapen(model).find("?") == std::string::npos);
}

TEST_CASE("a model with fused queries, keys, and values needs no separate ones") {
  Model model = llama();
  for (const char* part : {"q", "k", "v"})
    for (int i = 0; i < 2; ++i) remove(model, fmt::format("blk.{}.attn_{}.weight", i, part));
  for (int i = 0; i < 2; ++i) model.tensors.push_back(tensor(fmt::format("blk.{}.attn_qkv.weight", i), {8, 16}));
  CHECK(find_holes(model).empty());
}

TEST_CASE("an architecture without lines needs what most layers have") {
  Model model;
  model.metadata.add("general.architecture", metadata_string("clip"));
  for (int i = 0; i < 4; ++i) {
    if (i != 2) model.tensors.push_back(tensor(fmt::format("v.blk.{}.attn_q.weight", i), {8, 8}));
    model.tensors.push_back(tensor(fmt::format("v.blk.{}.ln1.weight", i), {8}));
  }
  CHECK(missing(model) == "v.blk.2.attn_q.weight");
  model.tensors.push_back(tensor("v.blk.2.attn_qkv.weight", {8, 24}));  // another kind of layer
  CHECK(missing(model) == "");
}

TEST_CASE("missing tensors are described by their layers") {
  const auto text = [](const std::vector<MissingTensor>& missing, std::vector<std::uint64_t> layers) {
    return describe_missing(missing, 10, layers, "config.json says 4 layers");
  };
  CHECK(text({{"a", {}}}, {}) == "tensor 'a' is missing");
  CHECK(text({{"l.1.a", 1}}, {0, 1}) == "tensor 'l.1.a' is missing");
  CHECK(text({{"l.1.a", 1}, {"l.1.b", 1}}, {0, 1}) == "2 of 12 tensors are missing: 'l.1.a', 'l.1.b'");
  CHECK(text({{"l.1.a", 1}, {"l.1.b", 1}}, {0}) ==
        "2 of 12 tensors are missing: all of layer 1 (config.json says 4 layers, the files hold 1)");
  CHECK(text({{"l.1.a", 1}, {"l.2.a", 2}, {"l.3.a", 3}}, {0}) ==
        "3 of 13 tensors are missing: all of layers 1 to 3 (config.json says 4 layers, the files hold 1)");
  CHECK(text({{"l.0.a", 0}, {"l.1.a", 1}, {"l.3.a", 3}}, {0, 1, 2, 3}) ==
        "3 of 13 tensors are missing: 'l.0.a', 'l.1.a', 'l.3.a' (layers 0, 1, 3 are incomplete)");
}

TEST_CASE("biases that the loader has no use for are unknown") {
  Model model = llama();
  model.tensors.push_back(tensor("blk.0.attn_output.bias", {8}));
  model.tensors.push_back(tensor("blk.0.attn_q.scale", {1}));
  CHECK(find_holes(model).unknown.empty());
  for (const char* name : {"blk.1.attn_norm.bias", "token_embd.bias"}) model.tensors.push_back(tensor(name, {8}));
  CHECK(find_holes(model).unknown == std::vector<std::string>{"blk.1.attn_norm.bias", "token_embd.bias"});
  CHECK(describe_unknown({"a", "b"}, 26) == "2 of 26 tensors are unknown to it: 'a', 'b'");
}

TEST_CASE("every expression of the table can be evaluated") {
  CHECK(malformed_expressions() == std::vector<std::string>{});
}

TEST_CASE("the keys on which names and shapes of tensors depend are those of the table") {
  const auto llama = sizing_keys("llama"), gpt2 = sizing_keys("gpt2");
  for (const std::string_view key : {"embedding_length", "block_count", "attention.head_count", "vocab_size"}) {
    CHECK(llama.contains(key));
    CHECK(gpt2.contains(key));
  }
  for (const std::string_view key : {"context_length", "rope.freq_base", "attention.layer_norm_rms_epsilon"})
    CHECK_FALSE(llama.contains(key));
  CHECK(gpt2.contains("context_length"));  // of the embedding of positions
  CHECK(sizing_keys("none").contains("embedding_length"));
}
