#include "stages/quantize/quantize_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "stages/quantize/file_type.h"
#include "stages/quantize/importance_needs.h"
#include "stages/quantize/misfits.h"
#include "stages/quantize/quantize_fields.h"
#include "stages/quantize/tensor_order.h"

namespace ggufmill {
namespace {

class QuantizeStage : public Stage {
 public:
  QuantizeStage(QuantizeStageOptions options, RecipeShelf shelf)
      : options_(std::move(options)), shelf_(std::move(shelf)) {}

  Result<Model> apply(Model model) const override {
    if (options_.order_by_layer) sort_by_layer(model.tensors);
    // The rules, and what is written, count dimensions as ggml does.
    for (Tensor& tensor : model.tensors) {
      BOOST_OUTCOME_TRY(tensor.expression,
                        expressions::reshape(tensor.expression, without_last_ones(tensor.expression->shape)));
    }
    std::vector<TensorRule> rules = options_.rules;
    const ModelFacts facts = facts_of(model);
    Decider decider(options_.recipe, rules, options_.pure, options_.fallback, facts);
    Misfits misfits;
    for (Tensor& tensor : model.tensors) {
      auto decided = decider.decide(tensor);
      if (!decided) return error_at(options_.origin, decided.error().what, decided.error().help);
      Decision& decision = decided.value();
      BOOST_OUTCOME_TRY(check_requantize(tensor, *decision.type));
      if (decision.refused) misfits.add(decision, tensor);
      tensor.type = decision.type;
      tensor.fallback_from = decision.refused ? nullptr : decision.wanted;
      tensor.reason = std::move(decision.reason);
    }
    BOOST_OUTCOME_TRY(check_rules_used(rules));
    const Origin& asked = options_.recipe.is_type ? options_.recipe_origin : options_.origin;
    for (Error& error : misfits.errors(asked, options_.misfit_is_given, shelf_.types()))
      model.problems.push_back(std::move(error));
    find_importance_problems(options_.recipe, model);
    write_metadata(model);
    model.notes.set(notes::kRecipe, options_.recipe.name);
    return model;
  }

  std::vector<std::string> inputs() const override { return options_.recipe.files; }

 private:
  Status check_rules_used(const std::vector<TensorRule>& rules) const {
    Diagnostics unused;
    for (const TensorRule& rule : rules) {
      if (rule.used || rule.optional) continue;
      unused.add(error_at(rule.origin, fmt::format("no tensor matches '{}'", rule.match.text()),
                          "`ggufmill inspect` lists the tensors; an earlier rule may have taken them all"));
    }
    if (!unused.empty()) return unused.together();
    return ok();
  }

  // Quality that one quantization has lost no other brings back.
  Status check_requantize(const Tensor& tensor, const TypeInfo& type) const {
    if (options_.requantize || !tensor.source_type().is_quantized() || &type == &tensor.source_type()) return ok();
    return error_at(
        options_.origin,
        fmt::format("tensor '{}' is {} already and would become {}", tensor.name, tensor.source_type().name, type.name),
        "start from the F16, BF16 or F32 model, or allow it: requantize: true, or --allow-requantize");
  }

  void write_metadata(Model& model) const {
    model.metadata.set_at_end("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    if (options_.recipe.file_type)
      model.metadata.set_at_end("general.file_type",
                                metadata_unsigned(MetadataType::kUint32, *options_.recipe.file_type));
    else if (const MetadataValue* before = model.metadata.find("general.file_type"))
      model.metadata.set_at_end("general.file_type", MetadataValue(*before));
    else
      model.metadata.set_at_end("general.file_type",
                                metadata_unsigned(MetadataType::kUint32, guessed_file_type(model.tensors, shelf_)));
  }

  QuantizeStageOptions options_;
  RecipeShelf shelf_;
};

}  // namespace

Result<std::unique_ptr<Stage>> make_quantize_stage(QuantizeStageOptions options, RecipeShelf shelf) {
  if (options.recipe.partial)
    return error_at(options.recipe_origin,
                    fmt::format("recipe '{}' is only a base for other recipes", options.recipe.name),
                    "`ggufmill recipe list` lists the complete ones");
  return std::make_unique<QuantizeStage>(std::move(options), std::move(shelf));
}

StageSpec quantize_stage(Types types) {
  StageSpec spec;
  spec.field = quantize_fields();
  spec.per_output = true;
  spec.make = [shelf = RecipeShelf(std::move(types))](const ConfigNode& value) -> Result<std::unique_ptr<Stage>> {
    BOOST_OUTCOME_TRY(QuantizeStageOptions options, read_quantize(value, shelf));
    return make_quantize_stage(std::move(options), shelf);
  };
  return spec;
}

}  // namespace ggufmill
