#pragma once
// The stage `quantize`: decides the type of every tensor, by a recipe, a type, and the user's rules.

#include <memory>
#include <vector>

#include "pipeline/config/registry.h"
#include "stages/quantize/decide.h"

namespace ggufmill {

struct QuantizeStageOptions {
  Recipe recipe;                  // of a RecipeShelf, or of recipe_of_type(); a whole one
  std::vector<TensorRule> rules;  // before the recipe's
  bool pure = false;              // the recipe's type for all tensors: none of its rules
  bool requantize = true;         // quantized tensors may be quantized anew
  bool fallback = false;          // of types that the user named; a recipe's own always fall back
  bool misfit_is_given = false;   // `fallback` is said, for messages
  bool order_by_layer = true;     // as llama-quantize writes tensors; else as in the source
  Origin origin{}, recipe_origin{};
};

// Refused: a recipe that is there for others to extend. `shelf` knows the numbers of file types.
Result<std::unique_ptr<Stage>> make_quantize_stage(QuantizeStageOptions options, RecipeShelf shelf);

// One type for every tensor of two dimensions and more.
Result<Recipe> recipe_of_type(const TypeInfo& type, const RecipeShelf& shelf);

// `quantize: Q4_K_M`, or `quantize: {recipe: Q4_K_M, tensors: [..], ..}`; `types` are
// those that it and recipes can name.
StageSpec quantize_stage(Types types = {});

}  // namespace ggufmill
