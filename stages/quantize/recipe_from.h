#pragma once
// A recipe that gives a model the types that it has: the way back from a file.

#include <string>

#include "stages/quantize/recipe.h"

namespace ggufmill {

// The text of a recipe file: the type that most weights have, and for every other type the fewest rules by name.
// Tensors that no recipe converts are left out. `model`: as its file has it; `of`: what it is, for the description.
Result<std::string> recipe_from(const Model& model, const std::string& of, const RecipeShelf& shelf);

}  // namespace ggufmill
