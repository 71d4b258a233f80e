#pragma once
// What the rules of a recipe do to a model.

#include <cstdint>
#include <string>
#include <vector>

#include "stages/quantize/recipe.h"

namespace ggufmill {

struct RuleUse {
  std::string rule;           // as `plan` shows it
  std::uint64_t tensors = 0;  // whose type it decides
};

// Of each rule of a whole recipe, those that it extends included, in the order in which they are asked; lists one after
// the other. A rule that decides nothing fits no tensor, or comes after others that do.
Result<std::vector<RuleUse>> rule_uses(const Recipe& recipe, const Model& model, const RecipeShelf& shelf);

// The model with the types that a recipe gives it.
Result<Model> with_recipe(const Recipe& recipe, Model model, const RecipeShelf& shelf);

}  // namespace ggufmill
