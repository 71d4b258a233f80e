// Checks the built-in recipes, configs/recipes/*.yaml and those of wings, as a set: all are valid and short, and no
// code refers to them.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/kernels/kernels.h"
#include "stages/quantize/recipe.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

namespace ggufmill {
namespace {

// Offers the recipes of the kernel modules of wings as well.
const RecipeCatalog& catalog() {
  static const auto kernels = Kernels::load({.directories = {GGUFMILL_WING_MODULES}, .isa = {}}).value();
  static const RecipeCatalog catalog(kernels->types());
  return catalog;
}

Recipe read(std::string_view name) {
  auto recipe = catalog().find(std::string(name));
  if (!recipe) FAIL(render(recipe.error()));
  return std::move(recipe).value();
}

TEST_CASE("every recipe file is built in, byte for byte") {
  std::map<std::string, std::string> files;
  for (const std::string& folder : std::vector<std::string>{"configs/recipes", GGUFMILL_RECIPE_FOLDERS})
    for (const auto& entry : fs::directory_iterator(folder)) files[entry.path().stem()] = read_text(entry.path());
  CHECK(files.size() == built_in_recipes().size());
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    CAPTURE(recipe.name);
    CHECK(files[std::string(recipe.name)] == recipe.text);
  }
}

TEST_CASE("every recipe can be read and describes itself") {
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    CAPTURE(built_in.name);
    const Recipe recipe = read(built_in.name);
    CHECK(recipe.name == built_in.name);
    CHECK_FALSE(recipe.description.empty());
  }
}

TEST_CASE("no recipe is longer than 60 lines") {
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    CAPTURE(recipe.name);
    CHECK(std::count(recipe.text.begin(), recipe.text.end(), '\n') <= 60);
  }
}

TEST_CASE("every recipe of a file type has a number of its own, a type and fallbacks") {
  std::map<std::uint32_t, std::string_view> numbers;
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    CAPTURE(built_in.name);
    const Recipe recipe = read(built_in.name);
    if (recipe.partial || built_in.name == "COPY") continue;
    REQUIRE(recipe.file_type);
    CHECK(numbers.emplace(*recipe.file_type, built_in.name).second);
    CHECK(recipe.type != nullptr);
    if (recipe.module.empty()) CHECK(recipe.last_fallback == &type_named("F16"));
  }
  CHECK(numbers.size() >= 35);
}

TEST_CASE("a recipe names its module if it extends a recipe of a module") {
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    CAPTURE(built_in.name);
    CHECK(heading_of(built_in).module == read(built_in.name).module);
  }
}

TEST_CASE("file types of interleaved rows name recipes, each once") {
  std::set<std::uint32_t> plain;
  for (const BuiltInRecipe& built_in : built_in_recipes())
    for (const auto& [name, interleaved] : heading_of(built_in).interleaved_file_types) {
      CAPTURE(name);
      REQUIRE(find_built_in_recipe(name));
      const auto number = heading_of(*find_built_in_recipe(name)).file_type;
      REQUIRE(number);
      CHECK(plain.insert(*number).second);
      CHECK(RecipeCatalog::interleaved_file_type(*number) == interleaved);
    }
}

TEST_CASE("names and aliases are unambiguous") {
  std::map<std::string, std::string_view> names;
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    CHECK(names.emplace(built_in.name, built_in.name).second);
    for (const std::string& alias : read(built_in.name).aliases) CHECK(names.emplace(alias, built_in.name).second);
  }
}

bool is_code(const fs::path& path) {
  return (path.extension() == ".cpp" || path.extension() == ".h") && !path.stem().string().ends_with("_test");
}

// Returns "FILE: LINE" for each use of `name` in quotes in code below `folder`, except for examples in field tables.
std::vector<std::string> uses_of(std::string_view name, const std::string& folder) {
  std::vector<std::string> uses;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!is_code(entry.path())) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (line.find('"' + std::string(name) + '"') != std::string::npos && line.find("example") == std::string::npos)
        uses.push_back(entry.path().string() + ": " + line);
  }
  return uses;
}

TEST_CASE("no code names a recipe") {
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (catalog().types().find(recipe.name)) continue;  // the code refers to the type
    CAPTURE(recipe.name);
    std::vector<std::string> uses = uses_of(recipe.name, "stages");
    for (std::string& use : uses_of(recipe.name, "pipeline")) uses.push_back(std::move(use));
    if (recipe.name == "base") {  // shared by plain types and recipes
      // It is also an option of adapters: the model that they belong to.
      std::erase_if(uses, [](const std::string& use) {
        const auto names = [&](const char* word) { return use.find(word) != std::string::npos; };
        return names("adapter") || names("lora") || names("Lora") || names("option_reference(") ||
               names("cannot_be_together(");
      });
      REQUIRE(uses.size() == 1);
      CHECK(uses[0].starts_with("stages/quantize/recipe.cpp: "));
    } else {
      CHECK(uses.empty());
    }
  }
}

}  // namespace
}  // namespace ggufmill
