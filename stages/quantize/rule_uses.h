#pragma once
// Effect of rules on a model: which tensors they decide.

#include <cstdint>
#include <string>
#include <vector>

#include "stages/quantize/decide.h"
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

// Checks the rules of an output after all of its tensors are decided. A rule that matches no tensor, or only tensors
// that earlier rules decide, is an error (exit code 2) at its place, or a warning of the model if `warns` is set. A
// rule whose tensors are all kept is a warning. Optional rules are not reported.
Status check_rules_used(const std::vector<TensorRule>& rules, bool warns, Model& model);

}  // namespace ggufmill
