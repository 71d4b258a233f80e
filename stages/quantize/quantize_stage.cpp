#include "stages/quantize/quantize_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "stages/quantize/decide.h"
#include "stages/quantize/file_type.h"
#include "stages/quantize/importance_needs.h"
#include "stages/quantize/misfits.h"
#include "stages/quantize/quantize_fields.h"
#include "stages/quantize/tensor_order.h"

namespace ggufmill {
namespace {

class QuantizeStage : public Stage {
 public:
  QuantizeStage(ConfigNode value, QuantizeSettings settings, RecipeShelf shelf)
      : value_(std::move(value)), settings_(std::move(settings)), shelf_(std::move(shelf)) {}

  Result<Model> apply(Model model) const override {
    if (settings_.order_by_layer) sort_by_layer(model.tensors);
    std::vector<TensorRule> rules = settings_.rules;
    const ModelFacts facts = facts_of(model);
    Decider decider(settings_.recipe, rules, settings_.pure, settings_.fallback, facts);
    Misfits misfits;
    for (Tensor& tensor : model.tensors) {
      auto decided = decider.decide(tensor);
      if (!decided) return error_at(value_, decided.error().what, decided.error().help);
      Decision& decision = decided.value();
      BOOST_OUTCOME_TRY(check_requantize(tensor, *decision.type));
      if (decision.refused) misfits.add(decision, tensor);
      tensor.type = decision.type;
      tensor.fallback_from = decision.refused ? nullptr : decision.wanted;
      tensor.reason = std::move(decision.reason);
    }
    BOOST_OUTCOME_TRY(check_rules_used(rules));
    for (Error& error : misfits.errors(value_)) model.problems.push_back(std::move(error));
    find_importance_problems(settings_.recipe, model);
    write_metadata(model);
    model.recipe = settings_.recipe.name;
    return model;
  }

  std::vector<std::string> inputs() const override { return settings_.recipe.files; }

 private:
  Status check_rules_used(const std::vector<TensorRule>& rules) const {
    Diagnostics unused;
    for (const TensorRule& rule : rules) {
      if (rule.used || rule.optional) continue;
      unused.add(error_at(rule.file, rule.position, fmt::format("no tensor matches '{}'", rule.match.text()),
                          "`ggufmill inspect` lists the tensors; an earlier rule may have taken them all"));
    }
    if (!unused.empty()) return unused.together();
    return ok();
  }

  // Quality that one quantization has lost no other brings back.
  Status check_requantize(const Tensor& tensor, const TypeInfo& type) const {
    if (settings_.requantize || !tensor.source.type->is_quantized() || &type == tensor.source.type) return ok();
    return error_at(
        value_,
        fmt::format("tensor '{}' is {} already and would become {}", tensor.name, tensor.source.type->name, type.name),
        "start from the F16, BF16 or F32 model, or allow it: requantize: true, or --allow-requantize");
  }

  void write_metadata(Model& model) const {
    model.metadata.set_at_end("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    if (settings_.recipe.file_type)
      model.metadata.set_at_end("general.file_type",
                                metadata_unsigned(MetadataType::kUint32, *settings_.recipe.file_type));
    else if (const MetadataValue* before = model.metadata.find("general.file_type"))
      model.metadata.set_at_end("general.file_type", MetadataValue(*before));
    else
      model.metadata.set_at_end("general.file_type",
                                metadata_unsigned(MetadataType::kUint32, guessed_file_type(model.tensors, shelf_)));
  }

  ConfigNode value_;
  QuantizeSettings settings_;
  RecipeShelf shelf_;
};

}  // namespace

StageSpec quantize_stage(ConfigReader reader) {
  StageSpec spec;
  spec.field = quantize_fields();
  spec.per_output = true;
  spec.make = [shelf = RecipeShelf(std::move(reader))](const ConfigNode& value) -> Result<std::unique_ptr<Stage>> {
    BOOST_OUTCOME_TRY(QuantizeSettings settings, read_quantize(value, shelf));
    return std::unique_ptr<Stage>(std::make_unique<QuantizeStage>(value, std::move(settings), shelf));
  };
  return spec;
}

}  // namespace ggufmill
