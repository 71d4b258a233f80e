// Converts checkpoint folders created here to GGUF and reads them back; also tests invalid folders.

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <iostream>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/conversion.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch_builder.h"

using namespace ggufmill;
using namespace std::string_literals;
namespace json = boost::json;

namespace {

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4, "num_attention_heads": 1, "num_hidden_layers": 1,
        "vocab_size": 5, "intermediate_size": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 16})";
constexpr const char* kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4}, "merges": ["a b"]},
        "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})";

// Returns an F32 tensor whose element i is first + i.
SafetensorsTensor tensor(const std::string& name, const std::vector<std::uint64_t>& dims, float first) {
  std::size_t elements = 1;
  for (const std::uint64_t dim : dims) elements *= dim;
  std::string data;
  for (std::size_t i = 0; i < elements; ++i) {
    const float value = first + static_cast<float>(i);
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return {name, "F32", dims, data};
}

std::vector<SafetensorsTensor> llama() {
  return {tensor("model.embed_tokens.weight", {5, 4}, 0),
          tensor("model.norm.weight", {4}, 1),
          tensor("model.layers.0.input_layernorm.weight", {4}, 2),
          tensor("model.layers.0.post_attention_layernorm.weight", {4}, 3),
          tensor("model.layers.0.self_attn.q_proj.weight", {4, 4}, 100),
          tensor("model.layers.0.self_attn.k_proj.weight", {4, 4}, 200),
          tensor("model.layers.0.self_attn.v_proj.weight", {4, 4}, 300),
          tensor("model.layers.0.self_attn.o_proj.weight", {4, 4}, 400),
          tensor("model.layers.0.mlp.gate_proj.weight", {8, 4}, 500),
          tensor("model.layers.0.mlp.up_proj.weight", {8, 4}, 600),
          tensor("model.layers.0.mlp.down_proj.weight", {4, 8}, 700)};
}

class Folder {
 public:
  Folder() {
    put("config.json", kConfig);
    put("tokenizer.json", kTokenizer);
    put("tokenizer_config.json", R"({"model_max_length": 16})");
    put("model.safetensors", safetensors_bytes(llama()));
  }
  Folder& put(const std::string& name, std::string_view text) {
    write_text(folder_.file(name), text);
    return *this;
  }
  // Changes values of config.json; `changes` is a JSON object, in which null removes a key.
  Folder& config(const std::string& changes) {
    json::object config = json::parse(kConfig).as_object();
    const json::value other = json::parse(changes);
    for (const auto& change : other.as_object())
      change.value().is_null() ? (void)config.erase(change.key()) : (void)(config[change.key()] = change.value());
    return put("config.json", json::serialize(config));
  }
  Folder& make_sparse(const std::string& name, std::uint64_t bytes) {
    fs::resize_file(folder_.file(name), bytes);
    return *this;
  }
  std::string path() const { return folder_.path(); }
  std::string file(const std::string& name) const { return folder_.file(name); }

  huggingface::SourceOptions options() const {
    huggingface::SourceOptions options;
    options.folder = path();
    options.pre = "default";
    options.allow_missing = true;  // tests of one feature need no complete model
    return options;
  }
  Result<huggingface::ConvertedCheckpoint> read(const huggingface::SourceOptions& options) const {
    return read_huggingface(options, read_safetensors);
  }
  Result<huggingface::ConvertedCheckpoint> read() const { return read(options()); }
  // Returns the error, which must be about bad input, with the folder's path replaced by DIR.
  std::string fault() const {
    huggingface::SourceOptions strict = options();
    strict.allow_missing = false;
    const auto result = read(strict);
    if (result) return "";
    CHECK(result.error().code == ExitCode::kBadInput);
    std::string text = render(result.error());
    for (std::size_t at; (at = text.find(path())) != std::string::npos;) text.replace(at, path().size(), "DIR");
    return text;
  }

 private:
  TempDir folder_;
};

void run(const std::string& source, const std::string& out) {
  const auto context = Context::create();
  REQUIRE(context);
  const std::string options = source.starts_with('{') ? source.substr(1) : fmt::format("path: {}}}", source);
  const auto job =
      context.value().parse_job(fmt::format("version: 1\nsource: {{huggingface: {{allow_missing: true, {}}}\n"
                                            "outputs: [{{gguf: {}}}]\n",
                                            options, out),
                                "test.yaml");
  if (!job) FAIL(render(job.error()));
  const auto plan = context.value().plan(job.value());
  if (!plan) FAIL(render(plan.error()));
  if (const auto report = context.value().run(plan.value(), {}); !report) FAIL(render(report.error()));
}

std::vector<float> floats(const std::string& path, const Tensor& tensor) {
  const Extent& extent = *tensor.expression->as_extent();
  const std::string bytes = read_text(path).substr(extent.offset, extent.bytes);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) UNSCOPED_INFO(text << "does not say: " << part);
  return found;
}

}  // namespace

TEST_CASE("a checkpoint becomes a GGUF file") {
  const Folder checkpoint;
  const TempDir folder;
  const std::string out = folder.file("out.gguf");
  run(fmt::format("{{path: {}, outtype: f32, pre: default}}", checkpoint.path()), out);
  const auto model = read_gguf(out);
  REQUIRE(model);
  const Metadata& metadata = model.value().metadata;
  CHECK(as_string(*metadata.find("general.architecture")) == "llama");
  CHECK(as_unsigned(*metadata.find("llama.embedding_length")) == 4);
  CHECK(as_string(*metadata.find("tokenizer.ggml.pre")) == "default");
  CHECK(as_array(*metadata.find("tokenizer.ggml.tokens"))->count == 5);
  std::string names;
  for (const Tensor& each : model.value().tensors) names += each.name + " ";
  CHECK(names ==
        "token_embd.weight blk.0.attn_norm.weight blk.0.ffn_down.weight blk.0.ffn_gate.weight blk.0.ffn_up.weight "
        "blk.0.ffn_norm.weight blk.0.attn_k.weight blk.0.attn_output.weight blk.0.attn_q.weight blk.0.attn_v.weight "
        "output_norm.weight ");
  CHECK(floats(out, model.value().tensors[0])[19] == 19);
  // One head of four rows: the halves are interleaved.
  CHECK(floats(out, model.value().tensors[8]) ==
        std::vector<float>{100, 101, 102, 103, 108, 109, 110, 111, 104, 105, 106, 107, 112, 113, 114, 115});
}

namespace {

// Rows of one block of Q8_0 each, as a quantized GGUF has them; row r has the scale 1 and values from r on.
std::vector<std::string> q8_0_rows(std::size_t count) {
  std::vector<std::string> rows;
  for (std::size_t row = 0; row < count; ++row) {
    rows.emplace_back("\x00\x3c"s);
    for (std::size_t i = 0; i < 32; ++i) rows.back() += static_cast<char>(row + i);
  }
  return rows;
}

// A checkpoint of GGML blocks: the embedding, and the query weights with the halves of their head apart.
void put_blocks(Folder& checkpoint) {
  const std::vector<std::string> rows = q8_0_rows(5);
  const std::string all = rows[0] + rows[1] + rows[2] + rows[3] + rows[4];
  checkpoint
      .config(R"({"hidden_size": 32, "num_attention_heads": 1, "head_dim": 4,
                  "quantization_config": {"quant_method": "modelopt", "quant_algo": "Q8_0", "packing": "ggml",
                                          "group_size": 32, "block_payload_bytes": 34}})")
      .put("model.safetensors",
           safetensors_bytes(
               {{"model.embed_tokens.weight", "U8", {5, 1, 34}, all},
                {"model.layers.0.self_attn.q_proj.weight", "U8", {4, 1, 34}, rows[0] + rows[2] + rows[1] + rows[3]},
                tensor("model.layers.0.input_layernorm.weight", {32}, 1),
                tensor("model.layers.0.post_attention_layernorm.weight", {32}, 1),
                tensor("model.norm.weight", {32}, 1)}));
}

std::string bytes_in(const std::string& path, const Tensor& tensor) {
  const Extent& extent = *tensor.expression->as_extent();
  return read_text(path).substr(extent.offset, extent.bytes);
}

}  // namespace

TEST_CASE("a checkpoint of GGML blocks gives back the bytes of the GGUF that they are from") {
  Folder checkpoint;
  put_blocks(checkpoint);
  const TempDir folder;
  const std::string out = folder.file("out.gguf");
  run(fmt::format("{{path: {}, pre: default}}", checkpoint.path()), out);
  const auto model = read_gguf(out);
  REQUIRE(model);
  CHECK(as_unsigned(*model.value().metadata.find("general.file_type")) == 7);
  const std::vector<std::string> rows = q8_0_rows(5);
  REQUIRE(model.value().tensors.size() == 5);
  CHECK(model.value().tensors[3].type->name == "Q8_0");
  CHECK(bytes_in(out, model.value().tensors[0]) == rows[0] + rows[1] + rows[2] + rows[3] + rows[4]);
  CHECK(bytes_in(out, model.value().tensors[3]) == rows[0] + rows[1] + rows[2] + rows[3]);
}

TEST_CASE("GGML blocks are decoded if a type is requested") {
  Folder checkpoint;
  put_blocks(checkpoint);
  const TempDir folder;
  const std::string out = folder.file("out.gguf");
  run(fmt::format("{{path: {}, pre: default, outtype: f32}}", checkpoint.path()), out);
  const auto model = read_gguf(out);
  REQUIRE(model);
  CHECK(as_unsigned(*model.value().metadata.find("general.file_type")) == 0);
  const std::vector<float> values = floats(out, model.value().tensors[3]);
  CHECK(values[31] == 31);
  CHECK(values[3 * 32] == 3);
}

TEST_CASE("an adapter that a checkpoint does not contain") {
  Folder checkpoint;
  auto options = checkpoint.options();
  options.adapter = "query";
  const auto none = checkpoint.read(options);
  REQUIRE(!none);
  CHECK(has(render(none.error()), "checkpoints of 'llama' contain no adapters"));
  checkpoint.config(R"({"architectures": ["XLMRobertaModel"], "lora_adaptations": ["a", "b"]})");
  const auto other = checkpoint.read(options);
  REQUIRE(!other);
  CHECK(has(render(other.error()), "the checkpoint contains no adapter 'query'"));
  CHECK(has(render(other.error()), "set `adapter` in the source to one of 'a', 'b'"));
  checkpoint.config(R"({"architectures": ["XLMRobertaModel"]})");
  const auto plain = checkpoint.read(options);
  REQUIRE(!plain);
  CHECK(has(render(plain.error()), "the checkpoint contains no adapters"));
}

TEST_CASE("a new architecture is a file of the user, outside of the tree") {
  Folder checkpoint;
  checkpoint
      .config(
          R"({"architectures": ["FancyNewForCausalLM"], "fancy_scale": 2.5, "num_hidden_layers": null, "depth": 1})")
      .put("model.safetensors",
           safetensors_bytes({tensor("model.embed_tokens.weight", {5, 4}, 0), tensor("fancy.0.both.weight", {4, 4}, 0),
                              tensor("fancy.0.shift.weight", {4}, 10), tensor("model.norm.weight", {4}, 1)}));
  const std::string unknown = checkpoint.fault();
  CHECK(has(unknown, "DIR/config.json: error: no architecture is known for 'FancyNewForCausalLM'\n"));
  CHECK(has(unknown, "`ggufmill architectures new FOLDER -o mine.yaml`"));

  const TempDir folder;
  write_text(folder.file("mine.yaml"), R"(name: fancy
description: A model that is only here
extends: [decoder, text]
serves: [FancyNewForCausalLM]
layers: depth
metadata:
  - {key: scale, type: float32, value: {product: [fancy_scale, 2]}}
tensors:
  - from: 'fancy.{layer}.both'
    outputs:
      - {to: 'blk.{layer}.ffn_gate', do: [{part: [1, 0, 2]}]}
      - {to: 'blk.{layer}.ffn_up', do: [{part: [1, 1, 2]}]}
  - {from: 'fancy.{layer}.shift', to: 'blk.{layer}.attn_norm', do: [{add: 1}], required: true}
)");
  const std::string out = folder.file("out.gguf");
  run(fmt::format("{{path: {}, outtype: f32, pre: default, architecture: {}}}", checkpoint.path(),
                  folder.file("mine.yaml")),
      out);
  const auto model = read_gguf(out);
  REQUIRE(model);
  CHECK(as_string(*model.value().metadata.find("general.architecture")) == "fancy");
  CHECK(as_number(*model.value().metadata.find("fancy.scale")) == 5);
  CHECK(as_unsigned(*model.value().metadata.find("fancy.block_count")) == 1);
  const auto values = [&](const std::string& name) {
    for (const Tensor& each : model.value().tensors)
      if (each.name == name) return floats(out, each);
    return std::vector<float>{};
  };
  CHECK(values("blk.0.ffn_gate.weight") == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(values("blk.0.ffn_up.weight") == std::vector<float>{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(values("blk.0.attn_norm.weight") == std::vector<float>{11, 12, 13, 14});
}

TEST_CASE("all that was read of a checkpoint is a file of the model") {
  Folder checkpoint;
  checkpoint.put("chat_template.jinja", "a");
  for (const char* folder : {"additional_chat_templates", "1_Pooling"}) fs::create_directory(checkpoint.file(folder));
  checkpoint.put("additional_chat_templates/tools.jinja", "b").put("1_Pooling/config.json", R"({"a": 1})");
  checkpoint.put("mine.yaml",
                 "name: llama\ndescription: A map of the user.\nextends: [llama]\nserves: [Mine]\n"
                 "metadata: [{key: mine, value: {file_value: [\"1_Pooling/config.json\", \"a\"]}}]\n");
  checkpoint.put("general.json", "{}");
  for (const char* name : {"params.json", "rwkv_vocab_v20230424.txt", "tokenizer.jsonl"}) checkpoint.put(name, "{}");
  huggingface::SourceOptions options = checkpoint.options();
  options.architecture = checkpoint.file("mine.yaml");
  options.metadata_file = checkpoint.file("general.json");
  const auto converted = checkpoint.read(options);
  if (!converted) FAIL(render(converted.error()));
  std::vector<std::string> files;
  for (const std::string& path : converted.value().model.paths())
    files.push_back(fs::path(path).lexically_relative(checkpoint.path()).string());
  std::ranges::sort(files);
  CHECK(files == std::vector<std::string>{"1_Pooling/config.json", "additional_chat_templates/tools.jinja",
                                          "chat_template.jinja", "config.json", "general.json", "mine.yaml",
                                          "model.safetensors", "params.json", "rwkv_vocab_v20230424.txt",
                                          "tokenizer.json", "tokenizer.jsonl", "tokenizer_config.json"});
}

TEST_CASE("a type that rows are not whole blocks of is one that F16 stands for") {
  const Folder checkpoint;
  huggingface::SourceOptions options = checkpoint.options();
  options.out_type = OutType::kQ8_0;
  const auto converted = checkpoint.read(options);
  REQUIRE(converted);
  const Tensor& embedding = converted.value().model.tensors.front();
  CHECK(embedding.type->name == "F16");
  REQUIRE(embedding.fallback_from);
  CHECK(embedding.fallback_from->name == "Q8_0");
}

TEST_CASE("a vocabulary alone has the file type of the weights, and no tensors") {
  Folder checkpoint;
  auto tensors = llama();
  for (SafetensorsTensor& each : tensors) {
    each.dtype = "BF16";
    each.data.resize(each.data.size() / 2);
  }
  checkpoint.put("model.safetensors", safetensors_bytes(tensors));
  huggingface::SourceOptions options = checkpoint.options();
  options.vocabulary_only = true;
  const auto converted = checkpoint.read(options);
  REQUIRE(converted);
  CHECK(converted.value().model.tensors.empty());
  CHECK(converted.value().name.file_type == "BF16");
}

TEST_CASE("a default vocabulary beyond the embedding is written with a warning, a stated one refused") {
  Folder checkpoint;
  checkpoint.config(R"({"model_type": "llama", "vocab_size": null})");
  const auto converted = checkpoint.read(checkpoint.options());
  REQUIRE(converted);
  CHECK(converted.value().model.warnings.at(0) ==
        "the tokenizer has 32000 tokens, but the embedding (token_embd.weight) has only 5 rows: vocab_size is "
        "missing in config.json, and the larger default of its model type is used");
  CHECK(converted.value().model.warnings.at(1) ==
        "tensor 'model.embed_tokens.weight' has the shape 4 x 5, but 4 x 32000 is expected; llama.cpp may not load the "
        "model");
  checkpoint.config(R"({"model_type": "llama", "vocab_size": 32000})");
  const auto refused = checkpoint.read(checkpoint.options());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what ==
        "the tokenizer has 32000 tokens, but the embedding (token_embd.weight) has only 5 rows");
}

TEST_CASE("a config.json that transformers refuses is read as it is, with a warning") {
  Folder checkpoint;
  checkpoint.config(R"({"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})");
  const auto converted = checkpoint.read(checkpoint.options());
  REQUIRE(converted);
  REQUIRE(converted.value().model.warnings.size() == 1);
  CHECK(converted.value().model.warnings.front().ends_with(
      "config.json: transformers rejects a value for model type 'llama', so the file is read as is, without class "
      "defaults, as convert_hf_to_gguf.py does"));
}

TEST_CASE("options that a checkpoint has no use for") {
  const Folder checkpoint;
  huggingface::SourceOptions options = checkpoint.options();
  options.fuse_gate_up_experts = options.fp8_as_q8_0 = true;
  const auto converted = checkpoint.read(options);
  REQUIRE(converted);
  CHECK(converted.value().model.warnings ==
        std::vector<std::string>{"no experts are fused: no layer has gate and up experts",
                                 "no 8-bit floats are written as Q8_0: no tensor is stored in them"});
}

TEST_CASE("a draft of a checkpoint without layers that predict further tokens") {
  const Folder checkpoint;
  const auto [option, text] = GENERATE(table<std::string, std::string>(
      {{"part", "no draft can be made"}, {"draft_head", "the draft head cannot be omitted"}}));
  huggingface::SourceOptions options = checkpoint.options();
  if (option == "part") options.part = ModelPart::kDraft;
  if (option == "draft_head") options.draft_head = huggingface::DraftHead::kLeaveOut;
  const auto refused = checkpoint.read(options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(has(render(refused.error()), text + ": the map of 'llama' has no layers that predict further tokens"));
}

TEST_CASE("a DSpark draft of a checkpoint that has none") {
  const Folder checkpoint;
  huggingface::SourceOptions options = checkpoint.options();
  options.dspark = true;
  const auto refused = checkpoint.read(options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(has(render(refused.error()), "checkpoints of 'llama' contain no DSpark draft"));
}

namespace {

// Draws two tokens of its own from the five of the target, which is any other folder.
void make_eagle3_draft(Folder& folder, const std::vector<std::int64_t>& differences) {
  const std::string bytes(reinterpret_cast<const char*>(differences.data()), differences.size() * sizeof(std::int64_t));
  folder.config(R"({"draft_vocab_size": 2, "eagle_aux_hidden_state_layer_ids": [0, 1, 1]})");
  folder.put("model.safetensors", safetensors_bytes({tensor("fc.weight", {4, 12}, 0),
                                                     tensor("midlayer.hidden_norm.weight", {4}, 1),
                                                     tensor("midlayer.input_layernorm.weight", {4}, 2),
                                                     tensor("midlayer.self_attn.q_proj.weight", {4, 8}, 100),
                                                     tensor("norm.weight", {4}, 3),
                                                     tensor("lm_head.weight", {2, 4}, 4),
                                                     {"d2t", "I64", {differences.size()}, bytes},
                                                     {"t2d", "BOOL", {5}, "\1\0\0\1\0"s}}));
}

std::string fault_of_draft(const std::vector<std::int64_t>& differences) {
  const Folder target;
  Folder draft;
  make_eagle3_draft(draft, differences);
  huggingface::SourceOptions options = draft.options();
  options.target = target.path();
  const auto read = draft.read(options);
  return read ? "" : render(read.error());
}

}  // namespace

TEST_CASE("a draft of one layer with a vocabulary of its own is an EAGLE-3 model whatever its class") {
  const Folder target;
  Folder draft;
  make_eagle3_draft(draft, {1, 2});
  huggingface::SourceOptions options = draft.options();
  options.target = target.path();
  const auto read = draft.read(options);
  if (!read) FAIL(render(read.error()));
  const Model& model = read.value().model;
  CHECK(*model.metadata.find("general.architecture") == metadata_string("eagle3"));
  CHECK(model.tensors.back().name == "d2t");
  CHECK(model.tensors.back().type->name == "I64");
  CHECK(std::ranges::count(model.paths(), (fs::path(target.path()) / "config.json").string()) == 1);
}

TEST_CASE("the tokens of a draft must be different tokens of its target") {
  CHECK(has(fault_of_draft({0, 4}), "token 1 stands for a token outside the target's vocabulary of 5"));
  CHECK(has(fault_of_draft({-1, 0}), "token 0 stands for a token outside the target's vocabulary of 5"));
  CHECK(has(fault_of_draft({1, 0}), "two tokens stand for the target's token 1"));
}

TEST_CASE("a draft with a target of another vocabulary is refused") {
  Folder target, draft;
  target.config(R"({"vocab_size": 6})");
  make_eagle3_draft(draft, {1, 2});
  huggingface::SourceOptions options = draft.options();
  options.target = target.path();
  const auto read = draft.read(options);
  REQUIRE_FALSE(read);
  CHECK(has(render(read.error()), "the draft is for a vocabulary of '5' tokens, but that of the target is '6'"));
}

TEST_CASE("a draft without its target is refused") {
  Folder draft;
  make_eagle3_draft(draft, {1, 2});
  const std::string error = draft.fault();
  CHECK(has(error, "DIR: error: is a draft for another model, whose config.json and tokenizer are needed"));
  CHECK(has(error, "`target: FOLDER` in the source"));
}

TEST_CASE("a target for a model that is not a draft is refused") {
  const Folder model, target;
  huggingface::SourceOptions options = model.options();
  options.target = target.path();
  const auto read = model.read(options);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ExitCode::kUsage);
  CHECK(has(render(read.error()), "the map 'llama' does not describe a draft for another model"));
}

TEST_CASE("gates and ups of experts are not fused where llama.cpp has no tensor for both") {
  Folder checkpoint;
  auto tensors = llama();
  tensors.push_back(tensor("model.layers.0.block_sparse_moe.gate.weight", {1, 4}, 0));
  for (const char* part : {"w1", "w2", "w3"})
    tensors.push_back(tensor(fmt::format("model.layers.0.block_sparse_moe.experts.0.{}.weight", part), {4, 4}, 0));
  checkpoint.config(R"({"num_local_experts": 1})").put("model.safetensors", safetensors_bytes(tensors));
  huggingface::SourceOptions options = checkpoint.options();
  CHECK(checkpoint.read(options));
  options.fuse_gate_up_experts = true;
  const auto refused = checkpoint.read(options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(refused.error().what ==
        "fuse_gate_up_experts is not possible: llama.cpp has no tensor for fused gate and up experts in 'llama'");
}

TEST_CASE("names without `model.` are those of a decoder") {
  Folder checkpoint;
  auto tensors = llama();
  for (SafetensorsTensor& each : tensors) each.name.erase(0, 6);
  checkpoint.put("model.safetensors", safetensors_bytes(tensors));
  const auto bare = checkpoint.read();
  REQUIRE(bare);
  const auto whole = Folder().read();
  REQUIRE(whole);
  REQUIRE(bare.value().model.tensors.size() == whole.value().model.tensors.size());
  for (std::size_t i = 0; i < bare.value().model.tensors.size(); ++i)
    CHECK(bare.value().model.tensors[i].name == whole.value().model.tensors[i].name);
}

TEST_CASE("a Qwen 3 model ranks where a name or the card says so") {
  const auto labels = [](Folder& checkpoint) {
    checkpoint.put("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "no": 2, "yes": 3, "d": 4},
                                   "merges": []}, "pre_tokenizer": {"type": "ByteLevel"},
                                   "decoder": {"type": "ByteLevel"}})");
    const auto converted = checkpoint.read();
    if (!converted) FAIL(render(converted.error()));
    const Model& model = converted.value().model;
    const bool ranks = model.metadata.find("qwen3.classifier.output_labels") != nullptr;
    CHECK(ranks == (model.metadata.find("tokenizer.chat_template.rerank") != nullptr));
    CHECK(ranks ==
          std::ranges::any_of(model.tensors, [](const Tensor& each) { return each.name == "cls.output.weight"; }));
    if (ranks) {
      CHECK(as_unsigned(*model.metadata.find("qwen3.pooling_type")) == 4);
    }
    return ranks;
  };
  const std::string tied = R"("tie_word_embeddings": true, "head_dim": 4)";
  const auto config = [&](const std::string& more) {
    return fmt::format(R"({{"architectures": ["Qwen3ForCausalLM"], {}{}}})", tied, more);
  };
  Folder plain;
  CHECK_FALSE(labels(plain.config(config(""))));
  Folder named;
  CHECK(labels(named.config(config(R"(, "_name_or_path": "org/QWEN3-Reranker-0.6B")"))));
  Folder card;
  CHECK(labels(card.config(config("")).put("README.md", "---\nlicense: mit\n---\n# Qwen3-VL-Reranker\n")));
  Folder other_card;
  CHECK_FALSE(labels(other_card.config(config("")).put("README.md", "About Qwen3-Reranker\n")));
  Folder classified;
  CHECK(labels(classified.config(
      R"({"architectures": ["Qwen3ForSequenceClassification"], "text_config": {"architectures": ["Qwen3ForCausalLM"]}, )" +
      tied + "}")));
}

TEST_CASE("for a known model type the path that was given counts, not _name_or_path") {
  const auto ranks = [](const std::string& folder) {
    huggingface::SourceOptions options;
    options.folder = folder;
    options.pre = "default";
    options.allow_missing = true;
    const auto converted = read_huggingface(options, read_safetensors);
    if (!converted) FAIL(render(converted.error()));
    return converted.value().model.metadata.find("qwen3.classifier.output_labels") != nullptr;
  };
  Folder checkpoint;
  checkpoint
      .config(
          R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "tie_word_embeddings": true, "head_dim": 4,
              "_name_or_path": "org/Qwen3-Reranker-0.6B"})")
      .put("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "no": 2, "yes": 3, "d": 4},
                                 "merges": []}, "pre_tokenizer": {"type": "ByteLevel"},
                                 "decoder": {"type": "ByteLevel"}})");
  CHECK_FALSE(ranks(checkpoint.path()));
  const TempDir other;
  const fs::path inside = other.path() / "Qwen3-Reranker-0.6B" / "snapshot";
  fs::create_directories(inside.parent_path());
  fs::copy(checkpoint.path(), inside);
  checkpoint.config(R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "tie_word_embeddings": true,
                        "head_dim": 4})");
  fs::copy(checkpoint.file("config.json"), inside / "config.json", fs::copy_options::overwrite_existing);
  CHECK(ranks(inside));
}

TEST_CASE("a Qwen 3 reranker without the two tokens is refused") {
  Folder checkpoint;
  checkpoint.config(
      R"({"architectures": ["Qwen3ForCausalLM"], "tie_word_embeddings": true, "_name_or_path": "qwen3-reranker"})");
  CHECK(has(checkpoint.fault(), "the tokenizer has no token 'yes'"));
}

TEST_CASE("checkpoints whose class is served, but that are something else") {
  Folder chatglm;
  Folder dna;
  CHECK(has(dna.put("tokenizer_config.json", R"({"tokenizer_class": "HybridDNATokenizer"})").fault(),
            "has the HybridDNA tokenizer, which is code in its repository"));
  CHECK(has(chatglm.config(R"({"architectures": ["ChatGLMModel"], "_name_or_path": "THUDM/chatglm3-6b"})").fault(),
            "is ChatGLM3, whose tokenizer is code in its repository"));
}

TEST_CASE("an adapter is called one, with the model that it adapts") {
  Folder adapter;
  fs::remove(adapter.file("config.json"));
  adapter.put("adapter_config.json", R"({"base_model_name_or_path": "org/base"})");
  CHECK(adapter.fault() ==
        "DIR: error: is a LoRA adapter, not a model\n"
        "  help: to convert it: source: {lora: {adapter: DIR, base: FOLDER}}; to convert its base model ('org/base'), "
        "give that model's folder\n");
  // The files of a trainer beside it are not weights of a model.
  Folder trained;
  fs::rename(trained.file("model.safetensors"), trained.file("adapter_model.safetensors"));
  trained.put("adapter_config.json", "{}").put("optimizer.bin", "").put("training_args.bin", "");
  CHECK(has(trained.fault(), "DIR: error: is a LoRA adapter, not a model\n"));
  trained.put("model.safetensors", safetensors_bytes(llama()));
  CHECK_FALSE(has(trained.fault(), "is a LoRA adapter"));
}

TEST_CASE("a configuration that is not a file is not called missing") {
  Folder folder;
  fs::remove(folder.file("config.json"));
  fs::create_directory(folder.file("config.json"));
  CHECK(has(folder.fault(), "DIR/config.json: error: is a folder, not a file\n"));
  Folder pipe;
  fs::remove(pipe.file("config.json"));
  REQUIRE(::mkfifo(pipe.file("config.json").c_str(), 0600) == 0);
  CHECK(has(pipe.fault(), "DIR/config.json: error: is a pipe, not a file\n"));
  Folder link;
  fs::remove(link.file("config.json"));
  fs::create_symlink("nowhere", link.file("config.json"));
  CHECK(has(link.fault(), "DIR/config.json: error: is a broken link, not a file\n"));
}

TEST_CASE("tensors that no rule names, and tensors that are missing") {
  auto tensors = llama();
  tensors.push_back(tensor("model.layers.0.strange.weight", {4}, 0));
  tensors.push_back(tensor("model.layers.1.input_layernorm.weight", {4}, 0));
  const std::string strange = Folder().put("model.safetensors", safetensors_bytes(tensors)).fault();
  CHECK(has(
      strange,
      "DIR: error: tensor 'model.layers.0.strange.weight': no rule in architecture 'llama' matches it (F32 of 4)\n"));
  CHECK(has(strange, "`ggufmill architectures new DIR --like llama -o mine.yaml`, write a rule for it"));
  tensors = llama();
  tensors.erase(tensors.begin() + 2);
  CHECK(has(Folder().put("model.safetensors", safetensors_bytes(tensors)).fault(),
            "DIR: error: tensor 'model.layers.0.input_layernorm' is missing\n"));
}

TEST_CASE("files that were not read are named if they can be read") {
  auto tensors = llama();
  const SafetensorsTensor last = tensors.back();
  tensors.pop_back();
  const auto fault = [&](const char* name) {
    Folder folder;
    fs::remove(folder.file("model.safetensors"));
    return folder.put(name, safetensors_bytes(tensors)).put("rest.safetensors", safetensors_bytes({last})).fault();
  };
  CHECK(has(fault("model-1.safetensors"),
            "rest.safetensors in the folder was not read: without an index, only "
            "model*.safetensors are\n"));
  // PyTorch files are read alone.
  Folder torch;
  fs::rename(torch.file("model.safetensors"), torch.file("rest.safetensors"));
  torch.put("pytorch_model.bin", torch_file({{"model.norm.weight", "FloatStorage", {4}, std::string(16, 0)}}));
  CHECK(has(torch.fault(), "tensors are missing"));
  CHECK_FALSE(has(torch.fault(), "rest.safetensors"));
}

TEST_CASE("shards and entries of the index that are missing") {
  const std::string index = safetensors_index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  Folder checkpoint;
  fs::remove(checkpoint.file("model.safetensors"));
  CHECK(!checkpoint.fault().empty());
  checkpoint.put("model.safetensors.index.json", index)
      .put("model-1.safetensors", safetensors_bytes({tensor("a", {1}, 0)}));
  CHECK(has(checkpoint.fault(), "model-2.safetensors"));
  checkpoint.put("model-2.safetensors", safetensors_bytes({tensor("c", {1}, 0)}));
  CHECK(has(checkpoint.fault(), "'b'"));
}

TEST_CASE("weights that contradict config.json or the tokenizer") {
  CHECK(has(Folder().config(R"({"hidden_size": 8})").fault(),
            "DIR/config.json: error: hidden_size is 8; expected 4, the length of the rows of the embedding "
            "(token_embd.weight)\n"));
  CHECK(has(Folder().config(R"({"hidden_size": [4], "head_dim": 4})").fault(),
            "DIR/config.json: error: hidden_size is [4], a list; expected 4, "));
  CHECK(has(Folder().config(R"({"hidden_size": true, "head_dim": 4})").fault(),
            "DIR/config.json: error: hidden_size is true; expected 4, "));
  CHECK(has(Folder().config(R"({"vocab_size": 9})").fault(),
            "DIR: error: the tokenizer has 9 tokens, but the embedding (token_embd.weight) has only 5 rows\n"));
  CHECK(has(Folder().config(R"({"num_attention_heads": 3})").fault(),
            "tensor 'model.layers.0.self_attn.k_proj.weight': 4 rows cannot be split into 3 heads with an even number "
            "of rows\n"));
  CHECK(has(Folder().config(R"({"num_hidden_layers": 2})").fault(),
            "DIR: error: 9 of 20 tensors are missing: all of layer 1 (config.json says 2 layers, the files hold 1)\n"));
}

TEST_CASE("a config.json of absurd numbers is an error, soon") {
  for (const char* key : {"hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size", "intermediate_size",
                          "max_position_embeddings", "num_key_value_heads", "num_local_experts", "head_dim"})
    for (const char* value :
         {"-1", "1e300", "9223372036854775808", "18446744073709551615", "\"x\"", "[]", "{}", "1.5"}) {
      CAPTURE(key, value);
      if (std::string_view(value) == "[]" && std::string_view(key) != "num_hidden_layers" &&
          std::string_view(key) != "num_attention_heads" && std::string_view(key) != "vocab_size" &&
          std::string_view(key) != "hidden_size")
        continue;  // an empty list is not an entry
      CHECK(has(Folder().config(fmt::format("{{\"{}\": {}}}", key, value)).fault(), ": error: "));
    }
  for (const char* change :
       {R"({"hidden_size": 0})", R"({"num_attention_heads": 0})", R"({"num_hidden_layers": 1000000000})",
        R"({"num_hidden_layers": 4294967296})", R"({"vocab_size": 1000000000000})", R"({"rms_norm_eps": 1e300})",
        R"({"rope_theta": 1e300})"})
    CHECK(has(Folder().config(change).fault(), ": error: "));
  auto tensors = llama();
  tensors.push_back(tensor("model.layers.0.block_sparse_moe.experts.0.w1.weight", {4, 4}, 0));
  CHECK(has(Folder()
                .config(R"({"num_local_experts": 1000000000})")
                .put("model.safetensors", safetensors_bytes(tensors))
                .fault(),
            "the number of experts is 1000000000, but the checkpoint has only 12 tensors"));
}

TEST_CASE("a config.json that is none") {
  CHECK(Folder().put("config.json", "[1]").fault() == "DIR/config.json: error: is not a JSON object\n");
  CHECK(has(Folder().put("config.json", "{\"a\": ").fault(), "DIR/config.json: error: "));
  CHECK(has(Folder().put("config.json", "{\"a\": \"\xff\"}").fault(), "DIR/config.json: error: "));
  CHECK(has(Folder().put("config.json", std::string(10000, '[')).fault(), "DIR/config.json: error: "));
  CHECK(has(Folder().config(R"({"architectures": "LlamaForCausalLM"})").fault(),
            "DIR/config.json: error: 'architectures', which names the kind of model, is missing\n"));
  CHECK(has(Folder().config(R"({"architectures": ["Qwen2ForCausaLM"]})").fault(),
            "known in the same family: 'Qwen2ForCausalLM', 'Qwen2Model'"));
  CHECK(has(Folder().make_sparse("config.json", 500 << 20).fault(), "DIR/config.json: error: "));
}

TEST_CASE("a tokenizer that is none") {
  CHECK(has(Folder().make_sparse("tokenizer.json", 500 << 20).fault(), "DIR/tokenizer.json: error: "));
  CHECK(has(Folder().put("tokenizer.json", std::string(10000, '[')).fault(), "DIR/tokenizer.json: error: "));
  CHECK(has(Folder().put("tokenizer.json", "{\"model\": \"\xff\"}").fault(), "DIR/tokenizer.json: error: "));
  CHECK(has(Folder().put("chat_template.jinja", std::string(10 << 20, 'x')).fault(), "chat_template.jinja: error: "));
  CHECK(has(Folder().put("chat_template.jinja", "\xff").fault(),
            "chat_template.jinja:1:1: error: byte 0xff is not UTF-8"));
  Folder checkpoint;
  fs::remove(checkpoint.file("tokenizer.json"));
  CHECK(has(checkpoint.fault(), "DIR: error: no tokenizer: "));
}

TEST_CASE("what the reference refuses is refused with a message that helps, or converted") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  const fs::path hf = *shared / "hf";
  // The case and a part of its error message; an empty message means that it is converted.
  const std::pair<std::string, std::string> kCases[] = {
      {"cohere2-nonzero-bias", "is not 0, and llama.cpp does not support this tensor in 'cohere2'"},
      {"fused-experts", "fuse_gate_up_experts is not possible"},
      {"generation-config-broken", ""},
      {"gpt2-mask-buffer", ""},
      {"missing-expert", "'model.layers.0.block_sparse_moe.experts."},
      {"missing-shard", "model-00002-of-00003.safetensors"},
      {"missing-tensor-in-shard", "'model.layers.0.mlp.up_proj.weight'"},
      {"no-architecture", "'architectures', which names the kind of model, is missing"},
      {"no-config", "has no config.json"},
      {"no-tokenizer", "no tokenizer: tekken.json is missing; tokenizer.json is missing"},
      {"phi3-factor-length", "11 numbers, expected 12"},
      {"quant-method", ""},
      {"stablelm-qk-norms", ""},
      {"unknown-architecture", "no architecture is known for 'FancyNewForCausalLM'"},
      {"unknown-dtype", ""},
      {"unknown-pretokenizer", "llama.cpp does not know the hash of its check text, "},
      {"unknown-scoring", "'\"tanh\"' is not one of"},
      {"unmapped-tensor",
       "tensor 'model.layers.0.self_attn.strange.weight': no rule in architecture 'llama' matches it"},
      {"vocabulary-too-big", "but config.json has a vocabulary of "},
  };
  for (const auto& [name, message] : kCases) {
    const json::value spec = json::parse(read_text(hf / "refused" / (name + ".json")));
    const TempDir parent;
    huggingface::SourceOptions options;
    options.folder = make_checkpoint(hf, spec, parent.path());
    options.fuse_gate_up_experts = name == "fused-experts";
    const auto result = read_huggingface(options, read_safetensors);
    const std::string error = result ? "" : render(result.error());
    CAPTURE(name, error);
    CHECK(error.empty() == message.empty());
    CHECK(error.find(message) != std::string::npos);
    if (result) continue;
    CHECK((result.error().code == ExitCode::kBadInput || result.error().code == ExitCode::kUsage));
    std::cout << error;
  }
}

TEST_CASE("a checkpoint is compared with the file that is made of it, in the type asked for") {
  const Folder checkpoint;
  const TempDir folder;
  const std::string full = folder.file("full.gguf"), half = folder.file("half.gguf");
  run(fmt::format("{{path: {}, outtype: f32, pre: default}}", checkpoint.path()), full);
  run(fmt::format("{{path: {}, pre: default}}", checkpoint.path()), half);
  const auto context = Context::create();
  REQUIRE(context);
  const auto differing = [&](const std::string& file, OutType type) {
    const auto comparison = context.value().compare(checkpoint.path(), file, {.out_type = type});
    if (!comparison) FAIL(render(comparison.error()));
    const ReportOutput& output = comparison.value().report.outputs.at(0);
    CHECK(output.unmatched.empty());
    CHECK(output.tensors.size() == 11);
    return std::ranges::count_if(output.tensors,
                                 [](const ReportTensor& each) { return each.state != ErrorState::kExact; });
  };
  CHECK(differing(full, OutType::kF32) == 0);
  CHECK(differing(half, OutType::kAuto) == 0);
  CHECK(differing(full, OutType::kAuto) == 8);  // the two-dimensional ones are F16
}

TEST_CASE("a checkpoint is inspected as the model that it becomes, its file as it stands") {
  Folder checkpoint;
  const auto context = Context::create();
  REQUIRE(context);
  CHECK_FALSE(context.value().inspect(checkpoint.path()));  // its pre-tokenizer is unknown
  checkpoint.put("tokenizer.model", "\12\11\12\5<unk>\30\2\12\3\12\1b\22\2\30\2");
  const auto model = context.value().inspect(checkpoint.path(), OutType::kBf16);
  if (!model) FAIL(render(model.error()));
  CHECK(model.value().tensors.at(0).name == "token_embd.weight");
  CHECK(model.value().tensors.at(0).type->name == "BF16");
  CHECK(model.value().metadata.find("llama.block_count"));
  const auto file = context.value().inspect(checkpoint.file("model.safetensors"));
  REQUIRE(file);
  CHECK(file.value().tensors.at(0).name == "model.embed_tokens.weight");
  CHECK(file.value().metadata.entries().empty());
}

TEST_CASE("keys that are missing from config.json have the defaults of transformers, unless they are not wanted") {
  const TempDir folder;
  // `members` are added to config.json, and `options` to the source.
  const auto metadata = [&](const std::string& members, const char* options) {
    Folder checkpoint;
    std::string config = kConfig;
    checkpoint.put("config.json", config.replace(config.rfind('}'), 1, ", " + members + "}"));
    auto tensors = llama();  // without keys, whose rows would not fit every number of heads
    std::erase_if(tensors, [](const SafetensorsTensor& each) { return each.name.find("k_proj") != std::string::npos; });
    checkpoint.put("model.safetensors", safetensors_bytes(tensors));
    const std::string out = folder.file("out.gguf");
    fs::remove(out);
    run(fmt::format("{{path: {}, pre: default{}}}", checkpoint.path(), options), out);
    const auto model = read_gguf(out);
    REQUIRE(model);
    return model.value().metadata;
  };
  const auto number = [](const Metadata& from, const char* key) {
    const MetadataValue* value = from.find(key);
    return value ? as_number(*value).value_or(-1) : -1;
  };
  const std::string llama = R"("model_type": "llama", "num_attention_heads": 2)";

  for (const Metadata& full : {metadata(llama, ""), metadata(llama, ", defaults: none")}) {
    CHECK(number(full, "llama.attention.key_length") == 2);
    CHECK(number(full, "llama.attention.value_length") == 2);
    CHECK(number(full, "llama.attention.head_count_kv") == 2);
    CHECK(number(full, "llama.rope.freq_base") == 10000);
  }

  // Given values are kept. For null, the class computes its default for some keys and leaves others unset.
  const Metadata given =
      metadata(llama + R"(, "head_dim": null, "num_key_value_heads": 1, "max_position_embeddings": null)", "");
  CHECK(number(given, "llama.attention.key_length") == 2);
  CHECK(number(given, "llama.attention.head_count_kv") == 1);
  CHECK(!given.find("llama.context_length"));
  // Another class has other defaults, and an unknown one has none.
  CHECK(number(metadata(R"("model_type": "mistral", "num_attention_heads": 2)", ""), "llama.attention.head_count_kv") ==
        8);
  CHECK(!metadata(R"("model_type": "else")", "").find("llama.attention.key_length"));
}
