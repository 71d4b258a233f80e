#include "stages/quantize/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "pipeline/core/text.h"
#include "pipeline/core/wings.h"
#include "pipeline/io/io.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/quantize/recipe_list.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxRecipeBytes = 1 << 20;
constexpr std::string_view kType = "type";  // the result of a rule and of a recipe
constexpr std::string_view kEncoder = "encoder";

// Renders the conditions of a rule as written in the recipe: "class ffn_down, depth spread".
std::string describe_conditions(const ConfigNode& rule) {
  std::string text;
  for (const ConfigNode::Entry& entry : rule.entries) {
    if (entry.key == kType || entry.key == kEncoder) continue;
    std::string value = entry.value.scalar;
    for (const ConfigNode& item : entry.value.items) value += (value.empty() ? "" : "|") + item.scalar;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", entry.key, value);
  }
  return text.size() > 72 ? text.substr(0, 69) + "..." : text;
}

// Rules of a list: `typed` ones have a result.
Form<std::vector<Rule>> rules_form(const Types& types, bool typed) {
  Fields<Rule> fields = fields_within(&Rule::condition, condition_fields(types));
  if (typed)
    fields = std::move(fields) +
             Fields<Rule>{
                 field(kType, &Rule::type, tensor_type(types), "The type of such a tensor.").required().example("Q5_K"),
                 field(kEncoder, &Rule::encoder, encoder_form(types),
                       "How such a tensor is encoded, regardless of the output's `encoder`.")
                     .example("search"),
             };
  const auto described = [](Rule rule, const ConfigNode& node) -> Result<Rule> {
    if (rule.encoder) {
      BOOST_OUTCOME_TRY(check_encoder(*rule.encoder, *rule.type, origin_of(*node.find(kEncoder))));
    }
    rule.text = describe_conditions(node);
    return rule;
  };
  return list_of(converted<Rule>(map_of<Rule>(std::move(fields)), described)
                     .doc("Conditions, all of which must be met, and the result."));
}

Form<ModelGroups> groups_form() {
  const auto members = list_of(map_of<Condition>(model_condition_fields()).doc("A condition."))
                           .doc("Conditions on the model, one of which must be met.");
  return converted<ModelGroups>(dictionary_of(members), [](NamedValues<std::vector<Condition>> groups) {
    return ModelGroups(std::make_move_iterator(groups.begin()), std::make_move_iterator(groups.end()));
  });
}

using TypeMap = std::map<const TypeInfo*, const TypeInfo*>;

// Types and their replacements.
Form<TypeMap> fallback_form(const Types& types) {
  const auto convert = [types](const NamedValues<const TypeInfo*>& names, const ConfigNode& node) -> Result<TypeMap> {
    TypeMap fallback;
    for (std::size_t i = 0; i < names.size(); ++i) {
      BOOST_OUTCOME_TRY(const TypeInfo* type, type_of_key(types, node, i));
      fallback[type] = names[i].second;
    }
    return fallback;
  };
  return converted<TypeMap>(dictionary_of(tensor_type(types).doc("A tensor type.")), convert);
}

Form<NamedValues<std::uint32_t>> file_types_form() { return dictionary_of(integer<std::uint32_t>().doc("A number.")); }

// A recipe file: its own values, without those that it inherits.
struct RecipeFile {
  Recipe recipe{};
  std::optional<std::string> parent{};
  Origin origin{}, parent_origin{};
};

Form<RecipeFile> recipe_form(const Types& types) {
  const auto type_list = list_of(tensor_type(types).doc("A tensor type."));
  Fields<Recipe> first{
      field("description", &Recipe::description, "A one-line summary of its purpose."),
      field("aliases", &Recipe::aliases, list_of(text().doc("A name.")), "Other names of the recipe."),
  };
  Fields<Recipe> rest{
      field("partial", &Recipe::partial,
            "Whether the recipe is only a base to extend and cannot be used for an output."),
      field("file_type", &Recipe::file_type, "The number to write as general.file_type."),
      field(std::string(kType), &Recipe::type, tensor_type(types), "The type where no rule matches."),
      field("keep", &Recipe::keep, rules_form(types, false),
            "Tensors that always keep their type, regardless of all rules."),
      field("rules", &Recipe::rules, rules_form(types, true), "The first match decides the type."),
      field("adjust", &Recipe::adjust, rules_form(types, true),
            "The first match, with `from` as the type chosen so far, replaces that type."),
      field("fallback", &Recipe::fallback, fallback_form(types),
            "Replacement types for rows that are not a multiple of the block size."),
      field("last_fallback", &Recipe::last_fallback, tensor_type(types),
            "Replacement where the fallback does not fit either."),
      field("encoders", &Recipe::encoders, encoders_form(types),
            "Encoders of the tensors of these types, regardless of the output's `encoder`; a rule's `encoder` takes "
            "precedence.")
          .example("{Q4_K: search}"),
      field(std::string(kEncoder), &Recipe::encoder, encoder_form(types),
            "Default of the output's `encoder`, for the types that have it.")
          .example("search"),
      field("needs_importance", &Recipe::needs_importance, type_list,
            "Types that are refused without importance data."),
      field("importance_exempt", &Recipe::importance_exempt, list_of(class_form()),
            "Classes that are never refused for missing importance data."),
      field("plain_rows", &Recipe::plain_rows, list_of(class_form()), "Classes whose rows are never interleaved."),
      field("interleaved_file_types", &Recipe::interleaved_file_types, file_types_form(),
            "Recipes, and the general.file_type that replaces theirs when the rows of a file are interleaved.")
          .example("{Q4_K_M: 214}"),
      field("models", &Recipe::models, groups_form(), "Named groups of models, for the condition `model`."),
      field("keep_dimensions", &Recipe::keep_dimensions,
            list_of(text().doc("A group of `models`.").example("diffusion")),
            "Groups of models whose tensors keep trailing dimensions of 1, which their readers need."),
      field("module", &Recipe::module,
            "Kernel module whose types the recipe names. Without it, the recipe is not available.")
          .example("mine"),
      field("order", &Recipe::by_layer, order_form(), "Default of the output's `order`."),
      field("keys", &Recipe::keys_in_place, word<bool>({{"moved", false}, {"in_place", true}}),
            "Where general.file_type and other changed keys are that the source has: moved to the end, as "
            "llama-quantize does, or in their place."),
      field(
          "positions", &Recipe::counts_all, word<bool>({{"of_decided", false}, {"of_all", true}}),
          "The tensors that the conditions on positions count: those that the recipe decides, as llama-quantize does, "
          "or also those that the output's `tensors` decide."),
  };
  return map_of<RecipeFile>(
             fields_within(&RecipeFile::recipe, first) +
             Fields<RecipeFile>{field("extends", &RecipeFile::parent,
                                      "Name or path of a recipe to extend; the settings here take precedence.")
                                    .at(&RecipeFile::parent_origin)} +
             fields_within(&RecipeFile::recipe, rest))
      .at(&RecipeFile::origin)
      .doc("Chooses the type of each tensor.");
}

// Adds to `rules` the name of the recipe they come from.
std::vector<Rule> from(const std::string& recipe, std::vector<Rule> rules) {
  for (Rule& rule : rules) rule.text = recipe + ": " + rule.text;
  return rules;
}

// Completes the values of a file with the inherited ones.
Recipe extended(Recipe inherited, Recipe own) {
  Recipe all = std::move(inherited);
  all.name = std::move(own.name);
  all.aliases = std::move(own.aliases);
  all.partial = own.partial;
  all.is_list = own.is_list;
  put_instead(all.description, std::move(own.description));
  put_instead(all.type, own.type);
  put_instead(all.file_type, own.file_type);
  put_instead(all.last_fallback, own.last_fallback);
  put_instead(all.module, std::move(own.module));
  put_instead(all.encoder, own.encoder);
  put_instead(all.by_layer, own.by_layer);
  put_instead(all.keys_in_place, own.keys_in_place);
  put_instead(all.counts_all, own.counts_all);
  put_by_key(all.fallback, std::move(own.fallback));
  put_by_key(all.encoders, std::move(own.encoders));
  put_by_key(all.models, std::move(own.models));
  put_last(all.needs_importance, std::move(own.needs_importance));
  put_last(all.importance_exempt, std::move(own.importance_exempt));
  put_last(all.plain_rows, std::move(own.plain_rows));
  put_last(all.keep_dimensions, std::move(own.keep_dimensions));
  put_last(all.files, std::move(own.files));
  put_first(all.keep, from(all.name, std::move(own.keep)));
  put_first(all.rules, from(all.name, std::move(own.rules)));
  put_first(all.adjust, from(all.name, std::move(own.adjust)));
  return all;
}

Status check_groups(const Recipe& recipe, const Origin& origin) {
  std::vector<std::string> used = recipe.keep_dimensions;
  for (const auto* rules : {&recipe.keep, &recipe.rules, &recipe.adjust})
    for (const Rule& rule : *rules) put_last(used, rule.condition.models);
  for (const std::string& name : used)
    if (!recipe.models.count(name))
      return error_at(origin, fmt::format("recipe '{}' uses model group '{}', which is not defined", recipe.name, name),
                      "define it under `models:`, or extend a recipe that defines it");
  return ok();
}

Result<std::string> file_text(const std::string& path) {
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  if (file->bytes() > kMaxRecipeBytes) {
    Error error{ExitCode::kUsage, path, "recipe is larger than 1 MiB", "",
                "check that this is the right file; no recipe needs to be that large"};
    error.unread = path;
    return error;
  }
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

FieldSpec recipe_fields() {
  FieldSpec spec = recipe_form({}).spec;
  spec.name = "recipe";
  return spec;
}

Form<bool> order_form() { return word<bool>({{"layers", true}, {"source", false}}); }

Form<std::vector<Rule>> additional_rules_form(const Types& types) { return rules_form(types, true); }

void add_rules(std::vector<Rule> rules, const std::string& where, Recipe& recipe) {
  for (Rule& rule : rules) rule.named = true;
  put_first(recipe.rules, from(where, std::move(rules)));
}

std::optional<std::uint32_t> RecipeCatalog::file_type_of(const std::string& name) const {
  if (names_file(name)) return {};
  const auto recipe = find(name);
  return recipe ? recipe.value().file_type : std::nullopt;
}

Result<Recipe> RecipeCatalog::find(const std::string& name_or_path, const Origin& asked) const {
  ExtendedFiles files("recipe");
  return find(name_or_path, asked, files);
}

Result<Recipe> RecipeCatalog::find_complete(const std::string& name_or_path, const Origin& asked) const {
  BOOST_OUTCOME_TRY(Recipe recipe, find(name_or_path, asked));
  if (recipe.partial)
    return error_at(asked, fmt::format("recipe '{}' is only a base for other recipes", recipe.name),
                    "`ggufmill recipe list` lists the complete recipes");
  return recipe;
}

Form<Recipe> recipe_name(const RecipeCatalog& catalog) {
  return converted<Recipe>(text(), [catalog](const std::string& name, const ConfigNode& node) {
    return catalog.find_complete(name, origin_of(node));
  });
}

// Reads what does not depend on types. Errors in the rest are ignored.
static Recipe read_heading(std::string_view name, std::string_view text) {
  static const Fields<Recipe> fields{
      field("description", &Recipe::description, ""),
      field("aliases", &Recipe::aliases, ""),
      field("partial", &Recipe::partial, ""),
      field("file_type", &Recipe::file_type, ""),
      field("module", &Recipe::module, ""),
      field("interleaved_file_types", &Recipe::interleaved_file_types, file_types_form(), "")};
  Diagnostics ignored;
  Recipe heading;
  heading.name = name;
  if (const auto document = read_document(text, std::string(name), ignored))
    (void)read_fields(fields.list, document->root, &heading);
  return heading;
}

const Recipe& heading_of(const BuiltInRecipe& recipe) {
  static std::mutex mutex;
  static std::map<std::string, Recipe, std::less<>> headings;  // reading one takes as long as starting the program
  const std::lock_guard lock(mutex);
  const auto found = headings.find(recipe.name);
  return found != headings.end() ? found->second
                                 : headings.emplace(recipe.name, read_heading(recipe.name, recipe.text)).first->second;
}

const BuiltInRecipe* find_built_in_recipe(const std::string& name) {
  for (const BuiltInRecipe& recipe : built_in_recipes())
    if (same_word(recipe.name, name)) return &recipe;
  for (const BuiltInRecipe& recipe : built_in_recipes())
    for (const std::string& alias : heading_of(recipe).aliases)
      if (same_word(alias, name)) return &recipe;
  return nullptr;
}

std::vector<BuiltInRecipe> RecipeCatalog::offered() const {
  std::vector<BuiltInRecipe> recipes;
  for (const BuiltInRecipe& recipe : built_in_recipes())
    if (const std::string module = heading_of(recipe).module; module.empty() || types_.have_module(module))
      recipes.push_back(recipe);
  return recipes;
}

std::optional<std::uint32_t> RecipeCatalog::file_type_of(const TypeInfo& type) const {
  if (type.facts.file_type >= 0) return static_cast<std::uint32_t>(type.facts.file_type);
  if (!type.plain) return file_type_of(std::string(type.name));
  const auto plain = file_type_of(*type.plain);
  return plain ? std::optional(interleaved_file_type(*plain)) : plain;
}

// Returns the file types of plain rows and of interleaved ones, in pairs.
static std::vector<std::pair<std::uint32_t, std::uint32_t>> file_types_of_rows() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const BuiltInRecipe& built_in : built_in_recipes())
    for (const auto& [name, interleaved] : heading_of(built_in).interleaved_file_types)
      if (const BuiltInRecipe* plain = find_built_in_recipe(name))
        if (const auto number = heading_of(*plain).file_type) pairs.emplace_back(*number, interleaved);
  return pairs;
}

std::uint32_t RecipeCatalog::interleaved_file_type(std::uint32_t number) {
  for (const auto& [plain, interleaved] : file_types_of_rows())
    if (plain == number) return interleaved;
  return number;
}

std::uint32_t RecipeCatalog::plain_file_type(std::uint32_t number) {
  for (const auto& [plain, interleaved] : file_types_of_rows())
    if (interleaved == number) return plain;
  return number;
}

std::string RecipeCatalog::hint(const std::string& name) const {
  if (std::string help = omitted_wing_help(name); !help.empty()) return help;
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : offered()) {
    const Recipe& heading = heading_of(recipe);
    if (heading.partial) continue;
    names.emplace_back(recipe.name);
    names.insert(names.end(), heading.aliases.begin(), heading.aliases.end());
  }
  const std::string meant = did_you_mean(name, names);
  return meant.empty() ? "`ggufmill recipe list` lists them; give the path of a file with the ending .yaml or .recipe: "
                         "./mine.yaml"
                       : fmt::format("did you mean '{}'? `ggufmill recipe list` lists them", meant);
}

Result<RecipeCatalog::Text> RecipeCatalog::text_of(const std::string& name, const Origin& asked) const {
  if (const BuiltInRecipe* built_in = find_built_in_recipe(name))
    return Text{std::string(built_in->name), std::string(built_in->text)};
  if (names_file(name)) {
    auto from_file = file_text(name);
    if (from_file) return Text{name, std::move(from_file).value()};
    return named_at(asked, std::move(from_file).error(),
                    "check the path; `ggufmill recipe list` lists the built-in recipes");
  }
  return error_at(asked, fmt::format("unknown recipe '{}'", name), hint(name));
}

Result<Recipe> RecipeCatalog::find(const std::string& name_or_path, const Origin& asked, ExtendedFiles& files) const {
  const BuiltInRecipe* const built_in = find_built_in_recipe(name_or_path);
  const std::string name(built_in ? built_in->name : name_or_path);
  BOOST_OUTCOME_TRY(const bool is_new, files.enter(name, asked));
  if (!is_new) return Recipe{};  // of a list, whose module has several bases
  BOOST_OUTCOME_TRY(const Text text, text_of(name, asked));
  BOOST_OUTCOME_TRY(files.count(text.text.size(), asked));

  if (names_recipe_list(text.name)) return find_list(text, files);
  auto parsed = parse_document(text.text, text.name, recipe_form(types_), types_);
  // Without its module, a recipe whose types are the module's cannot be parsed.
  if (const std::string module = parsed ? parsed.value().recipe.module : read_heading(text.name, text.text).module;
      !module.empty() && !types_.have_module(module))
    return error_at(asked,
                    fmt::format("recipe '{}' needs the kernel module '{}', which is not loaded", text.name, module),
                    module_help(module));
  BOOST_OUTCOME_TRY(RecipeFile file, std::move(parsed));
  Recipe inherited;
  if (file.parent) {
    BOOST_OUTCOME_TRY(inherited, find(*file.parent, file.parent_origin, files));
  }
  const bool is_file = names_file(text.name);
  file.recipe.name = is_file ? fs::path(text.name).stem().string() : text.name;
  if (is_file) file.recipe.files.push_back(text.name);
  Recipe recipe = extended(std::move(inherited), std::move(file.recipe));
  BOOST_OUTCOME_TRY(check_groups(recipe, file.origin));
  files.leave();
  return recipe;
}

// A list is based on what the recipes of its types have in common: the partial recipe of their module that extends
// none.
Result<Recipe> RecipeCatalog::find_list(const Text& text, ExtendedFiles& files) const {
  BOOST_OUTCOME_TRY(std::vector<Rule> rules, parse_recipe_list(text.text, text.name, types_));
  std::string module;
  for (const Rule& rule : rules)
    if (module.empty()) module = types_.module_of(*rule.type);
  Recipe inherited;
  for (const BuiltInRecipe& base : offered())
    if (const Recipe& heading = heading_of(base);
        heading.partial && heading.module == module && base.text.find("\nextends:") == std::string_view::npos) {
      BOOST_OUTCOME_TRY(inherited, find(std::string(base.name), {}, files));
    }
  Recipe own;
  own.name = fs::path(text.name).stem().string();
  own.is_list = true;
  own.files.push_back(text.name);
  own.rules = std::move(rules);
  files.leave();
  return extended(std::move(inherited), std::move(own));
}

// Returns the recipe that all of llama.cpp's extend.
static Result<Recipe> base_recipe(const RecipeCatalog& catalog) { return catalog.find("base"); }

// Returns what all recipes have in common, without rules for types.
static Result<Recipe> common_recipe(const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(Recipe recipe, base_recipe(catalog));
  recipe.rules.clear();
  recipe.adjust.clear();
  recipe.needs_importance.clear();
  recipe.partial = false;
  return recipe;
}

Result<Recipe> recipe_of_type(const TypeInfo& type, const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(Recipe recipe, common_recipe(catalog));
  recipe.is_type = true;
  std::erase_if(recipe.keep, [](const Rule& rule) { return !rule.condition.rank_below; });
  recipe.type = &type;
  recipe.name = type.name;
  recipe.file_type = catalog.file_type_of(type);
  return recipe;
}

Result<Recipe> recipe_of_target(const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(Recipe recipe, common_recipe(catalog));
  recipe.type = nullptr;
  recipe.name = "target";
  recipe.file_type.reset();
  return recipe;
}

Result<std::vector<const TypeInfo*>> types_wanting_importance(const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(const Recipe recipe, base_recipe(catalog));
  return recipe.needs_importance;
}

}  // namespace ggufmill
