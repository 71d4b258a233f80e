#pragma once
// Lists of types, as the recipes of Thireus' GGUF-Tool-Suite are: lines of REGEX=TYPE, of which the first that matches
// a tensor decides. They are what ik_llama.cpp's llama-quantize takes as --custom-q, one rule a line, with comments
// (#).

#include <string>
#include <string_view>

#include "stages/quantize/recipe.h"

namespace ggufmill {

// Returns true for the path of such a file: FILE.recipe.
bool names_recipe_list(std::string_view path);

// Reads such a file. The rules have no type for the rest of the tensors. Errors, of all lines at once, refer to the
// lines of `name`.
Result<std::vector<Rule>> parse_recipe_list(std::string_view text, const std::string& name, const Types& types);

}  // namespace ggufmill
