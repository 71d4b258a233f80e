#pragma once
// Derives a recipe from an existing file: the inverse of quantizing with a recipe.

#include <string>

#include "stages/quantize/recipe.h"

namespace ggufmill {

// Returns the text of a recipe file that reproduces the types of `model`, as read from its file: the type of most
// weights, and the fewest rules by name for every other type. Tensors that recipes never convert are omitted. `of`
// identifies the model in the description.
Result<std::string> recipe_from(const Model& model, const std::string& of, const RecipeCatalog& catalog);

}  // namespace ggufmill
