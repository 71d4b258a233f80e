#include "stages/quantize/quantize_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

constexpr std::string_view kTypeParent = "base";  // what a bare type has in common with the recipes

constexpr std::string_view kFallback = "fallback";

FieldSpec misfit_field(std::string doc) {
  FieldSpec field{"misfit", FieldKind::kEnum, std::move(doc)};
  field.choices = {"refuse", std::string(kFallback)};
  return field;
}

FieldSpec tensors_field() {
  FieldSpec rule{"", FieldKind::kMap, "A rule; the first that matches a tensor decides."};
  rule.fields = {{"match", FieldKind::kRegex, "Found anywhere in the tensor's name (Perl syntax)."},
                 {"type", FieldKind::kTypeName, "The type, or `keep` for the one it has."}};
  rule.fields.push_back({"optional", FieldKind::kBool, "Whether it is no error that no tensor matches."});
  rule.fields.back().default_text = "false";
  rule.fields.push_back(misfit_field("As `misfit` beside the rules, for this rule."));
  rule.fields[0].required = rule.fields[1].required = true;
  rule.fields[0].example = "'blk\\.\\d+\\.ffn_down'";
  rule.fields[1].choices = {"keep"};
  rule.fields[1].example = "Q5_K";
  FieldSpec field{"tensors", FieldKind::kList, "Rules for single tensors; one that matches nothing is an error."};
  field.item = {std::move(rule)};
  return field;
}

FieldSpec mapping() {
  FieldSpec map{"", FieldKind::kMap, "A recipe or a type, with rules of your own."};
  FieldSpec more{"rules", FieldKind::kList, "Recipe rules that come before the recipe's own."};
  const FieldSpec recipe = recipe_fields();
  for (const FieldSpec& field : recipe.fields)
    if (field.name == "rules") more.item = field.item;
  FieldSpec order{"order", FieldKind::kEnum,
                  "Tensors layer by layer, by name, as llama-quantize writes them; or as in the source."};
  order.choices = {"layers", "source"};
  order.default_text = "layers";
  map.fields = {{"recipe", FieldKind::kString, "A built-in recipe by name, or the path of a file."},
                {"type", FieldKind::kTypeName, "One type for all tensors of two dimensions and more."},
                tensors_field(),
                std::move(more),
                {"pure", FieldKind::kBool, "The recipe's type for all tensors: none of its rules."},
                {"requantize", FieldKind::kBool, "Whether quantized tensors may be quantized anew."},
                std::move(order),
                misfit_field("Whether a type named here is refused where rows are not whole blocks of it, or another "
                             "takes its place, as the recipe's `fallback` says. A recipe's own types always fall "
                             "back.")};
  map.fields[0].example = "Q4_K_M";
  map.fields[1].example = "Q4_K";
  map.fields[4].default_text = "false";
  map.fields[5].default_text = "true";
  map.fields[7].default_text = "refuse";
  return map;
}

Result<bool> flag(const ConfigNode& value, std::string_view name, bool otherwise) {
  const ConfigNode* node = value.find(name);
  return node ? to_bool(*node) : Result<bool>(otherwise);
}

bool falls_back(const ConfigNode& value, bool otherwise) {
  const ConfigNode* misfit = value.find("misfit");
  return misfit ? misfit->scalar == kFallback : otherwise;
}

Result<std::vector<TensorRule>> read_rules(const ConfigNode* list, bool fallback, const Types& types) {
  std::vector<TensorRule> rules;
  if (!list) return rules;
  for (const ConfigNode& node : list->items) {
    const ConfigNode& match = *node.find("match");
    BOOST_OUTCOME_TRY(Pattern pattern, Pattern::compile(match.scalar));
    const std::string& type = node.find("type")->scalar;
    BOOST_OUTCOME_TRY(const bool optional, flag(node, "optional", false));
    rules.push_back({std::move(pattern), type == "keep" ? nullptr : types.find(type),
                     fmt::format("tensors[{}]: {}", rules.size(), match.scalar), origin_of(match), optional,
                     falls_back(node, fallback), node.find("misfit") != nullptr, false});
  }
  return rules;
}

Result<QuantizeStageOptions> read_mapping(const ConfigNode& value, const RecipeShelf& shelf) {
  QuantizeStageOptions options;
  const ConfigNode* recipe = value.find("recipe");
  const ConfigNode* type = value.find("type");
  if (!recipe == !type)
    return error_at(value, recipe ? "both a recipe and a type are given" : "neither a recipe nor a type is given",
                    "write one of them: {recipe: Q4_K_M} or {type: Q4_K}");
  options.origin = origin_of(value);
  options.recipe_origin = origin_of(recipe ? *recipe : *type);
  BOOST_OUTCOME_TRY(options.recipe, recipe ? shelf.find(recipe->scalar, options.recipe_origin)
                                           : recipe_of_type(*shelf.types().find(type->scalar), shelf));
  if (const ConfigNode* rules = value.find("rules")) {
    BOOST_OUTCOME_TRY(add_rules(*rules, "rules", shelf.types(), options.recipe));
  }
  options.fallback = falls_back(value, false);
  options.misfit_is_given = value.find("misfit") != nullptr;
  BOOST_OUTCOME_TRY(options.rules, read_rules(value.find("tensors"), options.fallback, shelf.types()));
  BOOST_OUTCOME_TRY(options.pure, flag(value, "pure", false));
  BOOST_OUTCOME_TRY(options.requantize, flag(value, "requantize", true));
  const ConfigNode* order = value.find("order");
  options.order_by_layer = !order || order->scalar == "layers";
  return options;
}

}  // namespace

Result<Recipe> recipe_of_type(const TypeInfo& type, const RecipeShelf& shelf) {
  BOOST_OUTCOME_TRY(Recipe recipe, shelf.find(std::string(kTypeParent)));
  recipe.rules.clear();
  recipe.adjust.clear();
  recipe.is_type = true;
  recipe.needs_importance.clear();
  recipe.keep.erase(std::remove_if(recipe.keep.begin(), recipe.keep.end(),
                                   [](const Rule& rule) { return !rule.condition.rank_below; }),
                    recipe.keep.end());
  recipe.partial = false;
  recipe.type = &type;
  recipe.name = type.name;
  recipe.file_type = shelf.file_type_of(recipe.name);
  return recipe;
}

FieldSpec quantize_fields() {
  FieldSpec name{"", FieldKind::kString, "A built-in recipe by name, the path of a recipe, or a type."};
  name.example = "Q4_K_M";
  FieldSpec field{"quantize", FieldKind::kOneOf, "Decides the type of every tensor."};
  field.alternatives = {std::move(name), mapping()};
  field.example = "{recipe: Q3_K_M, tensors: [{match: 'ffn_down', type: Q5_K}]}";
  return field;
}

Result<QuantizeStageOptions> read_quantize(const ConfigNode& value, const RecipeShelf& shelf) {
  if (value.is_map()) return read_mapping(value, shelf);
  QuantizeStageOptions options;
  options.origin = options.recipe_origin = origin_of(value);
  auto recipe = shelf.find(value.scalar, options.origin);
  if (const TypeInfo* type = shelf.types().find(value.scalar); type && (!recipe || recipe.value().partial))
    recipe = recipe_of_type(*type, shelf);
  BOOST_OUTCOME_TRY(options.recipe, std::move(recipe));
  return options;
}

}  // namespace ggufmill
