#pragma once
// The number of general.file_type where neither the recipe nor the source says one.

#include <cstdint>
#include <vector>

#include "pipeline/core/model.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {

// As llama.cpp guesses it for such a file (src/llama-model-loader.cpp, MIT): the number of the type that most tensors
// have, of several the one that is first there as often, layer by layer; with a bit that says it is a guess.
std::uint32_t guessed_file_type(const std::vector<Tensor>& tensors, const RecipeShelf& shelf);

}  // namespace ggufmill
