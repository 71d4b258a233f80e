#include "stages/quantize/rule_uses.h"

#include <algorithm>

#include "stages/quantize/quantize_stage.h"

namespace ggufmill {

Result<Model> with_recipe(const Recipe& recipe, Model model, const RecipeCatalog& catalog) {
  QuantizeStageOptions options;
  options.recipe = recipe;
  return make_quantize_stage(std::move(options), catalog)->apply(std::move(model));
}

Result<std::vector<RuleUse>> rule_uses(const Recipe& recipe, const Model& model, const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(const Model made, with_recipe(recipe, model, catalog));
  std::vector<RuleUse> uses;
  for (const auto* rules : {&recipe.keep, &recipe.rules, &recipe.adjust})
    for (const Rule& rule : *rules) {
      const std::string reason = rules == &recipe.keep ? "kept: " + rule.text : rule.text;
      const auto decides = [&](const Tensor& tensor) {
        return tensor.reason == reason || tensor.reason.starts_with(reason + "; ");
      };
      uses.push_back({reason, static_cast<std::uint64_t>(std::ranges::count_if(made.tensors, decides))});
    }
  return uses;
}

}  // namespace ggufmill
