#include "stages/lora/lora_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

constexpr std::string_view kArchitecture = "general.architecture";

std::string text_of(const Metadata& metadata, std::string_view key) {
  const MetadataValue* const value = metadata.find(std::string(key));
  return value ? std::string(as_string(*value).value_or("")) : "";
}

// The tensors of an adapter that belong to one tensor of the model.
struct Change {
  ExpressionRef a, b;         // a pair
  ExpressionRef replacement;  // or a norm
};

// The changes under the names of the model's tensors, in the adapter's order.
class Changes {
 public:
  static Result<Changes> of(const Model& adapter, const std::string& path) {
    Changes changes;
    for (const Tensor& tensor : adapter.tensors) changes.add(tensor);
    for (const std::string& name : changes.names_) {
      const Change& change = changes.changes_.at(name);
      if (!change.replacement && (!change.a || !change.b))
        return input_error(path, fmt::format("{}{} is missing", name, change.a ? kLoraB : kLoraA),
                           "the adapter is incomplete");
    }
    const bool has_pairs =
        std::ranges::any_of(changes.changes_, [](const auto& each) { return each.second.a != nullptr; });
    if (!has_pairs)
      return input_error(path, fmt::format("contains no pairs of tensors *{} and *{}", kLoraA, kLoraB),
                         "`lora` merges LoRA adapters: a folder in the format of PEFT, or a GGUF file");
    return changes;
  }

  const std::vector<std::string>& names() const { return names_; }
  // Returns null if the tensor is not changed.
  const Change* find(const std::string& name) const {
    const auto found = changes_.find(name);
    return found == changes_.end() ? nullptr : &found->second;
  }

 private:
  void add(const Tensor& tensor) {
    std::string name = tensor.name;
    ExpressionRef Change::*part = &Change::replacement;
    if (name.ends_with(kLoraA)) part = &Change::a;
    if (name.ends_with(kLoraB)) part = &Change::b;
    if (part != &Change::replacement) name.resize(name.size() - kLoraA.size());
    const auto [change, is_new] = changes_.try_emplace(name);
    if (is_new) names_.push_back(std::move(name));
    change->second.*part = tensor.expression;
  }

  std::vector<std::string> names_;
  std::unordered_map<std::string, Change> changes_;
};

class LoraStage : public Stage {
 public:
  LoraStage(LoraOptions options, AdapterOpener open) : options_(std::move(options)), open_(std::move(open)) {}

  Result<Model> apply(Model model) const override {
    BOOST_OUTCOME_TRY(const Model adapter, open_(options_.adapter, base_of(model)));
    BOOST_OUTCOME_TRY(check_architecture(adapter, model));
    BOOST_OUTCOME_TRY(const Changes changes, Changes::of(adapter, options_.adapter));
    BOOST_OUTCOME_TRY(const double alpha, alpha_of(adapter));
    std::size_t quantized = 0;
    for (Tensor& tensor : model.tensors)
      if (const Change* const change = changes.find(tensor.name)) {
        quantized += tensor.source_type().block_elements > 1;
        BOOST_OUTCOME_TRY(merge(*change, alpha, tensor));
      }
    BOOST_OUTCOME_TRY(check_matches(changes, model));
    model.warnings.insert(model.warnings.end(), adapter.warnings.begin(), adapter.warnings.end());
    if (quantized > 0)
      model.warnings.push_back(
          fmt::format("{}: {} of the tensors that it changes are already quantized; merging into the original weights "
                      "loses less",
                      options_.adapter, quantized));
    return model;
  }

  // The weights are inputs of a run by the tensors that are made from them.
  std::vector<std::string> inputs() const override {
    return {options_.adapter, options_.adapter + "/adapter_config.json"};
  }

 private:
  AdapterBase base_of(const Model& model) const {
    if (!options_.base.empty()) return {options_.base};
    const std::string config = model.notes.get(notes::kCheckpointConfig);
    return {config.substr(0, std::max<std::size_t>(name_begin(config), 1) - 1),
            model.notes.get(notes::kCheckpointArchitecture), noted_checkpoint_maps(model.notes)};
  }

  Status check_architecture(const Model& adapter, const Model& model) const {
    const std::string of_adapter = text_of(adapter.metadata, kArchitecture),
                      of_model = text_of(model.metadata, kArchitecture);
    if (of_adapter.empty() || of_model.empty() || of_adapter == of_model) return ok();
    return input_error(options_.adapter,
                       fmt::format("the adapter is for the architecture {}, but the model has {}",
                                   quoted_name(of_adapter), quoted_name(of_model)),
                       "merge it into the model it was trained for");
  }

  Result<double> alpha_of(const Model& adapter) const {
    const MetadataValue* const value = adapter.metadata.find(std::string(kLoraAlpha));
    const auto alpha = value ? as_number(*value) : std::nullopt;
    if (!alpha || !std::isfinite(*alpha))
      return input_error(options_.adapter, fmt::format("{} is missing or not a number", kLoraAlpha),
                         "it is needed to scale the adapter; convert the adapter again");
    return *alpha;
  }

  Status merge(const Change& change, double alpha, Tensor& tensor) const {
    if (change.replacement) return replace(change.replacement, tensor);
    ExpressionRef a = change.a, b = change.b;
    if (tensor.name == kLoraTransposed) {
      BOOST_OUTCOME_TRY(a, expressions::transpose(change.b, {1, 0}));
      b = change.a;
    }
    // As in llama.cpp, an alpha of 0 means that the product is not scaled.
    const double own = alpha == 0 ? 1 : alpha / static_cast<double>(b->shape.dims[0]);
    const double factor = options_.scale * own;
    // The type that the source gives to the tensor is left to its encoding, so that values are rounded to it only once.
    ExpressionRef weight = tensor.expression;
    if (weight->operation == Operation::kCast) weight = weight->inputs[0];
    auto merged = expressions::low_rank(std::move(weight), std::move(a), std::move(b), factor);
    if (!merged)
      return input_error(options_.adapter, fmt::format("pair of {}: {}", quoted_name(tensor.name), merged.error().what),
                         "the adapter belongs to another model");
    tensor.expression = std::move(merged).value();
    return ok();
  }

  Status replace(const ExpressionRef& norm, Tensor& tensor) const {
    if (norm->shape.dims != tensor.shape().dims)
      return input_error(options_.adapter,
                         fmt::format("{} has the shape {}, but the model's has {}", quoted_name(tensor.name),
                                     describe(norm->shape), describe(tensor.shape())),
                         "the adapter belongs to another model");
    tensor.expression = norm;
    return ok();
  }

  Status check_matches(const Changes& changes, Model& model) const {
    std::unordered_map<std::string_view, bool> names;
    for (const Tensor& tensor : model.tensors) names[tensor.name] = true;
    std::vector<std::string> unmatched;
    for (const std::string& name : changes.names())
      if (!names.contains(name)) unmatched.push_back(name);
    if (unmatched.empty()) return ok();
    std::string what = fmt::format("the adapter changes {}, which the model does not have", quoted_name(unmatched[0]));
    if (unmatched.size() > 1) what += fmt::format(", and {} other tensors that are missing", unmatched.size() - 1);
    if (!options_.ignore_unmatched)
      return input_error(options_.adapter, std::move(what),
                         "set `unmatched: ignore` in the stage `lora` to merge the others");
    model.warnings.push_back(fmt::format("{}: {}", options_.adapter, what));
    return ok();
  }

  LoraOptions options_;
  AdapterOpener open_;
};

Form<LoraOptions> lora_form() {
  using Options = LoraOptions;
  return map_of<Options>(
             {
                 field("adapter", &Options::adapter, path(),
                       "Folder of a PEFT adapter, or a GGUF file made by convert-lora.")
                     .required()
                     .example("adapters/my-lora"),
                 field("base", &Options::base, path(),
                       "Folder with the config.json of the model that a PEFT adapter belongs to; the source, "
                       "if it is a checkpoint, by default.")
                     .example("models/Llama-3-8B"),
                 field("scale", &Options::scale, number().at_least(-1000).at_most(1000),
                       "Factor of the changes; a negative one takes a merged adapter out again.")
                     .example("0.5"),
                 field("unmatched", &Options::ignore_unmatched, word<bool>({{"error", false}, {"ignore", true}}),
                       "What happens if a tensor that the adapter changes is missing.")
                     .example("ignore"),
             })
      .at(&Options::origin)
      .doc("Merges a LoRA adapter into the weights, by name; see `pipeline/llama_cpp/convert.md`.")
      .example("{adapter: adapters/my-lora, scale: 0.5}");
}

}  // namespace

std::unique_ptr<Stage> make_lora_stage(LoraOptions options, AdapterOpener open) {
  return std::make_unique<LoraStage>(std::move(options), std::move(open));
}

StageSpec lora_stage(AdapterOpener open) {
  return stage_spec("lora", lora_form(),
                    [open = std::move(open)](LoraOptions options) -> Result<std::unique_ptr<Stage>> {
                      return make_lora_stage(std::move(options), open);
                    });
}

}  // namespace ggufmill
