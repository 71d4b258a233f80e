#include "stages/quantize/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/text.h"
#include "pipeline/io/io.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMostRecipeBytes = 1 << 20;
constexpr std::size_t kLongestChain = 32;  // length of a chain of `extends`

FieldSpec rules_field(std::string name, std::string doc, bool typed) {
  FieldSpec rule{"", FieldKind::kMap, "Conditions, all of which must be met, and the result."};
  rule.fields = condition_fields();
  if (typed) {
    rule.fields.push_back({"type", FieldKind::kTypeName, "The type of such a tensor."});
    rule.fields.back().required = true;
    rule.fields.back().example = "Q5_K";
  }
  FieldSpec field{std::move(name), FieldKind::kList, std::move(doc)};
  field.item = {std::move(rule)};
  return field;
}

FieldSpec list_of(std::string name, FieldSpec item, std::string doc) {
  FieldSpec field{std::move(name), FieldKind::kList, std::move(doc)};
  field.item = {std::move(item)};
  return field;
}

// Renders the conditions of a rule as written in the recipe: "class ffn_down, depth spread".
std::string words_of(const ConfigNode& rule) {
  std::string text;
  for (const ConfigNode::Entry& entry : rule.entries) {
    if (entry.key == "type") continue;
    std::string value = entry.value.scalar;
    for (const ConfigNode& item : entry.value.items) value += (value.empty() ? "" : "|") + item.scalar;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", entry.key, value);
  }
  return text.size() > 72 ? text.substr(0, 69) + "..." : text;
}

Result<std::vector<Rule>> read_rules(const ConfigNode* list, const std::string& recipe, const Types& types) {
  std::vector<Rule> rules;
  if (!list) return rules;
  for (const ConfigNode& node : list->items) {
    Rule rule;
    BOOST_OUTCOME_TRY(rule.condition, read_condition(node, types));
    if (const ConfigNode* type = node.find("type")) rule.type = types.find(type->scalar);
    rule.text = fmt::format("{}: {}", recipe, words_of(node));
    rules.push_back(std::move(rule));
  }
  return rules;
}

// Puts the recipe's own rules before those it inherits.
Status prepend(std::vector<Rule>& rules, const ConfigNode* list, const std::string& recipe, const Types& types) {
  BOOST_OUTCOME_TRY(auto own, read_rules(list, recipe, types));
  rules.insert(rules.begin(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  return ok();
}

Status read_groups(const ConfigNode* groups, const Types& types, ModelGroups& into) {
  if (!groups) return ok();
  for (const ConfigNode::Entry& group : groups->entries) {
    std::vector<Condition> members;
    for (const ConfigNode& member : group.value.items) {
      BOOST_OUTCOME_TRY(members.emplace_back(), read_condition(member, types));
    }
    into[group.key] = std::move(members);
  }
  return ok();
}

Status check_groups(const std::vector<Rule>& rules, const Recipe& recipe, const ConfigNode& root) {
  for (const Rule& rule : rules)
    for (const std::string& name : rule.condition.models)
      if (!recipe.models.count(name))
        return error_at(root, fmt::format("recipe '{}' uses model group '{}', which is not defined", recipe.name, name),
                        "define it under `models:`, or extend a recipe that defines it");
  return ok();
}

void read_plain(const ConfigNode& root, const Types& types, Recipe& recipe) {
  if (const ConfigNode* node = root.find("description")) recipe.description = node->scalar;
  if (const ConfigNode* node = root.find("type")) recipe.type = types.find(node->scalar);
  if (const ConfigNode* node = root.find("last_fallback")) recipe.last_fallback = types.find(node->scalar);
  if (const ConfigNode* node = root.find("fallback"))
    for (const ConfigNode::Entry& entry : node->entries)
      recipe.fallback[types.find(entry.key)] = types.find(entry.value.scalar);
  if (const ConfigNode* node = root.find("needs_importance"))
    for (const ConfigNode& item : node->items) recipe.needs_importance.push_back(types.find(item.scalar));
  if (const ConfigNode* node = root.find("importance_exempt"))
    for (const ConfigNode& item : node->items) recipe.importance_exempt.push_back(*class_named(item.scalar));
}

// Reads the values that recipes extending this one do not inherit.
Status read_own(const ConfigNode& root, Recipe& recipe) {
  recipe.aliases.clear();
  if (const ConfigNode* node = root.find("aliases"))
    for (const ConfigNode& item : node->items) recipe.aliases.push_back(item.scalar);
  recipe.partial = false;
  if (const ConfigNode* node = root.find("partial")) {
    BOOST_OUTCOME_TRY(recipe.partial, to_bool(*node));
  }
  return ok();
}

// Applies the file's values to `recipe`, which contains the inherited ones.
Status read_recipe(const ConfigNode& root, const Types& types, Recipe& recipe) {
  read_plain(root, types, recipe);
  BOOST_OUTCOME_TRY(read_own(root, recipe));
  if (const ConfigNode* node = root.find("file_type")) {
    BOOST_OUTCOME_TRY(const std::int64_t number, to_integer(*node));
    recipe.file_type = static_cast<std::uint32_t>(number);
  }
  BOOST_OUTCOME_TRY(read_groups(root.find("models"), types, recipe.models));
  BOOST_OUTCOME_TRY(prepend(recipe.keep, root.find("keep"), recipe.name, types));
  BOOST_OUTCOME_TRY(prepend(recipe.rules, root.find("rules"), recipe.name, types));
  BOOST_OUTCOME_TRY(prepend(recipe.adjust, root.find("adjust"), recipe.name, types));
  for (const auto* rules : {&recipe.keep, &recipe.rules, &recipe.adjust}) {
    BOOST_OUTCOME_TRY(check_groups(*rules, recipe, root));
  }
  return ok();
}

struct RecipeText {
  std::string name;  // for messages and reasons
  std::string text;
};

Result<std::string> file_text(const std::string& path) {
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  if (file->bytes() > kMostRecipeBytes)
    return Error{ExitCode::kUsage, path, "recipe is larger than 1 MiB", "",
                 "check that this is the right file; no recipe needs to be that large"};
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

FieldSpec recipe_fields() {
  const FieldSpec word{"", FieldKind::kString, "A name."};
  const FieldSpec type{"", FieldKind::kTypeName, "A tensor type."};
  FieldSpec class_word{"", FieldKind::kEnum, "A tensor class."};
  class_word.choices = class_names();
  FieldSpec members{"", FieldKind::kList, "Conditions on the model, one of which must be met."};
  members.item = {FieldSpec{"", FieldKind::kMap, "A condition."}};
  members.item[0].fields = model_condition_fields();
  FieldSpec models{"models", FieldKind::kDictionary, "Named groups of models, for the condition `model`."};
  models.item = {std::move(members)};
  FieldSpec fallback{"fallback", FieldKind::kDictionary,
                     "Replacement types for rows that are not a multiple of the block size."};
  fallback.item = {type};

  FieldSpec fields{"recipe", FieldKind::kMap, "Chooses the type of each tensor."};
  fields.fields = {
      {"description", FieldKind::kString, "A one-line summary of its purpose."},
      list_of("aliases", word, "Other names of the recipe."),
      {"extends", FieldKind::kString, "Name or path of a recipe to extend; the settings here take precedence."},
      {"partial", FieldKind::kBool, "Whether the recipe is only a base to extend and cannot be used for an output."},
      {"file_type", FieldKind::kInteger, "The number to write as general.file_type."},
      {"type", FieldKind::kTypeName, "The type where no rule matches."},
      rules_field("keep", "Tensors that always keep their type, regardless of all rules.", false),
      rules_field("rules", "The first match decides the type.", true),
      rules_field("adjust", "The first match, with `from` as the type chosen so far, replaces that type.", true),
      std::move(fallback),
      {"last_fallback", FieldKind::kTypeName, "Replacement where the fallback does not fit either."},
      list_of("needs_importance", type, "Types that are refused without importance data."),
      list_of("importance_exempt", class_word, "Classes that are never refused for missing importance data."),
      std::move(models)};
  return fields;
}

Status add_rules(const ConfigNode& list, const std::string& where, const Types& types, Recipe& recipe) {
  const std::size_t before = recipe.rules.size();
  BOOST_OUTCOME_TRY(prepend(recipe.rules, &list, where, types));
  for (std::size_t i = 0; i < recipe.rules.size() - before; ++i) recipe.rules[i].named = true;
  return ok();
}

std::optional<std::uint32_t> RecipeShelf::file_type_of(const std::string& name) const {
  if (names_file(name)) return {};
  const auto recipe = find(name);
  return recipe ? recipe.value().file_type : std::nullopt;
}

Result<Recipe> RecipeShelf::find(const std::string& name_or_path, const Origin& asked) const {
  std::vector<std::string> chain;
  return find(name_or_path, asked, chain);
}

namespace {

// Aliases of a built-in recipe, and true in `partial` if only other recipes use it.
struct Heading {
  std::vector<std::string> aliases;
  bool partial = false;
};

Heading heading_of(const BuiltInRecipe& recipe) {
  Diagnostics ignored;  // built-in files are valid: a test reads them all
  const auto document = read_document(recipe.text, std::string(recipe.name), ignored);
  if (!document) return {};
  Heading heading;
  if (const ConfigNode* aliases = document->root.find("aliases"))
    for (const ConfigNode& alias : aliases->items) heading.aliases.push_back(alias.scalar);
  const ConfigNode* partial = document->root.find("partial");
  heading.partial = partial && partial->scalar == "true";
  return heading;
}

Result<RecipeText> text_of(const std::string& name, const Origin& asked) {
  const auto text = [](const BuiltInRecipe& recipe) {
    return RecipeText{std::string(recipe.name), std::string(recipe.text)};
  };
  for (const BuiltInRecipe& recipe : built_in_recipes())
    if (same_word(recipe.name, name)) return text(recipe);
  for (const BuiltInRecipe& recipe : built_in_recipes())
    for (const std::string& alias : heading_of(recipe).aliases)
      if (same_word(alias, name)) return text(recipe);
  if (names_file(name)) {
    BOOST_OUTCOME_TRY(std::string from_file, file_text(name));
    return RecipeText{name, std::move(from_file)};
  }
  return error_at(asked, fmt::format("unknown recipe '{}'", name), recipe_hint(name));
}

// The field table does not check the keys of dictionaries.
Status check_fallback_keys(const ConfigNode& root, const Types& types) {
  const ConfigNode* fallback = root.find("fallback");
  if (!fallback) return ok();
  for (const ConfigNode::Entry& entry : fallback->entries)
    if (!types.find(entry.key))
      return error_at(root.text, entry.position, fmt::format("unknown quantization type '{}'", entry.key),
                      "`ggufmill types` lists them");
  return ok();
}

}  // namespace

std::string recipe_hint(const std::string& name) {
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    const Heading heading = heading_of(recipe);
    if (heading.partial) continue;
    names.emplace_back(recipe.name);
    names.insert(names.end(), heading.aliases.begin(), heading.aliases.end());
  }
  const std::string meant = did_you_mean(name, names);
  return meant.empty() ? "`ggufmill recipe list` lists them; give a file by its path: ./mine.yaml"
                       : fmt::format("did you mean '{}'? `ggufmill recipe list` lists them", meant);
}

Result<Recipe> RecipeShelf::find(const std::string& name_or_path, const Origin& asked,
                                 std::vector<std::string>& chain) const {
  BOOST_OUTCOME_TRY(const RecipeText text, text_of(name_or_path, asked));
  if (std::find(chain.begin(), chain.end(), text.name) != chain.end())
    return error_at(asked, fmt::format("recipe '{}' extends itself through '{}'", text.name, chain.back()));
  if (chain.size() == kLongestChain)
    return error_at(
        asked, fmt::format("the chain of extended recipes of '{}' is longer than {}", chain.front(), kLongestChain),
        "merge the rules of several of them into one");
  chain.push_back(text.name);

  Diagnostics errors;
  const auto document = read_document(text.text, text.name, errors);
  if (document) lint(document->root, recipe_fields(), errors, types_);
  if (!errors.empty()) return errors.together();
  const ConfigNode& root = document->root;
  BOOST_OUTCOME_TRY(check_fallback_keys(root, types_));
  Recipe recipe;
  if (const ConfigNode* parent = root.find("extends")) {
    BOOST_OUTCOME_TRY(recipe, find(parent->scalar, origin_of(*parent), chain));
  }
  recipe.name = names_file(text.name) ? std::filesystem::path(text.name).stem().string() : text.name;
  if (names_file(text.name)) recipe.files.push_back(text.name);
  BOOST_OUTCOME_TRY(read_recipe(root, types_, recipe));
  return recipe;
}

}  // namespace ggufmill
