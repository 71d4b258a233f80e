#include "pipeline/api/edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/expected_tensors.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens", kTokenizer = "tokenizer.", kGeneral = "general.";
constexpr std::string_view kOfFile[] = {"general.architecture", "general.type",         "general.alignment",
                                        "general.file_type",    "general.quantized_by", "general.quantization_version"};

std::string text_of(const Model& model, std::string_view key, std::string_view otherwise = "") {
  const MetadataValue* const value = model.metadata.find(key);
  return std::string(value ? as_string(*value).value_or(otherwise) : otherwise);
}

class Likeness {
 public:
  Likeness(const std::string& path, const Model& model, const LikeOptions& options, const Model& other,
           std::vector<std::string>& warnings)
      : path_(path),
        model_(model),
        options_(options),
        other_(other),
        warnings_(warnings),
        architecture_(text_of(model, "general.architecture")) {}

  Result<MetadataOptions> changes() {
    BOOST_OUTCOME_TRY(check_same_kind("general.architecture", "architecture", ""));
    BOOST_OUTCOME_TRY(check_same_kind("general.type", "type", "model"));
    compare_sizes();
    BOOST_OUTCOME_TRY(const bool with_tokenizer, copies_tokenizer());
    for (const MetadataEntry& entry : other_.metadata.entries()) {
      const std::string_view key = entry.key;
      const bool is_copied = key.starts_with(kTokenizer)            ? with_tokenizer
                             : key.starts_with(kGeneral)            ? is_of_model(key)
                             : key.starts_with(architecture_ + ".") ? is_free(entry)
                                                                    : false;
      if (is_copied) changes_.set.push_back({entry.key, entry.value});
    }
    return std::move(changes_);
  }

 private:
  Status check_same_kind(std::string_view key, const char* what, const char* otherwise) const {
    const std::string own = text_of(model_, key, otherwise), others = text_of(other_, key, otherwise);
    if (own == others && !own.empty()) return ok();
    if (own == others)
      return usage_error(
          fmt::format("{}: neither {} nor {} has an architecture ({}), so nothing tells whether they are "
                      "the same model",
                      option_reference("like"), quoted_name(options_.path), quoted_name(path_), key),
          fmt::format("copy single keys with {}", option_reference("set", "KEY=VALUE")));
    const auto shown = [](const std::string& value) { return value.empty() ? "none" : quoted_name(value); };
    return usage_error(fmt::format("{}: {} has the {} {}, but {} has {}", option_reference("like"),
                                   quoted_name(options_.path), what, shown(others), quoted_name(path_), shown(own)),
                       fmt::format("name a file of the same model, or copy single keys with {}",
                                   option_reference("set", "KEY=VALUE")));
  }

  static bool is_of_model(std::string_view key) {
    return std::ranges::find(kOfFile, key) == std::end(kOfFile) && !key.starts_with("general.tensor_extra.");
  }

  // Returns true if no name or shape of a tensor depends on a key of the architecture.
  bool is_free(const MetadataEntry& entry) const {
    const std::string_view key = std::string_view(entry.key).substr(architecture_.size() + 1);
    if (sizes_.contains(key) || key == "tensor_data_layout") return false;
    const auto list = as_array(entry.value);
    return !list || same_layers_ || list->count != layers_of(other_);
  }

  std::uint64_t layers_of(const Model& model) const {
    const MetadataValue* const value = model.metadata.find(architecture_ + ".block_count");
    return value ? as_unsigned(*value).value_or(0) : 0;
  }

  void compare_sizes() {
    same_layers_ = layers_of(model_) == layers_of(other_);
    std::vector<std::string> different;
    for (const std::string_view size : sizes_) {
      const std::string key = fmt::format("{}.{}", architecture_, size);
      const MetadataValue *own = model_.metadata.find(key), *others = other_.metadata.find(key);
      if (own && others && *own != *others)
        different.push_back(fmt::format("{} ({}, not {})", key, describe(*others, 20), describe(*own, 20)));
    }
    if (!different.empty())
      warnings_.push_back(fmt::format("{} may be another model, and these keys are not copied: {}",
                                      quoted_name(options_.path), list_some(different)));
  }

  Result<bool> copies_tokenizer() {
    const MetadataValue *own = model_.metadata.find(kTokens), *others = other_.metadata.find(kTokens);
    const auto list = others ? as_array(*others) : std::nullopt;
    if (!list) {
      if (!options_.with_tokenizer) return false;
      return usage_error(
          fmt::format("{}: {} has no tokenizer", option_reference("like_tokenizer"), quoted_name(options_.path)),
          "name a file that has one");
    }
    if (own && *own == *others) return true;
    const auto embedding = std::ranges::find(model_.tensors, "token_embd.weight", &Tensor::name);
    const bool fits = embedding == model_.tensors.end() || embedding->shape().rows() == list->count;
    const auto misfit = [&] {
      return fmt::format("the tokenizer of {} has {}, but the embedding of {} has {}", quoted_name(options_.path),
                         counted(list->count, "token"), quoted_name(path_), counted(embedding->shape().rows(), "row"));
    };
    if (options_.with_tokenizer) {
      if (!fits) return usage_error(misfit(), "name a file whose tokenizer fits the embedding");
      for (const MetadataEntry& entry : model_.metadata.entries())
        if (entry.key.starts_with(kTokenizer) && !other_.metadata.find(entry.key)) changes_.remove.push_back(entry.key);
      return true;
    }
    if (!own && fits) return true;
    warnings_.push_back(
        fits ? fmt::format("the tokenizer and its chat template are not copied: {} has other tokens; {} copies them",
                           quoted_name(options_.path), option_reference("like_tokenizer", "true"))
             : fmt::format("the tokenizer and its chat template are not copied: {}", misfit()));
    return false;
  }

  const std::string& path_;
  const Model& model_;
  const LikeOptions& options_;
  const Model& other_;
  std::vector<std::string>& warnings_;
  const std::string architecture_;
  const std::set<std::string_view> sizes_ = sizing_keys(architecture_);
  bool same_layers_ = false;
  MetadataOptions changes_;
};

}  // namespace

Result<MetadataOptions> changes_like(const std::string& path, const Model& model, const LikeOptions& options,
                                     const Types& types, std::vector<std::string>& warnings) {
  BOOST_OUTCOME_TRY(const Model other, read_gguf(options.path, types));
  return Likeness(path, model, options, other, warnings).changes();
}

}  // namespace ggufmill
