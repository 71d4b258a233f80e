#pragma once
// The stage `quantize`: decides the type of every tensor, by a recipe, a type, and the user's rules.

#include <memory>
#include <vector>

#include "pipeline/config/registry.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/target.h"

namespace ggufmill {

struct QuantizeStageOptions {
  Recipe recipe;                  // of a RecipeShelf, or of recipe_of_type(); a whole one
  std::vector<TensorRule> rules;  // before the recipe's
  bool pure = false;              // the recipe's type for all tensors: none of its rules
  bool requantize = true;         // quantized tensors may be quantized anew
  bool fallback = false;          // of types that the user named; a recipe's own always fall back
  bool misfit_is_given = false;   // `fallback` is said, for messages
  bool order_by_layer = true;     // as llama-quantize writes tensors; else as in the source
  // The types of tensors that neither the recipe, which then has no type, nor a rule decides.
  std::optional<TargetOptions> target{};
  Origin origin{}, recipe_origin{};
};

// Refused: a recipe that is there for others to extend. `shelf` knows the numbers of file types.
Result<std::unique_ptr<Stage>> make_quantize_stage(QuantizeStageOptions options, RecipeShelf shelf);

// What is to be measured for a stage that fills a size; null for every other stage.
const TargetOptions* target_of(const Stage& stage);
// The same stage with a measurement.
std::unique_ptr<Stage> with_measurement(const Stage& stage, std::shared_ptr<const Measurement> measurement);
// A model as such a stage leaves it to the choice: in its order, with the types that recipe and rules decide, and the
// tensors that are chosen for.
struct Undecided {
  Model model;
  std::vector<std::size_t> open;  // indices into its tensors
};
Result<Undecided> undecided(const Stage& stage, Model model);

// What all recipes have in common, without a type of its own: what a target starts from.
Result<Recipe> recipe_of_target(const RecipeShelf& shelf);

// Types that recipes refuse without importance, though some of them can be written without.
Result<std::vector<const TypeInfo*>> types_wanting_importance(const RecipeShelf& shelf);

// One type for every tensor of two dimensions and more.
Result<Recipe> recipe_of_type(const TypeInfo& type, const RecipeShelf& shelf);

// `quantize: Q4_K_M`, or `quantize: {recipe: Q4_K_M, tensors: [..], ..}`; `types` are
// those that it and recipes can name.
StageSpec quantize_stage(Types types = {});

}  // namespace ggufmill
