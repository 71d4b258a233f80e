
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <utility>

#include "pipeline/io/platform/filesystem.h"
#include "tests/random/random_source.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch_builder.h"

namespace ggufmill::testing {
namespace {

constexpr const char* kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4}, "merges": ["a b"]},
        "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})";
constexpr std::uint64_t kTokens = 5;

// A tensor of the checkpoint and the tensor that it becomes.
struct Pair {
  ModelTensor stored;
  std::string becomes;
  bool same_rows = true;  // the rows keep their order
};

class CheckpointMaker {
 public:
  CheckpointMaker(Random& random, const Kernels& kernels, std::string folder)
      : random_(random), kernels_(kernels), folder_(std::move(folder)) {}

  RandomSource make() {
    choose();
    fs::create_directories(folder_);
    write_text(folder_ + "/config.json", config());
    write_text(folder_ + "/tokenizer.json", kTokenizer);
    write_text(folder_ + "/tokenizer_config.json", R"({"model_max_length": 16})");
    random_.percent(60) ? write_safetensors() : write_torch();
    return source();
  }

 private:
  void choose() {
    hidden_ = random_.pick<std::uint64_t>({32, 64, 256});
    inner_ = hidden_ * random_.from(1, 3);
    layers_ = static_cast<unsigned>(random_.from(1, 4));
    type_ = random_.pick({"F32", "F16", "BF16"});
    outtype_ = random_.pick({"auto", "f32", "f16", "bf16", "q8_0"});
    add("model.embed_tokens.weight", "token_embd.weight", {hidden_, kTokens});
    for (unsigned layer = 0; layer < layers_; ++layer) add_layer(layer);
    add("model.norm.weight", "output_norm.weight", {hidden_});
    if (random_.percent(70)) add("lm_head.weight", "output.weight", {hidden_, kTokens});
  }

  void add(const std::string& name, const std::string& becomes, std::vector<std::uint64_t> dims,
           bool same_rows = true) {
    pairs_.push_back({random_tensor(random_, kernels_, name, std::move(dims), type_), becomes, same_rows});
  }

  void add_layer(unsigned layer) {
    const auto pair = [&](const char* name, const char* becomes, std::vector<std::uint64_t> dims, bool same = true) {
      add(fmt::format("model.layers.{}.{}.weight", layer, name), fmt::format("blk.{}.{}.weight", layer, becomes),
          std::move(dims), same);
    };
    pair("input_layernorm", "attn_norm", {hidden_});
    pair("post_attention_layernorm", "ffn_norm", {hidden_});
    pair("self_attn.q_proj", "attn_q", {hidden_, hidden_}, false);
    pair("self_attn.k_proj", "attn_k", {hidden_, hidden_}, false);
    pair("self_attn.v_proj", "attn_v", {hidden_, hidden_});
    pair("self_attn.o_proj", "attn_output", {hidden_, hidden_});
    pair("mlp.gate_proj", "ffn_gate", {hidden_, inner_});
    pair("mlp.up_proj", "ffn_up", {hidden_, inner_});
    pair("mlp.down_proj", "ffn_down", {inner_, hidden_});
  }

  std::string config() const {
    return fmt::format(
        R"({{"architectures": ["LlamaForCausalLM"], "hidden_size": {}, "num_attention_heads": 4,
             "num_hidden_layers": {}, "vocab_size": {}, "intermediate_size": {}, "rms_norm_eps": 1e-5,
             "max_position_embeddings": 16}})",
        hidden_, layers_, kTokens, inner_);
  }

  static std::vector<std::uint64_t> slowest_first(std::vector<std::uint64_t> dims) {
    std::ranges::reverse(dims);
    return dims;
  }

  void write_safetensors() {
    const std::size_t files = random_.percent(70) ? 1 : 2;
    std::vector<std::vector<SafetensorsTensor>> parts(files);
    std::vector<std::pair<std::string, std::string>> index;
    const auto name_of = [&](std::size_t file) {
      return files == 1 ? "model.safetensors" : fmt::format("model-0000{}-of-00002.safetensors", file + 1);
    };
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      const ModelTensor& tensor = pairs_[p].stored;
      const std::size_t file = p * files / pairs_.size();
      parts[file].push_back({tensor.name, type_, slowest_first(tensor.dims), *tensor.bytes});
      index.emplace_back(tensor.name, name_of(file));
    }
    for (std::size_t file = 0; file < files; ++file)
      write_text(folder_ + "/" + name_of(file), safetensors_bytes(parts[file]));
    if (files > 1) write_text(folder_ + "/model.safetensors.index.json", safetensors_index(index));
  }

  void write_torch() const {
    static const std::map<std::string, std::string> kStorages{
        {"F32", "FloatStorage"}, {"F16", "HalfStorage"}, {"BF16", "BFloat16Storage"}};
    std::vector<TorchTensor> tensors;
    for (const Pair& pair : pairs_)
      tensors.push_back({pair.stored.name, kStorages.at(type_), slowest_first(pair.stored.dims), *pair.stored.bytes});
    TorchOptions options;
    options.before_1_6 = random_.percent(20);
    write_text(folder_ + "/pytorch_model.bin", torch_file(tensors, options));
  }

  RandomSource source() const {
    RandomSource source;
    std::vector<ModelTensor> tensors;
    source.text = fmt::format("{{huggingface: {{path: '{}', outtype: {}, pre: default}}}}", folder_, outtype_);
    source.layers = layers_;
    source.is_checkpoint = true;
    source.has_quantized = outtype_ == "q8_0";
    // Any other type rounds the values before they get the type of an output.
    const bool is_exact = outtype_ == "f32" || (outtype_ == "f16" && type_ == "F16") ||
                          (outtype_ == "bf16" && type_ == "BF16") || (outtype_ == "auto" && type_ != "F32");
    for (const Pair& pair : pairs_) {
      tensors.push_back(pair.stored);
      tensors.back().name = pair.becomes;
      if (is_exact && pair.same_rows) source.tensors.push_back(tensors.back());
    }
    describe(random_, kernels_, tensors, folder_, source);
    return source;
  }

  Random& random_;
  const Kernels& kernels_;
  std::string folder_;
  std::uint64_t hidden_ = 0, inner_ = 0;
  unsigned layers_ = 0;
  std::string type_, outtype_;
  std::vector<Pair> pairs_;
};

// Creates a checkpoint with all parts, but few tokens.
std::string make_checkpoint_with_parts(const fs::path& shared, const fs::path& folder) {
  namespace json = boost::json;
  json::value spec = spec_with_all_parts(shared / "hf-more" / "specs");
  json::object& text = spec.at("config").at("text_config").as_object();
  const json::value tokens = std::exchange(text["vocab_size"], kTokens);
  text["eos_token_id"] = kTokens - 1;
  for (json::value& tensor : spec.at("tensors").as_array())
    for (json::value& dim : tensor.at(2).as_array())
      if (dim == tokens) dim = kTokens;
  spec.as_object().erase("tokenizer");
  spec.at("files").as_object()["tokenizer.json"] = kTokenizer;
  spec.at("files").as_object()["tokenizer_config.json"] = "{}";
  return make_checkpoint(shared / "hf", spec, folder);
}

// Returns the path of the checkpoint, made once; empty if the shared data is missing.
const std::string& checkpoint_with_parts() {
  static const TempDir folder;
  static const auto shared = shared_data();
  static const std::string path =
      shared && fs::exists(*shared / "hf-more") ? make_checkpoint_with_parts(*shared, folder.path()) : "";
  return path;
}

}  // namespace

RandomSource random_checkpoint(Random& random, const Kernels& kernels, const std::string& folder) {
  if (!random.percent(15) || checkpoint_with_parts().empty())
    return CheckpointMaker(random, kernels, folder + "/checkpoint").make();
  RandomSource source;
  source.text = fmt::format("{{huggingface: {{path: '{}', outtype: {}, pre: default}}}}", checkpoint_with_parts(),
                            random.pick({"bf16", "f16", "f32"}));
  source.is_checkpoint = true;
  source.parts = {"text", "projector", "draft"};
  return source;
}

}  // namespace ggufmill::testing
