#pragma once
// A recipe: which type each tensor of a model gets, as data. The files are configs/recipes/*.yaml; a copy of one is
// where a user starts.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/config/config_node.h"
#include "stages/quantize/condition.h"

namespace ggufmill {

struct Rule {
  Condition condition;
  const TypeInfo* type = nullptr;  // null: the tensor keeps the type it has
  std::string text;                // "Q4_K_M rule 2 (ffn_down spread)": what `plan` shows
  bool named = false;              // it stands beside the recipe, in the pipeline file
};

struct Recipe {
  std::string name;
  std::string description;
  std::vector<std::string> aliases;
  bool partial = false;                                 // there for others to extend
  const TypeInfo* type = nullptr;                       // where no rule decides; null: a tensor keeps its type
  std::optional<std::uint32_t> file_type;               // written as general.file_type; none: left as it is
  std::vector<Rule> keep;                               // tensors that are never converted
  std::vector<Rule> rules;                              // first match wins
  std::vector<Rule> adjust;                             // then, first match wins again, mostly with `from`
  std::map<const TypeInfo*, const TypeInfo*> fallback;  // for rows that are no whole blocks
  const TypeInfo* last_fallback = nullptr;              // where that does not fit either
  bool is_type = false;                           // one type that the user named, with what all recipes have in common
  std::vector<const TypeInfo*> needs_importance;  // types that are refused without it, but for...
  std::vector<ClassSet> importance_exempt;        // ...tensors of these classes
  ModelGroups models;
  std::vector<std::string> files;  // that it was read from, those that it extends included; none of a built-in one
};

// The field table of a recipe file.
FieldSpec recipe_fields();

// Where recipes come from: built in, by name or alias in any letter case; else a file by its path.
class RecipeShelf {
 public:
  explicit RecipeShelf(Types types = {}) : types_(std::move(types)) {}
  // Resolves `extends`: the recipe's own rules come before those it extends, its other values replace them. An unknown
  // name, a recipe that extends itself, or a file with errors: the error names `asked` as the place.
  Result<Recipe> find(const std::string& name_or_path, const Origin& asked = {}) const;
  // The number of the built-in recipe of that name or alias; none where there is no such recipe.
  std::optional<std::uint32_t> file_type_of(const std::string& name) const;
  const Types& types() const { return types_; }

 private:
  Result<Recipe> find(const std::string& name_or_path, const Origin& asked, std::vector<std::string>& chain) const;

  Types types_;
};

// Puts the rules of `list`, which has passed the lint, before those of the recipe.
Status add_rules(const ConfigNode& list, const std::string& where, const Types& types, Recipe& recipe);

// A recipe file embedded at build time.
struct BuiltInRecipe {
  std::string_view name;
  std::string_view text;  // YAML
};
std::span<const BuiltInRecipe> built_in_recipes();  // sorted by name; what they extend included

// Help for an unknown recipe: the nearest name or alias that a user can choose, and the command that lists them.
std::string recipe_hint(const std::string& name);

}  // namespace ggufmill
