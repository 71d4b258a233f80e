#include "stages/huggingface/checkpoint/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "pipeline/core/pattern.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/torch_file.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kConfig = "adapter_config.json";
constexpr const char* kSaveAdapterAgain = "the adapter is damaged: download or save it again";

std::string without(std::string text, std::string_view part, std::string_view replacement) {
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += replacement.size())
    text.replace(at, part.size(), replacement);
  return text;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// The parts of a tensor's name.
struct NameParts {
  enum class Role { kOther, kA, kB };
  Role role = Role::kOther;
  bool is_embedding = false;
  std::string base;     // name of the weight that the tensor changes or replaces
  std::string adapter;  // its name in the model that it was trained in: "default"; empty if the name does not have it
};

// PEFT saves adapters without the names that they have in the model, which the model's own tensors have:
// X.lora_A.weight and X.lora_A.default.weight, X.weight and X.modules_to_save.default.weight.
NameParts parts_of_name(const std::string& name) {
  struct Word {
    std::string_view word, ending;
    NameParts::Role role;
    bool is_embedding = false;
  };
  constexpr std::string_view kWeight = ".weight";
  constexpr Word kWords[] = {{".lora_A", kWeight, NameParts::Role::kA},
                             {".lora_B", kWeight, NameParts::Role::kB},
                             {".lora_embedding_A", "", NameParts::Role::kA, true},
                             {".lora_embedding_B", "", NameParts::Role::kB, true},
                             {".modules_to_save", kWeight, NameParts::Role::kOther}};
  NameParts parts;
  parts.base = without(name, "base_model.model.", "");
  for (const Word& word : kWords) {
    const std::size_t at = parts.base.find(word.word);
    if (at == parts.base.npos) continue;
    std::string_view rest = std::string_view(parts.base).substr(at + word.word.size());
    if (!rest.ends_with(word.ending)) continue;
    rest.remove_suffix(word.ending.size());
    if (!rest.empty() && (rest[0] != '.' || rest.find('.', 1) != rest.npos)) continue;
    parts.role = word.role;
    parts.is_embedding = word.is_embedding;
    if (!rest.empty()) parts.adapter = rest.substr(1);
    parts.base = parts.base.substr(0, at) + std::string(kWeight);
    break;
  }
  return parts;
}

// A module's alpha that differs from the others'.
struct AlphaRule {
  Pattern module;
  double alpha;
};

class AdapterReader {
 public:
  AdapterReader(std::string folder, const CheckpointOpener& open) : open_(open) { adapter_.folder = std::move(folder); }

  Result<Adapter> read() {
    BOOST_OUTCOME_TRY(read_config());
    BOOST_OUTCOME_TRY(const std::vector<CheckpointTensor> tensors, open_weights());
    for (const CheckpointTensor& tensor : tensors) {
      BOOST_OUTCOME_TRY(take(tensor));
    }
    adapter_.alpha = order_.empty() ? alpha_ : alpha_for(alpha_, pairs_.at(order_.front()));
    if (!is_scale(adapter_.alpha))
      return invalid("'lora_alpha' times the root of the rank (use_rslora) is too large for F32",
                     "correct the value: the products are scaled by it");
    for (const std::string& name : order_) {
      BOOST_OUTCOME_TRY(add_pair(name, pairs_.at(name)));
    }
    if (adapter_.tensors.empty()) return input_error(weights_, "contains no tensors", "the adapter is incomplete");
    warn_of_rank();
    return std::move(adapter_);
  }

 private:
  struct Halves {
    const CheckpointTensor *a = nullptr, *b = nullptr;
    std::uint64_t rank() const { return a ? a->values->shape.rows() : 1; }
  };

  // The scale depends on the rank, which is that of the matrices, as in llama.cpp.
  void warn_of_rank() {
    const json::value *const rank = find("r"), *const pattern = find("rank_pattern");
    const auto stated = rank ? whole_number(*rank) : std::nullopt;
    if (!stated || (pattern && is_true(*pattern))) return;
    for (const std::string& name : order_) {
      const std::uint64_t own = pairs_.at(name).rank();
      if (std::cmp_equal(own, *stated)) continue;
      adapter_.warnings.push_back(fmt::format("{}: 'r' is {}, but the matrices of {} have the rank {}, which is used",
                                              file(kConfig), *stated, quoted_name(name), own));
      return;
    }
  }

  // Returns the number that, divided by the rank, is the scale of a pair whose own alpha is given. With rsLoRA, the
  // scale is alpha / sqrt(rank).
  double alpha_for(double own, const Halves& halves) const {
    return rank_stabilized_ ? own * std::sqrt(static_cast<double>(halves.rank())) : own;
  }

  std::string file(std::string_view name) const { return fs::path(adapter_.folder) / name; }

  Error invalid(std::string what, std::string help) const {
    return input_error(file(kConfig), std::move(what), std::move(help));
  }

  // ---- adapter_config.json ----

  Status read_config() {
    if (!is_file(file(kConfig))) return no_adapter(adapter_.folder);
    BOOST_OUTCOME_TRY(const json::value config, read_checkpoint_json(file(kConfig)));
    if (!config.is_object()) return input_error(file(kConfig), "is not a JSON object");
    config_ = config;
    adapter_.base = json_string(config_, "base_model_name_or_path").value_or("");
    BOOST_OUTCOME_TRY(check_kind());
    BOOST_OUTCOME_TRY(alpha_, positive_number("lora_alpha"));
    BOOST_OUTCOME_TRY(rank_stabilized_, flag("use_rslora"));
    BOOST_OUTCOME_TRY(adapter_.transposed, flag("fan_in_fan_out"));
    BOOST_OUTCOME_TRY(read_alpha_pattern());
    return read_invocation();
  }

  // Refuses what a product of two matrices cannot express.
  Status check_kind() const {
    if (const json::value* const type = find("peft_type"); type && *type != json::value("LORA"))
      return invalid(fmt::format("the adapter is of type {}, not LORA", shown(*type)),
                     "only LoRA adapters can be converted or merged here");
    BOOST_OUTCOME_TRY(const bool is_dora, flag("use_dora"));
    if (is_dora)
      return invalid(
          "the adapter uses DoRA, which also rescales every row of a weight; no product of two matrices does that",
          "merge it into its base model with PEFT's merge_and_unload(), and convert the result");
    for (const std::string_view key : {"layer_replication", "target_parameters"}) {
      const json::value* const value = find(key);
      const json::array* const list = value ? value->if_array() : nullptr;
      if (value && !(list && list->empty()))
        return invalid(fmt::format("{} is set, which is not supported", quoted_name(key)),
                       "merge the adapter into its base model with PEFT's merge_and_unload(), and convert the result");
    }
    return ok();
  }

  // Returns a member of the configuration; null if it is missing or null.
  const json::value* find(std::string_view key) const {
    const json::value* const value = config_.get_object().if_contains(key);
    return value && !value->is_null() ? value : nullptr;
  }

  Result<bool> flag(std::string_view key) const {
    const json::value* const value = find(key);
    if (!value) return false;
    if (!value->is_bool())
      return invalid(fmt::format("{} is {}, not true or false", quoted_name(key), shown(*value)),
                     "correct the value: the adapter's meaning depends on it");
    return value->get_bool();
  }

  Result<double> positive_number(std::string_view key) const {
    const json::value* const value = find(key);
    if (!value) return invalid(fmt::format("{} is missing", quoted_name(key)), "add it: the products are scaled by it");
    return positive_number(key, *value);
  }

  Result<double> positive_number(std::string_view key, const json::value& value) const {
    const auto number = value.is_bool() ? std::nullopt : number_value(value);
    if (!number || !is_scale(*number))
      return invalid(
          fmt::format("{} is {}, not a positive number that F32 can represent", quoted_name(key), shown(value)),
          "correct the value: the products are scaled by it");
    return *number;
  }

  static bool is_scale(double number) {
    const auto rounded = static_cast<float>(number);
    return std::isfinite(rounded) && rounded > 0;
  }

  // Reads the modules with their own alpha: PEFT takes the first entry that matches the end of a module's name.
  Status read_alpha_pattern() {
    const json::value* const rules = config_.get_object().if_contains("alpha_pattern");
    if (!rules || rules->is_null()) return ok();
    if (!rules->is_object()) return invalid("'alpha_pattern' is not an object", kSaveAdapterAgain);
    for (const auto& [key, value] : rules->get_object()) {
      auto pattern = Pattern::compile(fmt::format("\\A(?:.*\\.)?(?:{})\\z", std::string_view(key)));
      if (!pattern)
        return invalid(fmt::format("{} in 'alpha_pattern' is not a regular expression", quoted_name(key)),
                       "correct it: it chooses the modules that have another alpha");
      BOOST_OUTCOME_TRY(const double alpha,
                        positive_number(fmt::format("alpha_pattern.{}", std::string_view(key)), value));
      alphas_.push_back({std::move(pattern).value(), alpha});
    }
    return ok();
  }

  // Reads the tokens after which an aLoRA becomes active.
  Status read_invocation() {
    const json::value* const tokens = config_.get_object().if_contains("alora_invocation_tokens");
    const json::array* const list = tokens ? tokens->if_array() : nullptr;
    if (tokens && !tokens->is_null() && !list)
      return invalid("'alora_invocation_tokens' is not a list", kSaveAdapterAgain);
    if (list)
      for (const json::value& token : *list) {
        const auto number = whole_number(token);
        if (!number || *number < 0 || *number > UINT32_MAX)
          return invalid(fmt::format("{} in 'alora_invocation_tokens' is not a token", shown(token)),
                         "tokens are whole numbers from 0");
        adapter_.invocation_tokens.push_back(static_cast<std::uint32_t>(*number));
      }
    if (const auto text = json_string(config_, "invocation_string");
        text && !text->empty() && adapter_.invocation_tokens.empty())
      return invalid("'invocation_string' is set, but not 'alora_invocation_tokens'",
                     "add the tokens of the text as a list, \"alora_invocation_tokens\": [...]");
    return ok();
  }

  // ---- tensors ----

  // Returns the tensors in the reference's order: by their places in the file, or in the order of a PyTorch file.
  Result<std::vector<CheckpointTensor>> open_weights() {
    weights_ = file("adapter_model.safetensors");
    if (is_file(weights_)) {
      BOOST_OUTCOME_TRY(Checkpoint checkpoint, open_(weights_, {}));
      for (const CheckpointFile& each : checkpoint.files) adapter_.files.push_back(each.source);
      std::ranges::stable_sort(checkpoint.tensors, {}, [](const CheckpointTensor& tensor) {
        const Extent* const extent = tensor.values->as_extent();
        return extent ? extent->offset : 0;
      });
      return std::move(checkpoint.tensors);
    }
    weights_ = file("adapter_model.bin");
    if (!is_file(weights_))
      return input_error(adapter_.folder, "has neither adapter_model.safetensors nor adapter_model.bin",
                         "the adapter is incomplete: download or save it again");
    BOOST_OUTCOME_TRY(const auto opened, open_source(weights_));
    adapter_.files.push_back(opened->describe());
    return read_torch_file(opened);
  }

  Status take(const CheckpointTensor& tensor) {
    const std::string& name = tensor.name;
    const NameParts parts = parts_of_name(name);
    BOOST_OUTCOME_TRY(check_one_adapter(parts.adapter));
    if (parts.role == NameParts::Role::kOther) return take_other(tensor, parts.base);
    const bool is_a = parts.role == NameParts::Role::kA;
    const std::string& base = parts.base;
    const auto [found, is_new] = pairs_.try_emplace(base);
    if (is_new) order_.push_back(base);
    if (is_new && parts.is_embedding) adapter_.embeddings.push_back(base);
    const CheckpointTensor*& half = is_a ? found->second.a : found->second.b;
    if (half)
      return input_error(weights_, fmt::format("{} and {} are both {} of {}", quoted_name(half->name),
                                               quoted_name(name), is_a ? "A" : "B", quoted_name(base)));
    kept_.push_back(std::make_unique<CheckpointTensor>(tensor));
    half = kept_.back().get();
    return ok();
  }

  // The file may be of a whole model with several adapters.
  Status check_one_adapter(const std::string& name) {
    if (name.empty() || name == name_in_model_) return ok();
    if (!name_in_model_.empty())
      return input_error(
          weights_, fmt::format("contains several adapters: {} and {}", quoted_name(name_in_model_), quoted_name(name)),
          "save one of them: `model.save_pretrained(FOLDER, selected_adapters=[NAME])` of PEFT");
    name_in_model_ = name;
    return ok();
  }

  // Takes norms, which mergekit-extract-lora stores beside the pairs.
  Status take_other(const CheckpointTensor& tensor, const std::string& base) {
    const std::string& name = tensor.name;
    if (contains(name, ".base_layer.") || contains(name, ".original_module.")) return ok();
    if (contains(name, "_layernorm") || contains(name, ".norm")) {
      adapter_.tensors.push_back({base, tensor.values});
      return ok();
    }
    std::string help = "only pairs lora_A, lora_B, and norms can be converted";
    if (contains(name, ".lora_magnitude_vector"))
      help = "it belongs to DoRA: merge the adapter with PEFT's merge_and_unload(), and convert the result";
    else if (contains(name, ".modules_to_save.") || contains(name, ".embed_tokens.weight") ||
             contains(name, ".lm_head.weight"))
      help =
          "the full layer was trained, perhaps for new tokens: merge the adapter with PEFT's merge_and_unload(), and "
          "convert the result";
    return input_error(weights_, fmt::format("{} is neither a lora_A nor a lora_B tensor", quoted_name(name)), help);
  }

  Status add_pair(const std::string& name, const Halves& halves) {
    if (!halves.a || !halves.b)
      return input_error(weights_,
                         fmt::format("{} of {} is missing", halves.a ? "lora_B" : "lora_A", quoted_name(name)),
                         fmt::format("{} is only half of a pair; the adapter is incomplete",
                                     quoted_name((halves.a ? halves.a : halves.b)->name)));
    for (const CheckpointTensor* const half : {halves.a, halves.b}) {
      const std::string_view type = half->values->type->name;
      const bool is_matrix = half->dims.size() == 2 && half->values->shape.elements() > 0;
      if (!is_matrix || (type != "F32" && type != "F16" && type != "BF16"))
        return input_error(weights_,
                           fmt::format("{} is {} of {}, not a matrix of F32, F16, or BF16", quoted_name(half->name),
                                       type, describe(half->values->shape)),
                           kSaveAdapterAgain);
    }
    BOOST_OUTCOME_TRY(ExpressionRef b, scaled(name, halves));
    auto product = expressions::low_rank(nullptr, halves.a->values, std::move(b), 1);
    if (product && adapter_.transposed) product = expressions::transpose(std::move(product).value(), {1, 0});
    if (!product) {
      Error error = input_error(weights_, fmt::format("pair of {}: {}", quoted_name(name), product.error().what));
      error.detail = fmt::format("{}, {}", halves.a->name, halves.b->name);
      return error;
    }
    if (!adapter_.stored) adapter_.stored = halves.a->values->type;
    adapter_.tensors.push_back({name, std::move(product).value()});
    return ok();
  }

  // Returns B, scaled so that the product is right with the alpha of all modules.
  Result<ExpressionRef> scaled(const std::string& name, const Halves& halves) const {
    BOOST_OUTCOME_TRY(const double own, own_alpha(without(name, ".weight", "")));
    const auto factor = static_cast<float>(alpha_for(own, halves) / adapter_.alpha);
    if (factor == 1) return halves.b->values;
    if (!is_scale(factor))
      return invalid(fmt::format("the alpha of {} differs too much from 'lora_alpha'", quoted_name(name)),
                     "correct 'alpha_pattern' or 'lora_alpha'");
    BOOST_OUTCOME_TRY(ExpressionRef values, to_type(halves.b->values, "F32"));
    return expressions::map(std::move(values), *find_map_function("multiply"), factor);
  }

  Result<double> own_alpha(const std::string& module) const {
    for (const AlphaRule& rule : alphas_) {
      BOOST_OUTCOME_TRY(const bool fits, rule.module.matches(module));
      if (fits) return rule.alpha;
    }
    return alpha_;
  }

  const CheckpointOpener& open_;
  json::value config_;            // an object
  std::string weights_;           // path
  std::string name_in_model_;     // of the adapter, if names of tensors have it
  double alpha_ = 0;              // of the modules without their own
  bool rank_stabilized_ = false;  // rsLoRA
  std::vector<AlphaRule> alphas_;
  std::vector<std::string> order_;  // names of the pairs, by their first halves
  std::map<std::string, Halves> pairs_;
  std::vector<std::unique_ptr<CheckpointTensor>> kept_;
  Adapter adapter_;
};

}  // namespace

bool is_adapter_file(std::string_view name) { return name.starts_with("adapter_model"); }

Error no_adapter(const std::string& folder) {
  return input_error(folder, is_folder(folder) ? fmt::format("has no {}", kConfig) : "the folder does not exist",
                     "give the folder of a PEFT adapter, with adapter_config.json and adapter_model.safetensors or "
                     "adapter_model.bin");
}

Result<Adapter> read_adapter(const std::string& folder, const CheckpointOpener& open) {
  return AdapterReader(folder, open).read();
}

}  // namespace ggufmill::huggingface
