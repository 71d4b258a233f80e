// Tests that converting a checkpoint by its map and back yields the same tensors, and which conversions cannot be
// inverted.
#include "stages/huggingface/map/restored_checkpoint.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <map>
#include <numeric>

#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/tensor_map.h"
#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

using Dims = std::vector<std::uint64_t>;
using Tensors = std::map<std::string, Dims>;  // row length first, as in GGUF

// A checkpoint of an architecture. Within a tensor, every value is different.
class RestoredCase {
 public:
  RestoredCase(const std::string& architecture, const std::string& config, const Tensors& tensors)
      : config_(folder_.file("config.json")) {
    write_text(config_, config);
    auto map = read_architecture(architecture);
    CAPTURE(map ? "" : render(map.error()));
    REQUIRE(map);
    map_ = std::move(map).value();
    const boost::json::object object = boost::json::parse(config).as_object();
    facts_.emplace(folder_.path(), object, map_.values);
    facts_->set("option", boost::json::object{{"draft_head", true}, {"draft_head_only", false}, {"class", ""}});
    for (const auto& [name, dims] : tensors) {
      Shape shape;
      for (const std::uint64_t dim : dims) shape.dims[shape.rank++] = dim;
      std::vector<float> values(shape.elements());
      std::iota(values.begin(), values.end(), 1000.0f * static_cast<float>(tensors_.size()));
      tensors_.push_back({name, expressions::constant(shape, std::move(values)).value()});
    }
  }

  // Returns the GGUF model. GGUF shapes have no trailing dimensions of 1.
  Model there() const {
    auto mapped = rename_tensors(map_, *facts_, tensors_);
    REQUIRE(mapped);
    auto tensors = map_tensors(map_, *facts_, mapped.value(), "folder");
    CAPTURE(tensors ? "" : render(tensors.error()));
    REQUIRE(tensors);
    Model model;
    model.metadata.set("general.architecture", metadata_string(map_.name));
    for (MappedTensor& each : tensors.value()) {
      Tensor& tensor = model.tensors.emplace_back();
      tensor.name = each.name;
      tensor.expression = expressions::reshape(each.values, without_trailing_ones(each.values->shape)).value();
      tensor.type = tensor.expression->type;
    }
    return model;
  }

  Result<Model> back(Model model) const { return restore_checkpoint(std::move(model), {config_, map_path_, {}}); }
  void use_map(std::string path) { map_path_ = std::move(path); }
  std::string fault(Model model) const {
    const auto result = back(std::move(model));
    if (result) return "";
    std::string text = render(result.error());
    const std::string folder = folder_.path();
    for (std::size_t at; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "DIR");
    return text;
  }

  void write_config(const std::string& config) const { write_text(config_, config); }

  void check_same() const { check_same(there()); }
  void check_same(Model model) const {
    auto restored = back(std::move(model));
    CAPTURE(restored ? "" : render(restored.error()));
    REQUIRE(restored);
    std::vector<Tensor>& tensors = restored.value().tensors;
    std::ranges::sort(tensors, {}, &Tensor::name);
    REQUIRE(tensors.size() == tensors_.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      CAPTURE(tensors_[i].name);
      CHECK(tensors[i].name == tensors_[i].name);
      CHECK(tensors[i].shape() == tensors_[i].values->shape);
      CHECK(expression_values(*tensors[i].expression) == expression_values(*tensors_[i].values));
    }
  }

 private:
  TempDir folder_;
  std::string config_, map_path_;
  Architecture map_;
  std::optional<Facts> facts_;
  std::vector<NamedTensor> tensors_;  // by name
};

// Returns such a checkpoint, given the map's name or path and a class that it serves.
RestoredCase made(const std::string& map, const std::string& members, const Tensors& tensors,
                  const std::string& served) {
  return {map, R"({"architectures": [")" + served + R"("], )" + members + "}", tensors};
}

}  // namespace

TEST_CASE("rows of heads are restored to their order, and experts are separated") {
  made("llama", R"("num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "num_local_experts": 3)",
       {{"model.embed_tokens.weight", {4, 5}},
        {"model.layers.0.block_sparse_moe.experts.0.w1.weight", {4, 6}},
        {"model.layers.0.block_sparse_moe.experts.0.w2.weight", {6, 4}},
        {"model.layers.0.block_sparse_moe.experts.0.w3.weight", {4, 6}},
        {"model.layers.0.block_sparse_moe.experts.1.w1.weight", {4, 6}},
        {"model.layers.0.block_sparse_moe.experts.1.w2.weight", {6, 4}},
        {"model.layers.0.block_sparse_moe.experts.1.w3.weight", {4, 6}},
        {"model.layers.0.block_sparse_moe.experts.2.w1.weight", {4, 6}},
        {"model.layers.0.block_sparse_moe.experts.2.w2.weight", {6, 4}},
        {"model.layers.0.block_sparse_moe.experts.2.w3.weight", {4, 6}},
        {"model.layers.0.block_sparse_moe.gate.weight", {4, 3}},
        {"model.layers.0.input_layernorm.weight", {4}},
        {"model.layers.0.post_attention_layernorm.weight", {4}},
        {"model.layers.0.self_attn.k_proj.bias", {4}},
        {"model.layers.0.self_attn.k_proj.weight", {4, 4}},
        {"model.layers.0.self_attn.q_proj.bias", {8}},
        {"model.layers.0.self_attn.q_proj.weight", {4, 8}},
        {"model.norm.weight", {4}}},
       "LlamaForCausalLM")
      .check_same();
}

TEST_CASE("head counts missing in config.json come from the model if they match transformers' defaults") {
  // Mistral has 8 key heads by default; the model was converted from a config.json that states them explicitly.
  const RestoredCase checkpoint =
      made("llama",
           R"("model_type": "mistral", "num_hidden_layers": 1, "num_attention_heads": 32, "num_key_value_heads": 8)",
           {{"model.embed_tokens.weight", {4, 5}},
            {"model.layers.0.input_layernorm.weight", {4}},
            {"model.layers.0.post_attention_layernorm.weight", {4}},
            {"model.layers.0.self_attn.k_proj.weight", {4, 64}},
            {"model.layers.0.self_attn.q_proj.weight", {4, 64}},
            {"model.norm.weight", {4}}},
           "MistralForCausalLM");
  const auto with_heads = [&](std::uint64_t heads) {
    Model model = checkpoint.there();
    model.metadata.set("llama.attention.head_count_kv", metadata_unsigned(MetadataType::kUint32, heads));
    return model;
  };
  checkpoint.write_config(
      R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "num_hidden_layers": 1, "num_attention_heads": 32})");
  checkpoint.check_same(with_heads(8));
  CHECK(checkpoint.fault(with_heads(4)) ==
        "DIR/config.json: error: attention.head_count_kv is '8' in it, but 4 in the model\n"
        "  help: use the config.json of the checkpoint that the model was converted from\n");
}

TEST_CASE("a stack of one expert, a single matrix in a GGUF, is that expert") {
  made("qwen3moe", R"("num_hidden_layers": 1, "num_experts": 1)",
       {{"model.layers.0.mlp.experts.0.down_proj.weight", {6, 4}},
        {"model.layers.0.mlp.experts.0.gate_proj.weight", {4, 6}},
        {"model.layers.0.mlp.experts.0.up_proj.weight", {4, 6}}},
       "Qwen3MoeForCausalLM")
      .check_same();
}

TEST_CASE("added values are subtracted, and transposed tensors are transposed back") {
  made("gemma", R"("num_hidden_layers": 1)",
       {{"model.embed_tokens.weight", {4, 5}},
        {"model.layers.0.input_layernorm.weight", {4}},
        {"model.norm.weight", {4}}},
       "GemmaForCausalLM")
      .check_same();
  made("gpt2", R"("n_layer": 1)",
       {{"h.0.attn.c_attn.bias", {12}},
        {"h.0.attn.c_attn.weight", {12, 4}},
        {"wpe.weight", {4, 7}},
        {"wte.weight", {4, 5}}},
       "GPT2LMHeadModel")
      .check_same();
}

TEST_CASE("tensors that were split from one are joined") {
  // Latent attention: keys are transposed, values are not.
  made("deepseek2",
       R"("num_hidden_layers": 1, "qk_nope_head_dim": 3, "v_head_dim": 2, "num_key_value_heads": 4,
          "n_shared_experts": 1)",
       {{"model.layers.0.mlp.shared_experts.up_proj.weight", {6, 4}},
        {"model.layers.0.self_attn.kv_b_proj.weight", {7, 20}}},
       "DeepseekV2ForCausalLM")
      .check_same();
  // Queries, keys and values of a group are adjacent.
  made("internlm2", R"("num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2)",
       {{"model.layers.0.attention.wqkv.weight", {16, 32}},
        {"model.norm.weight", {16}},
        {"model.tok_embeddings.weight", {16, 5}}},
       "InternLM2ForCausalLM")
      .check_same();
  // Parts of one tensor that became two, one of them concatenated from three parts; a dimension of 1; the exponential.
  made("qwen3next",
       R"("num_hidden_layers": 1, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 3,
          "linear_value_head_dim": 5, "mtp_num_hidden_layers": 1)",
       {{"model.layers.0.linear_attn.conv1d.weight", {4, 1, 32}},
        {"model.layers.0.linear_attn.in_proj_qkvz.weight", {8, 52}},
        {"mtp.norm.weight", {8}}},
       "Qwen3NextForCausalLM")
      .check_same();
}

TEST_CASE("quantized tensors whose rows move become F32 first, others are kept") {
  const RestoredCase test = made("llama", R"("num_hidden_layers": 1, "num_attention_heads": 2)",
                                 {{"model.embed_tokens.weight", {32, 4}},
                                  {"model.layers.0.input_layernorm.weight", {4}},
                                  {"model.layers.0.post_attention_layernorm.weight", {4}},
                                  {"model.layers.0.self_attn.q_proj.weight", {32, 4}},
                                  {"model.norm.weight", {4}}},
                                 "LlamaForCausalLM");
  Model model = test.there();
  for (Tensor& tensor : model.tensors) {
    if (tensor.shape().rank < 2) continue;
    const TypeInfo& type = type_named("Q8_0");
    tensor.expression = expressions::extent(type, tensor.shape(), {nullptr, 0, 136, false}).value();
    tensor.type = &type_named("BF16");
  }
  const auto restored = test.back(std::move(model));
  REQUIRE(restored);
  for (const Tensor& tensor : restored.value().tensors) {
    if (tensor.name == "model.embed_tokens.weight") CHECK(tensor.source_type().name == "Q8_0");
    if (tensor.name.find("q_proj") == std::string::npos) continue;
    CHECK(tensor.source_type().name == "F32");
    CHECK(tensor.type->name == "BF16");
  }
}

TEST_CASE("tensors that cannot be restored are reported, similar ones once") {
  const Tensors tensors{{"model.embed_tokens.weight", {4, 5}},
                        {"model.layers.0.input_layernorm.weight", {4}},
                        {"model.layers.0.post_attention_layernorm.weight", {4}},
                        {"model.layers.0.self_attn.q_proj.weight", {4, 4}},
                        {"model.norm.weight", {4}}};
  const RestoredCase test =
      made("llama", R"("num_hidden_layers": 1, "num_attention_heads": 2)", tensors, "LlamaForCausalLM");
  Model model = test.there();
  Tensor strange = model.tensors[0];
  for (const char* name : {"blk.0.strange", "blk.1.strange"}) {
    strange.name = name;
    model.tensors.push_back(strange);
  }
  CHECK(test.fault(model) ==
        "error: tensor 'blk.0.strange' (and 1 more) cannot be restored: no rule in architecture 'llama' creates it\n"
        "  help: use `names: gguf` to write the tensors as they are\n");
  model.metadata.set("general.architecture", metadata_string("qwen2"));
  CHECK(test.fault(model) ==
        "DIR/config.json: error: is for architecture 'llama', but the model to write has \"qwen2\"\n"
        "  help: use the config.json of the checkpoint that the model was converted from\n");

  const RestoredCase no_heads = made("llama", R"("num_hidden_layers": 1)", {}, "LlamaForCausalLM");
  const std::string missing = no_heads.fault(test.there());
  CAPTURE(missing);
  CHECK(missing.find("tensor 'blk.0.attn_q.weight' cannot be restored: 'num_attention_heads' is missing\n"
                     "  see the rule at llama.yaml:") != std::string::npos);

  const RestoredCase experts =
      made("llama", R"("num_hidden_layers": 1, "num_local_experts": 2)", {}, "LlamaForCausalLM");
  Model one_expert;
  for (const char* part : {"gate", "up", "down"}) {
    strange.name = std::string("blk.0.ffn_") + part + "_exps.weight";
    one_expert.tensors.push_back(strange);
  }
  CHECK(experts.fault(one_expert).find("4 x 5 is not a stack of 2\n") != std::string::npos);
  one_expert.tensors.pop_back();
  CHECK(
      experts.fault(one_expert).find("'blk.0.ffn_down_exps.weight', which is made from the same tensor, is missing") !=
      std::string::npos);
}

TEST_CASE("dropped rows, and names that cannot be undone, are not guessed") {
  const TempDir folder;
  const auto of_map = [&](const std::string& rules) {
    write_text(folder.file("a.yaml"), "name: m\nlayers: 1\n" + rules);
    RestoredCase test(folder.file("a.yaml"), "{}", {{"a.weight", {4, 5}}});
    test.use_map(folder.file("a.yaml"));
    return test.fault(test.there());
  };
  CHECK(of_map("tensors: [{from: a, to: b}]").empty());
  CHECK(of_map("tensors: [{from: a, to: b, do: [{slice: [1, 2]}]}]").find("parts may have been dropped") !=
        std::string::npos);
  CHECK(of_map("tensors: [{from: [c, a], to: b}]\nnames: [{drop: c}]")
            .find("cannot determine the checkpoint's name of 'c.weight': 'c.weight' would be dropped") !=
        std::string::npos);
  CHECK(of_map("tensors: [{from: c, to: b}]\nnames: [{match: a, with: c}]").empty());
  CHECK(of_map("tensors: [{from: c, to: b}]\nnames: [{match: a, with: c}]\nnames_back: [{match: c, with: d}]")
            .find("'d.weight' would become 'd.weight'") != std::string::npos);
  CHECK(of_map("tensors: [{together: [{to: b, concat: [a]}]}]").find("the number of rows of each is not known") !=
        std::string::npos);
}
