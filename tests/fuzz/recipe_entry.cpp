#include "stages/quantize/recipe.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

namespace ggufmill {

std::string fuzz_recipe(std::string_view yaml) {
  const MemoryFile file(yaml, yaml.size());
  if (!file.good()) return "no memory file";
  const auto recipe = RecipeCatalog().find(file.path());
  if (recipe) return {};
  const Error& error = recipe.error();
  if (error.what.empty() || error.code != ExitCode::kUsage) return "not a clear error: " + render(error);
  return render(error).size() < 100000 ? "" : "an error that is too long: " + render(error);
}

std::vector<std::string> recipe_seeds() {
  std::vector<std::string> seeds;
  for (const BuiltInRecipe& recipe : built_in_recipes()) seeds.emplace_back(recipe.text);
  return seeds;
}

}  // namespace ggufmill
