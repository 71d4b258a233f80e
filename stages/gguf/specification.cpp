#include "stages/gguf/specification.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/core/metadata_keys.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/file_name.h"
#include "stages/gguf/format.h"

namespace ggufmill::gguf {
namespace {

// Returns the keys that the specification requires for an architecture, without its prefix.
const std::map<std::string_view, std::vector<std::string_view>>& required_keys() {
  static const std::map<std::string_view, std::vector<std::string_view>> kKeys = {
      {"llama",
       {"context_length", "embedding_length", "block_count", "feed_forward_length", "rope.dimension_count",
        "attention.head_count", "attention.layer_norm_rms_epsilon"}},
      {"mpt",
       {"context_length", "embedding_length", "block_count", "attention.head_count", "attention.alibi_bias_max",
        "attention.clip_kqv", "attention.layer_norm_epsilon"}},
      {"gptneox",
       {"context_length", "embedding_length", "block_count", "use_parallel_residual", "rope.dimension_count",
        "attention.head_count", "attention.layer_norm_epsilon"}},
      {"gptj",
       {"context_length", "embedding_length", "block_count", "rope.dimension_count", "attention.head_count",
        "attention.layer_norm_epsilon"}},
      {"gpt2",
       {"context_length", "embedding_length", "block_count", "attention.head_count", "attention.layer_norm_epsilon"}},
      {"bloom",
       {"context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
        "attention.layer_norm_epsilon"}},
      {"falcon",
       {"context_length", "embedding_length", "block_count", "attention.head_count", "attention.head_count_kv",
        "attention.use_norm", "attention.layer_norm_epsilon"}},
      {"mamba",
       {"context_length", "embedding_length", "block_count", "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size",
        "ssm.time_step_rank", "attention.layer_norm_rms_epsilon"}},
  };
  return kKeys;
}

class Check {
 public:
  Check(const std::string& path, const Model& model) : path_(path), model_(model) {}

  std::vector<Finding> run() {
    read_architecture();
    check_required();
    for (const MetadataEntry& entry : model_.metadata.entries()) check_entry(entry);
    check_vocabulary();
    for (const Tensor& tensor : model_.tensors) check_tensor(tensor);
    if (!parse_file_name(path_))
      recommend(
          path_.substr(name_begin(path_)), "does not follow the naming convention",
          "BaseName-SizeLabel-FineTune-Version-Encoding-Type-Shard.gguf, at least BaseName-SizeLabel-Version.gguf");
    return std::move(findings_);
  }

 private:
  void require(std::string where, std::string what, std::string rule) {
    findings_.push_back({true, std::move(where), std::move(what), std::move(rule)});
  }
  void recommend(std::string where, std::string what, std::string rule) {
    findings_.push_back({false, std::move(where), std::move(what), std::move(rule)});
  }
  const MetadataValue* value(const std::string& key) const { return model_.metadata.find(key); }
  std::optional<std::uint64_t> number(const std::string& key) const {
    const MetadataValue* found = value(key);
    return found ? as_unsigned(*found) : std::nullopt;
  }

  void read_architecture() {
    const MetadataValue* found = value("general.architecture");
    if (!found) return require("general.architecture", "is missing", "required in every file");
    architecture_ = as_string(*found).value_or("");
    const bool is_plain = !architecture_.empty() && std::ranges::all_of(architecture_, [](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    });
    if (!is_plain)
      recommend("general.architecture", fmt::format("is {}", describe(*found)), "only lowercase letters and digits");
  }

  void check_required() {
    const bool is_quantized =
        std::ranges::any_of(model_.tensors, [](const Tensor& tensor) { return tensor.type->is_quantized(); });
    if (is_quantized && !value("general.quantization_version"))
      require("general.quantization_version", "is missing", "required in files with quantized tensors");
    if (const auto alignment = number("general.alignment"); alignment && *alignment % 8 != 0)
      require("general.alignment", fmt::format("is {}", *alignment), "a multiple of 8");
    const auto required = required_keys().find(architecture_);
    if (required == required_keys().end()) return;
    for (const std::string_view key : required->second)
      if (const std::string whole = fmt::format("{}.{}", architecture_, key); !value(whole))
        require(whole, "is missing", fmt::format("required for {}", architecture_));
  }

  void check_entry(const MetadataEntry& entry) {
    const bool has_form = std::ranges::all_of(entry.key, [](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_' || letter == '.';
    });
    if (!has_form)
      recommend(entry.key, "does not have the usual form of a key", "lowercase letters, digits, '_', and '.'");
    const KnownKey* known = known_key(entry.key);
    const std::string type = full_type_name(entry.value);
    if (known && !known->specification.empty() && !is_one_of(type, known->specification))
      require(entry.key, fmt::format("is of type {}", type), std::string(known->specification));
    if (known && known->key == "[arch].rope.scaling.type") {
      const auto text = as_string(entry.value).value_or("");
      if (text != "none" && text != "linear" && text != "yarn")
        recommend(entry.key, fmt::format("is {}", describe(entry.value)), "none, linear, or yarn");
    }
  }

  void check_vocabulary() {
    const MetadataValue* tokens = value("tokenizer.ggml.tokens");
    const auto list = tokens ? as_array(*tokens) : std::nullopt;
    if (!list) return;
    tokens_ = list->count;
    for (const char* key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"})
      if (const MetadataValue* found = value(key))
        if (const auto other = as_array(*found); other && other->count != list->count)
          require(key, fmt::format("has {} items", other->count),
                  fmt::format("one for each of the {} tokens", list->count));
    for (const char* key : {"bos", "eos", "unknown", "separator", "padding"}) {
      const std::string whole = fmt::format("tokenizer.ggml.{}_token_id", key);
      if (const auto id = number(whole); id && *id >= list->count)
        require(whole, fmt::format("is {}", *id), fmt::format("the id of one of the {} tokens", list->count));
    }
  }

  void check_tensor(const Tensor& tensor) {
    const Shape& shape = tensor.shape();
    if (tensor.name.size() > 64)
      require(tensor.name, fmt::format("has a name of {} bytes", tensor.name.size()), "at most 64");
    const auto wants = [&](std::uint32_t dimension, std::optional<std::uint64_t> size, const std::string& of) {
      if (size && shape.dims[dimension] != *size)
        require(tensor.name, fmt::format("is {}", ggufmill::describe(shape)), fmt::format("{} {}", of, *size));
    };
    const std::string embedding = architecture_ + ".embedding_length", blocks = architecture_ + ".block_count";
    if (tensor.name == "token_embd.weight") {
      wants(0, number(embedding), "columns as " + embedding + ":");
      wants(1, tokens_, "one row for each token:");
    }
    if (tensor.name == "output_norm.weight") wants(0, number(embedding), "as " + embedding + ":");
    const auto layer = layer_of(tensor.name);
    const auto count = number(blocks);
    if (layer && count && *layer >= *count)
      require(tensor.name, "belongs to a layer that the model does not have", fmt::format("{} is {}", blocks, *count));
  }

  const std::string& path_;
  const Model& model_;
  std::string architecture_;
  std::optional<std::uint64_t> tokens_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_specification(const std::string& path, const Model& model) {
  return Check(path, model).run();
}

}  // namespace ggufmill::gguf
