#pragma once
// A recipe: data that decides the type of each tensor of a model. The files are configs/recipes/*.yaml; users can start
// from a copy of one.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/config/extended_files.h"
#include "stages/quantize/condition.h"
#include "stages/quantize/encoder_fields.h"

namespace ggufmill {

struct Rule {
  Condition condition{};
  const TypeInfo* type = nullptr;    // null: the tensor keeps its type
  std::string text{};                // shown by `plan`: "Q4_K_M rule 2 (ffn_down spread)"
  bool named = false;                // given next to the recipe, in the pipeline file
  std::optional<Encoder> encoder{};  // none: that of the type or the output
};

struct Recipe {
  std::string name{};
  std::string description{};
  std::vector<std::string> aliases{};
  bool partial = false;                      // only a base for other recipes
  const TypeInfo* type = nullptr;            // used if no rule matches; null: the tensor keeps its type
  std::optional<std::uint32_t> file_type{};  // written as general.file_type; nullopt: left unchanged
  std::vector<Rule> keep{};                  // tensors that are never converted
  std::vector<Rule> rules{};                 // the first match wins
  std::vector<Rule> adjust{};                // applied after `rules`; the first match wins; mostly with `from`
  std::map<const TypeInfo*, const TypeInfo*> fallback{};  // for rows that are not whole blocks
  const TypeInfo* last_fallback = nullptr;                // if that does not fit either
  EncodersByType encoders{};                              // of all tensors of a type whose rule has none
  std::optional<Encoder> encoder{};                       // of the other types that have it, unless the output has one
  bool is_list = false;  // read from a list of types, which is meant for all tensors (recipe_list.h)
  bool is_type = false;  // made from one type that the user named, based on what all recipes share
  std::vector<const TypeInfo*> needs_importance{};  // types refused without importance, except for...
  std::vector<ClassSet> importance_exempt{};        // ...tensors of these classes
  std::vector<ClassSet> plain_rows{};               // classes whose rows are never interleaved
  // Names of recipes, and the file types that replace theirs when rows are interleaved. Not inherited.
  std::vector<std::pair<std::string, std::uint32_t>> interleaved_file_types{};
  ModelGroups models{};
  std::vector<std::string> keep_dimensions{};  // groups of models whose tensors keep trailing dimensions of 1
  std::string module{};                        // kernel module whose types it names; empty: none
  // As llama-quantize does if there is no value:
  std::optional<bool> by_layer{};       // the order of tensors, unless the output has one
  std::optional<bool> keys_in_place{};  // metadata keys that exist keep their positions
  std::optional<bool> counts_all{};     // positions also count tensors that a rule of the output decides
  std::vector<std::string> files{};     // paths it was read from, including `extends`; empty: built in
};

// Returns the field table of a recipe file.
FieldSpec recipe_fields();
// Reads `layers` (true) or `source` (false).
Form<bool> order_form();

// A recipe file embedded at build time.
struct BuiltInRecipe {
  std::string_view name;
  std::string_view text;  // YAML
};
std::span<const BuiltInRecipe> built_in_recipes();  // sorted by name; includes partial ones

// Finds recipes: built-in ones by name or alias, ignoring case, and files by path: NAME.yaml, or a list NAME.recipe.
class RecipeCatalog {
 public:
  explicit RecipeCatalog(Types types = {}) : types_(std::move(types)) {}
  // Resolves `extends`: the recipe's own rules come before inherited ones, its other values replace inherited ones.
  // Fails for an unknown name, a recipe that extends itself, a file with errors, or a built-in recipe whose kernel
  // module is not loaded; the error refers to `asked`.
  Result<Recipe> find(const std::string& name_or_path, const Origin& asked = {}) const;
  // The same, but also fails for a partial recipe.
  Result<Recipe> find_complete(const std::string& name_or_path, const Origin& asked) const;
  // Returns the number of the built-in recipe with that name or alias; nullopt if there is no such recipe.
  std::optional<std::uint32_t> file_type_of(const std::string& name) const;
  // Returns the number for files whose weights have this type; nullopt if there is none.
  std::optional<std::uint32_t> file_type_of(const TypeInfo& type) const;
  // Return the number that replaces a file type when rows are interleaved, or separated again; the same if none does.
  // If several recipes have one number, the first one wins.
  static std::uint32_t interleaved_file_type(std::uint32_t number);
  static std::uint32_t plain_file_type(std::uint32_t number);
  // Returns the built-in recipes, without those whose kernel module is not loaded; sorted by name, with partial ones.
  std::vector<BuiltInRecipe> offered() const;
  // Returns help for an unknown recipe: the nearest name or alias of a complete recipe, and the command that lists
  // them.
  std::string hint(const std::string& name) const;
  const Types& types() const { return types_; }

 private:
  struct Text {
    std::string name;  // for messages and reasons
    std::string text;
  };
  Result<Recipe> find_list(const Text& text, ExtendedFiles& files) const;
  Result<Text> text_of(const std::string& name, const Origin& asked) const;
  Result<Recipe> find(const std::string& name_or_path, const Origin& asked, ExtendedFiles& files) const;

  Types types_;
};

// Returns what all recipes have in common, without a type: the base for a target.
Result<Recipe> recipe_of_target(const RecipeCatalog& catalog);

// Returns the types that recipes refuse without importance, although some of them can be written without it.
Result<std::vector<const TypeInfo*>> types_wanting_importance(const RecipeCatalog& catalog);

// Returns a recipe that gives one type to every tensor of two or more dimensions.
Result<Recipe> recipe_of_type(const TypeInfo& type, const RecipeCatalog& catalog);

// The name of a complete recipe, found in `catalog`.
Form<Recipe> recipe_name(const RecipeCatalog& catalog);

// Rules that a user gives in addition to a recipe, and the function that puts them before the recipe's own. `where`
// names them in reasons.
Form<std::vector<Rule>> additional_rules_form(const Types& types);
void add_rules(std::vector<Rule> rules, const std::string& where, Recipe& recipe);

// Returns the built-in recipe with that name or alias, ignoring case, whether or not its module is loaded; null if
// there is none.
const BuiltInRecipe* find_built_in_recipe(const std::string& name);
// Returns what a built-in recipe says about itself: name, description, aliases, partial, file type, module, and file
// types of interleaved rows. It is read once. Thread-safe.
const Recipe& heading_of(const BuiltInRecipe& recipe);

}  // namespace ggufmill
