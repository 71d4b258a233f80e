#pragma once
// Which tensors a recipe refuses to quantize without importance.

#include "pipeline/core/model.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {

// Adds a problem to the model for every tensor whose type the recipe refuses without importance and that has none.
void find_importance_problems(const Recipe& recipe, Model& model);

}  // namespace ggufmill
