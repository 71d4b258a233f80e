// Tests of first maps, and of conversions with maps that the user adds.
#include "stages/huggingface/first_map.h"

#include <fmt/format.h>

#include "stages/huggingface/conversion.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

CheckpointTensor ones(std::string name, const std::vector<std::uint64_t>& dims) {
  Shape shape;
  for (const std::uint64_t dim : dims) shape.dims[shape.rank++] = dim;
  return {std::move(name),
          expressions::constant(shape, std::vector<float>(shape.elements(), 1)).value(),
          {dims.rbegin(), dims.rend()}};
}

// A checkpoint like Llama's, of a class that no built-in map serves unless another one is given.
class NewModel {
 public:
  explicit NewModel(const std::string& class_name = "NewForCausalLM") {
    write_text(checkpoint_.file("config.json"),
               fmt::format(R"({{"architectures": ["{}"], "hidden_size": 4, "num_attention_heads": 1, "vocab_size": 5,
                               "num_hidden_layers": 1, "intermediate_size": 8, "rms_norm_eps": 1e-5, "rope_theta": 5,
                               "max_position_embeddings": 16, "new_scale": 2.5}})",
                           class_name));
    write_text(checkpoint_.file("tokenizer.json"),
               R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4}, "merges": ["a b"]},
                   "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})");
    write_text(checkpoint_.file("tokenizer_config.json"), "{}");
    write_text(checkpoint_.file("model.safetensors"), "");
  }

  std::vector<CheckpointTensor> tensors{ones("model.embed_tokens.weight", {4, 5}),
                                        ones("model.norm.weight", {4}),
                                        ones("model.layers.0.input_layernorm.weight", {4}),
                                        ones("model.layers.0.post_attention_layernorm.weight", {4}),
                                        ones("model.layers.0.self_attn.q_proj.weight", {4, 4}),
                                        ones("model.layers.0.self_attn.k_proj.weight", {4, 4}),
                                        ones("model.layers.0.self_attn.v_proj.weight", {4, 4}),
                                        ones("model.layers.0.self_attn.o_proj.weight", {4, 4}),
                                        ones("model.layers.0.mlp.gate_proj.weight", {4, 8}),
                                        ones("model.layers.0.mlp.up_proj.weight", {4, 8}),
                                        ones("model.layers.0.mlp.down_proj.weight", {8, 4})};

  CheckpointOpener opener() const {
    return [this](const std::string&, const MissingFiles&) -> Result<Checkpoint> { return Checkpoint{{}, tensors}; };
  }
  std::string first(const std::string& like = "llama", const std::vector<std::string>& maps = {}) const {
    const auto text = first_map({checkpoint_.path().string(), like, maps}, opener());
    CAPTURE(text ? "" : render(text.error()));
    REQUIRE(text);
    return text.value();
  }
  SourceOptions options() const {
    SourceOptions options;
    options.folder = checkpoint_.path();
    return options;
  }
  std::string hash() const { return pre_tokenizer_hash_of(checkpoint_.path()).value(); }
  // Converts the checkpoint with a map of this text, and perhaps a table of hashes.
  Result<ConvertedCheckpoint> convert(const std::string& map, const std::string& table = {}) const {
    const TempDir maps;
    write_text(maps.file("new.yaml"), map);
    if (!table.empty()) write_text(maps.file("pre_tokenizers.tsv"), table);
    SourceOptions options = this->options();
    options.architectures = map_places({maps.path().string()});
    return read_huggingface(options, opener());
  }
  std::string pre_of(const std::string& map, const std::string& table = {}) const {
    const auto converted = convert(map, table);
    CAPTURE(converted ? "" : render(converted.error()));
    REQUIRE(converted);
    return std::string(as_string(*converted.value().model.metadata.find("tokenizer.ggml.pre")).value());
  }

 private:
  TempDir checkpoint_;
};

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a first map passes the lint, and converts a model whose pre-tokenizer is named") {
  const NewModel model;
  const std::string map = model.first();
  CHECK(has(map, "extends: 'llama'\n"));
  CHECK(has(map, "serves: ['NewForCausalLM']\n"));
  CHECK(model.pre_of(map + fmt::format("pre_tokenizers: {{{}: llama-bpe}}\n", model.hash())) == "llama-bpe");
}

TEST_CASE("a first map of a class that a map serves starts from that map") {
  const NewModel model("LlamaForCausalLM");
  const std::string map = model.first("");
  CHECK(has(map, "extends: 'llama'\n"));
  CHECK(has(map, "The map llama serves this class: the checkpoint converts without a map of its own."));
}

TEST_CASE("a first map starts from the map whose rules match the most tensors") {
  NewModel model;
  model.tensors.push_back(ones("model.layers.0.odd.weight", {4}));
  const TempDir maps;
  write_text(maps.file("odd.yaml"),
             "description: d\nextends: llama\n"
             "tensors: [{from: 'model.layers.{layer}.odd', to: 'blk.{layer}.odd'}]\n");
  const std::string map = model.first("", {maps.path().string()});
  CHECK(has(map, "extends: 'odd'\n"));
  CHECK(has(map, "that they do not read: odd (12, 0, "));
}

TEST_CASE("of maps that match as many tensors, a first map starts from that which reads the most keys of config.json") {
  NewModel model;
  const TempDir maps;
  write_text(maps.file("odd.yaml"),
             "description: d\nextends: llama\nmetadata: [{key: scale, type: float32, value: new_scale}]\n");
  CHECK(has(model.first("", {maps.path().string()}), "extends: 'odd'\n"));
}

TEST_CASE("a first map does not start from a map that requires more than the checkpoint has") {
  NewModel model;
  const TempDir maps;
  write_text(maps.file("odd.yaml"),
             "description: d\nextends: llama\nmetadata: [{key: scale, type: float32, value: new_scale}, {key: other, "
             "value: absent}]\n");
  CHECK(!has(model.first("", {maps.path().string()}), "extends: 'odd'\n"));
}

TEST_CASE("a checkpoint whose tensors no map matches needs the name of a map") {
  NewModel model;
  model.tensors = {ones("entirely.other", {4})};
  const auto text = first_map({model.options().folder, "", {}}, model.opener());
  REQUIRE(!text);
  CHECK(has(text.error().help, "--like NAME"));
}

TEST_CASE("a first map lists the hash of an unknown pre-tokenizer") {
  const NewModel model;
  CHECK(has(model.first(), fmt::format("# pre_tokenizers:\n#   {}: llama-bpe\n", model.hash())));
}

TEST_CASE("an unknown pre-tokenizer is an error that names its hash") {
  const NewModel model;
  const auto converted = model.convert(model.first());
  REQUIRE(!converted);
  CHECK(has(converted.error().what, model.hash()));
  CHECK(has(converted.error().help, "`pre_tokenizers: {HASH: NAME}`"));
}

TEST_CASE("a table of hashes beside the maps names pre-tokenizers") {
  const NewModel model;
  const std::string table = "hash\tpre\trepository\n" + model.hash() + "\tqwen2\t-\n";
  CHECK(model.pre_of(model.first(), table) == "qwen2");
}

TEST_CASE("a hash in the map takes precedence over the table") {
  const NewModel model;
  const std::string table = "hash\tpre\trepository\n" + model.hash() + "\tqwen2\t-\n";
  CHECK(model.pre_of(model.first() + fmt::format("pre_tokenizers: {{{}: gpt-2}}\n", model.hash()), table) == "gpt-2");
}

TEST_CASE("a first map lists tensors that match, with their number") {
  const std::string map = NewModel().first();
  CHECK(has(map, "# Tensors that a rule matches, 11 of 11:\n"));
  CHECK(has(map, "blk.{layer}.attn_q"));
  CHECK(!has(map, "# tensors:\n"));
}

TEST_CASE("a first map has rules to complete for tensors that match none") {
  NewModel model;
  model.tensors.push_back(ones("model.layers.0.mlp.new.weight", {4, 2}));
  model.tensors.push_back(ones("new.3.part.7.scale", {2}));
  const std::string map = model.first();
  CHECK(has(map,
            "# tensors:\n#   - {from: 'model.layers.{layer}.mlp.new.weight', to: NAME}   # 1 tensor: F32 of 4 x 2\n"
            "#   - {from: 'new.{layer}.part.{expert}.scale', to: NAME}   # 1 tensor: F32 of 2\n"));
}

TEST_CASE("a first map lists tensors beyond the last layer") {
  NewModel model;
  model.tensors.push_back(ones("model.layers.1.self_attn.q_proj.weight", {4, 4}));
  CHECK(has(model.first(), "in layers beyond the 1 of the model:\n#   model.layers.{layer}.self_attn.q_proj.weight "));
}

TEST_CASE("a first map lists tensors that are required and missing") {
  NewModel model;
  model.tensors.erase(model.tensors.begin() + 2);
  CHECK(has(model.first(),
            "# Tensors that the map requires and that are missing, or that do not fit:\n"
            "#   tensor 'model.layers.0.input_layernorm' is missing"));
}

TEST_CASE("a first map lists the keys that no rule reads") {
  const std::string map = NewModel().first();
  CHECK(has(map, "#   new_scale: 2.5"));
  CHECK(!has(map, "rms_norm_eps"));
  CHECK(!has(map, "rope_theta"));  // read as part of the rotary embedding settings
}

TEST_CASE("the files of added maps are files of the model") {
  const NewModel model;
  const auto converted = model.convert(model.first() + fmt::format("pre_tokenizers: {{{}: gpt-2}}\n", model.hash()));
  REQUIRE(converted);
  const auto is_map = [](const SourceRef& file) { return file->path.ends_with("/new.yaml"); };
  CHECK(std::ranges::any_of(converted.value().model.files, is_map));
}

TEST_CASE("a note reports that an added map replaces a built-in one") {
  const NewModel model("LlamaForCausalLM");
  const auto converted = model.convert(
      fmt::format("extends: llama\nserves: [LlamaForCausalLM]\npre_tokenizers: {{{}: gpt-2}}\n", model.hash()));
  REQUIRE(converted);
  std::string warnings;
  for (const std::string& warning : converted.value().model.warnings) warnings += warning;
  CHECK(has(warnings, "/new.yaml: used for 'LlamaForCausalLM' instead of the built-in map 'llama'"));
}

TEST_CASE("a note reports that an added map is used for the name of a built-in one") {
  const NewModel model("LlamaForCausalLM");
  const TempDir maps;
  write_text(maps.file("llama.yaml"), fmt::format("extends: llama\npre_tokenizers: {{{}: gpt-2}}\n", model.hash()));
  SourceOptions options = model.options();
  options.architectures = map_places({maps.path().string()});
  options.architecture = "llama";
  const auto converted = read_huggingface(options, model.opener());
  REQUIRE(converted);
  CHECK(converted.value().model.warnings ==
        std::vector<std::string>{maps.file("llama.yaml") + ": used instead of the built-in map 'llama'"});
}
