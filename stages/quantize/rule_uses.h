#pragma once
// Effect of a recipe's rules on a model.

#include <cstdint>
#include <string>
#include <vector>

#include "stages/quantize/recipe.h"

namespace ggufmill {

struct RuleUse {
  std::string rule;           // as shown by `plan`
  std::uint64_t tensors = 0;  // number of tensors whose type it decides
};

// Returns an entry for each rule of a complete recipe, including inherited rules, in the order they are tried; the
// lists follow one another. A rule that decides no tensor matches none, or only tensors already decided by an earlier
// rule.
Result<std::vector<RuleUse>> rule_uses(const Recipe& recipe, const Model& model, const RecipeCatalog& catalog);

// Returns the model with the types that a recipe gives it.
Result<Model> with_recipe(const Recipe& recipe, Model model, const RecipeCatalog& catalog);

}  // namespace ggufmill
