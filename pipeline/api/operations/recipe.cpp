// `recipes`, `recipe`, `recipe_from`, `recipe_check`, `recipe_diff`, `objectives`, `exclusions`: what is built in, and
// what recipes do to a model.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/yaml_text.h"
#include "pipeline/core/text.h"
#include "stages/quantize/exclusion.h"
#include "stages/quantize/objective.h"
#include "stages/quantize/recipe_from.h"
#include "stages/quantize/rule_uses.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr SharedVerb kRecipeVerb{
    .name = "recipe",
    .summary = "List, print, or derive recipes",
    .description =
        "List the built-in recipes, or print one: a YAML file to copy, change, and name in `quantize:` by its path. "
        "Your own recipe can set `extends: NAME` and add rules. `from` prints a recipe that gives other models of the "
        "same family the types of a model file; `check` prints how many tensors of a model each rule decides; `diff` "
        "prints the tensors to which two recipes give different types; `objectives` and `exclusions` list what a "
        "target "
        "can minimize and which types it can exclude, or print one of them.",
    .examples =
        "  ggufmill recipe list\n"
        "  ggufmill recipe show Q4_K_M > mine.yaml\n"
        "  ggufmill recipe from model-mine.gguf > mine.yaml\n"
        "  ggufmill recipe diff Q4_K_M mine.yaml --model model-BF16.gguf",
    .usage =
        "(list | show NAME | from FILE | check NAME --model FILE | diff A B --model FILE | objectives [NAME] | "
        "exclusions [NAME])"};

struct NoOptions {};

json::array texts_json(const auto& texts) {
  json::array list;
  for (const auto& text : texts) list.emplace_back(text);
  return list;
}

// ---- recipes ----

struct ListedRecipes {
  std::vector<Recipe> recipes;
};

Result<Answer<ListedRecipes>> run_recipes(const Context& context, const NoOptions&, const Call&) {
  const RecipeCatalog catalog = context.recipes();
  Answer<ListedRecipes> answer{};
  for (const BuiltInRecipe& built_in : catalog.offered()) {
    BOOST_OUTCOME_TRY(Recipe recipe, catalog.find(std::string(built_in.name)));
    answer.value.recipes.push_back(std::move(recipe));
  }
  return answer;
}

void print_recipes(const ListedRecipes& list, TextOutput& to) {
  to.table = Table{{whole_column("recipe"),
                    whole_column("alias"),
                    {"file type", Align::kRight},
                    whole_column("main type"),
                    {"what for"}},
                   {}};
  for (const Recipe& it : list.recipes)
    to.table->rows.push_back({it.name, it.aliases.empty() ? "" : it.aliases.front(),
                              it.file_type ? std::to_string(*it.file_type) : "",
                              it.type ? std::string(it.type->name) : "", it.description});
}

ResultForm<ListedRecipes> recipes_result() {
  using Value = std::optional<json::value>;
  const auto aliases = [](const Recipe& it) -> Value { return texts_json(it.aliases); };
  const auto file_type = [](const Recipe& it) -> Value {
    return it.file_type ? json::value(*it.file_type) : json::value();
  };
  const auto type = [](const Recipe& it) -> Value { return it.type ? json::value(it.type->name) : json::value(); };
  const ResultForm<Recipe> recipe{{result("name", &Recipe::name, "its name"),
                                   result<Recipe>("aliases", aliases, "its other names"),
                                   result<Recipe>("file_type", file_type, "general.file_type of its outputs, or null"),
                                   result<Recipe>("type", type, "type of most tensors, or null"),
                                   result("description", &Recipe::description, "what it is for")}};
  return {.members = {result("recipes", &ListedRecipes::recipes, recipe, "the recipes")},
          .is_alone = true,
          .has_json_of_table = true};
}

struct RecipeRequest {
  std::string name{};
};

Result<Answer<YamlText>> run_recipe(const Context& context, const RecipeRequest& request, const Call&) {
  if (const BuiltInRecipe* built_in = find_built_in_recipe(request.name))
    return Answer<YamlText>{{std::string(built_in->text)}};
  BOOST_OUTCOME_TRY(const Recipe recipe, context.recipes().find(request.name));
  for (const BuiltInRecipe& built_in : built_in_recipes())
    if (built_in.name == recipe.name) return Answer<YamlText>{{std::string(built_in.text)}};
  return usage_error(fmt::format("'{}' is a file, not a built-in recipe", request.name),
                     "`ggufmill recipe list` lists the built-in recipes");
}

// ---- recipes and models ----

struct ModelRequest {
  std::string model{};
  OutType out_type = OutType::kAuto;
};

std::vector<Option<ModelRequest>> model_options() {
  return {option("model", &ModelRequest::model, path(), "any model of the architecture; only its headers are read")
              .required(),
          option("outtype", &ModelRequest::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp)};
}

Result<Answer<YamlText>> run_recipe_from(const Context& context, const ModelRequest& request, const Call&) {
  BOOST_OUTCOME_TRY(const Model model, context.inspect(request.model, request.out_type));
  BOOST_OUTCOME_TRY(std::string text, recipe_from(model, request.model, context.recipes()));
  return Answer<YamlText>{{std::move(text)}};
}

struct RecipeCheckRequest : ModelRequest {
  std::string name{};
};

struct RuleUses {
  std::vector<RuleUse> rules;
};

Result<Answer<RuleUses>> run_recipe_check(const Context& context, const RecipeCheckRequest& request, const Call&) {
  const RecipeCatalog catalog = context.recipes();
  BOOST_OUTCOME_TRY(const Recipe recipe, catalog.find(request.name));
  BOOST_OUTCOME_TRY(const Model model, context.inspect(request.model, request.out_type));
  BOOST_OUTCOME_TRY(std::vector<RuleUse> uses, rule_uses(recipe, model, catalog));
  return Answer<RuleUses>{{std::move(uses)}};
}

void print_rule_uses(const RuleUses& uses, TextOutput& to) {
  to.table = Table{{{"tensors", Align::kRight}, {"rule"}}, {}};
  std::size_t idle = 0;
  for (const RuleUse& use : uses.rules) {
    to.table->rows.push_back({use.tensors == 0 ? "none" : fmt::format("{}", use.tensors), use.rule});
    idle += use.tensors == 0;
  }
  to.out = fmt::format("{} of {} decide{} no tensor of this model\n", idle, counted(uses.rules.size(), "rule"),
                       idle == 1 ? "s" : "");
}

struct RecipeDiffRequest : ModelRequest {
  std::string a{}, b{};
};

// A tensor to which two recipes give different types.
struct TypeDifference {
  std::string tensor, a, b, why;
};

struct RecipeDifference {
  std::string a, b;
  std::vector<TypeDifference> tensors;
  std::uint64_t count = 0;  // number of all tensors
  std::uint64_t bytes_a = 0, bytes_b = 0;
};

Result<Model> typed_by(const std::string& name, const Model& model, const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(const Recipe recipe, catalog.find(name));
  return with_recipe(recipe, model, catalog);
}

Result<Answer<RecipeDifference>> run_recipe_diff(const Context& context, const RecipeDiffRequest& request,
                                                 const Call&) {
  const RecipeCatalog catalog = context.recipes();
  BOOST_OUTCOME_TRY(const Model model, context.inspect(request.model, request.out_type));
  BOOST_OUTCOME_TRY(const Model with_a, typed_by(request.a, model, catalog));
  BOOST_OUTCOME_TRY(const Model with_b, typed_by(request.b, model, catalog));
  std::map<std::string_view, const Tensor*> of_b;
  for (const Tensor& tensor : with_b.tensors) of_b.emplace(tensor.name, &tensor);
  Answer<RecipeDifference> answer{{request.a, request.b, {}, with_a.tensors.size()}};
  RecipeDifference& difference = answer.value;
  for (const Tensor& tensor : with_a.tensors) {
    const Tensor& other = *of_b.at(tensor.name);
    BOOST_OUTCOME_TRY(const std::uint64_t bytes_a, bytes_of(*tensor.type, tensor.shape()));
    BOOST_OUTCOME_TRY(const std::uint64_t bytes_b, bytes_of(*other.type, tensor.shape()));
    difference.bytes_a += bytes_a;
    difference.bytes_b += bytes_b;
    if (tensor.type != other.type)
      difference.tensors.push_back(
          {tensor.name, std::string(tensor.type->name), std::string(other.type->name), other.reason});
  }
  return answer;
}

void print_difference(const RecipeDifference& it, TextOutput& to) {
  if (!it.tensors.empty()) to.table = Table{{name_column("tensor"), name_column(it.a), name_column(it.b), {"why"}}, {}};
  for (const TypeDifference& tensor : it.tensors)
    to.table->rows.push_back({tensor.tensor, tensor.a, tensor.b, tensor.why});
  to.out = fmt::format("{} of {} differ{}; {} and {}\n", it.tensors.size(), counted(it.count, "tensor"),
                       it.tensors.size() == 1 ? "s" : "", human_bytes(it.bytes_a), human_bytes(it.bytes_b));
}

// ---- objectives and exclusions ----

struct OptionalName {
  std::string name{};
};

struct Objectives {
  std::optional<std::vector<Objective>> objectives{};
  std::optional<std::string> yaml{};
};

// Returns the text of the built-in file with that name.
template <class BuiltIns>
Result<std::string> text_in(const BuiltIns& built_ins, const std::string& name, const char* kind) {
  for (const auto& built_in : built_ins)
    if (built_in.name == name) return std::string(built_in.text);
  return usage_error(fmt::format("'{}' is not one of the built-in {}", name, kind),
                     fmt::format("`ggufmill recipe {}` lists them", kind));
}

Result<Answer<Objectives>> run_objectives(const Context&, const OptionalName& request, const Call&) {
  Answer<Objectives> answer{};
  if (!request.name.empty()) {
    BOOST_OUTCOME_TRY(answer.value.yaml, text_in(built_in_objectives(), request.name, "objectives"));
    return answer;
  }
  answer.value.objectives.emplace();
  for (const BuiltInObjective& built_in : built_in_objectives()) {
    BOOST_OUTCOME_TRY(Objective objective, find_objective(std::string(built_in.name), {}));
    answer.value.objectives->push_back(std::move(objective));
  }
  return answer;
}

void print_objectives(const Objectives& it, TextOutput& to) {
  to.out = it.yaml.value_or("");
  if (!it.objectives) return;
  to.table = Table{{{"objective"}, {"minimizes"}}, {}};
  for (const Objective& each : *it.objectives) to.table->rows.push_back({each.name, each.formula});
}

struct Exclusions {
  std::optional<std::vector<Exclusion>> exclusions{};
  std::optional<std::string> yaml{};
};

Result<Answer<Exclusions>> run_exclusions(const Context&, const OptionalName& request, const Call&) {
  Answer<Exclusions> answer{};
  if (!request.name.empty()) {
    BOOST_OUTCOME_TRY(answer.value.yaml, text_in(built_in_exclusions(), request.name, "exclusions"));
    return answer;
  }
  answer.value.exclusions.emplace();
  for (const BuiltInExclusion& built_in : built_in_exclusions()) {
    BOOST_OUTCOME_TRY(Exclusion exclusion, find_exclusion(std::string(built_in.name), {}, {}));
    answer.value.exclusions->push_back(std::move(exclusion));
  }
  return answer;
}

void print_exclusions(const Exclusions& it, TextOutput& to) {
  to.out = it.yaml.value_or("");
  if (!it.exclusions) return;
  to.table = Table{{{"exclusion"}, {"types that are left out"}}, {}};
  for (const Exclusion& each : *it.exclusions) {
    std::vector<std::string> types;
    for (const TypeInfo* type : each.types) types.emplace_back(type->name);
    for (const std::string& module : each.modules) types.push_back(fmt::format("all of the kernel module {}", module));
    to.table->rows.push_back({each.name, fmt::format("{}", fmt::join(types, ", "))});
  }
}

ResultForm<Exclusions> exclusions_result() {
  const auto types = [](const Exclusion& it) -> std::optional<json::value> {
    json::array names;
    for (const TypeInfo* type : it.types) names.emplace_back(type->name);
    return names;
  };
  const auto modules = [](const Exclusion& it) -> std::optional<json::value> { return texts_json(it.modules); };
  const ResultForm<Exclusion> exclusion{
      {result("name", &Exclusion::name, "its name"), result<Exclusion>("types", types, "types that it excludes"),
       result<Exclusion>("modules", modules, "modules all of whose types it excludes")}};
  return {.members = {result("exclusions", &Exclusions::exclusions, exclusion, "the exclusions"),
                      result("yaml", &Exclusions::yaml, "with @name, the text of its file")},
          .is_alone = true,
          .has_json_of_table = true};
}

ResultForm<Objectives> objectives_result() {
  const ResultForm<Objective> objective{
      {result("name", &Objective::name, "its name"), result("formula", &Objective::formula, "what is made small")}};
  return {.members = {result("objectives", &Objectives::objectives, objective, "the objectives"),
                      result("yaml", &Objectives::yaml, "with @name, the text of its file")},
          .is_alone = true,
          .has_json_of_table = true};
}

}  // namespace

OperationSpec recipes_operation() {
  return operation(OperationOf<NoOptions, ListedRecipes>{.name = "recipes",
                                                         .group = OperationGroup::kChoose,
                                                         .summary = "List the built-in recipes",
                                                         .description = "List the built-in recipes.",
                                                         .shared = &kRecipeVerb,
                                                         .choice = "list",
                                                         .result = recipes_result(),
                                                         .run = run_recipes,
                                                         .print = print_recipes});
}

OperationSpec recipe_operation() {
  return operation(OperationOf<RecipeRequest, YamlText>{
      .name = "recipe",
      .group = OperationGroup::kChoose,
      .summary = "Print a built-in recipe",
      .description =
          "Print a built-in recipe: a YAML file to copy, change, and name in `quantize:` by its path. Your own "
          "recipe can set `extends: NAME` and add rules.",
      .prints_data = true,
      .shared = &kRecipeVerb,
      .choice = "show",
      .options = {option("name", &RecipeRequest::name, text(), "name or alias of the recipe").word("NAME")},
      .result = yaml_result("the text of the recipe"),
      .context = ContextUse::kNone,
      .run = run_recipe,
      .print = print_yaml});
}

OperationSpec recipe_from_operation() {
  using Request = ModelRequest;
  return operation(OperationOf<Request, YamlText>{
      .name = "recipe_from",
      .group = OperationGroup::kChoose,
      .summary = "Derive a recipe from a model",
      .description = "Derive a recipe that gives other models of the same family the types of a model file.",
      .prints_data = true,
      .shared = &kRecipeVerb,
      .choice = "from",
      .options = {option("model", &Request::model, path(), "the model").word("FILE"),
                  option("outtype", &Request::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp)},
      .result = yaml_result("the text of the recipe"),
      .context = ContextUse::kCheckpoints,
      .run = run_recipe_from,
      .print = print_yaml});
}

OperationSpec recipe_check_operation() {
  using Request = RecipeCheckRequest;
  const ResultForm<RuleUse> rule{{result("rule", &RuleUse::rule, "the rule, as `plan` shows it"),
                                  result("tensors", &RuleUse::tensors, "number of tensors that it decides")}};
  return operation(OperationOf<Request, RuleUses>{
      .name = "recipe_check",
      .group = OperationGroup::kChoose,
      .summary = "Count the tensors of a model that each rule of a recipe decides",
      .description = "Count the tensors of a model that each rule of a recipe decides.",
      .shared = &kRecipeVerb,
      .choice = "check",
      .options =
          std::vector<Option<Request>>{
              option("name", &Request::name, text(), "name or path of the recipe").word("NAME")} +
          model_options(),
      .result = {.members = {result("rules", &RuleUses::rules, rule,
                                    "the rules, in the order in which they are tried")},
                 .is_alone = true,
                 .has_json_of_table = true},
      .context = ContextUse::kCheckpoints,
      .run = run_recipe_check,
      .print = print_rule_uses});
}

OperationSpec recipe_diff_operation() {
  using Request = RecipeDiffRequest;
  using Difference = RecipeDifference;
  const ResultForm<TypeDifference> tensor{
      {result("tensor", &TypeDifference::tensor, "its name"), result("a", &TypeDifference::a, "its type with @a"),
       result("b", &TypeDifference::b, "its type with @b"), result("why", &TypeDifference::why, "the rule of @b")}};
  return operation(OperationOf<Request, RecipeDifference>{
      .name = "recipe_diff",
      .group = OperationGroup::kChoose,
      .summary = "Compare two recipes for a model",
      .description = "List the tensors of a model to which two recipes give different types.",
      .shared = &kRecipeVerb,
      .choice = "diff",
      .options = std::vector<Option<Request>>{option("a", &Request::a, text(), "name or path of a recipe").word("A"),
                                              option("b", &Request::b, text(), "name or path of the other").word("B")} +
                 model_options(),
      .result = {.members = {result("tensors", &Difference::tensors, tensor, "the tensors whose types differ"),
                             result("count", &Difference::count, "number of all tensors"),
                             result("bytes_a", &Difference::bytes_a, "bytes of all tensors with @a"),
                             result("bytes_b", &Difference::bytes_b, "bytes of all tensors with @b")},
                 .has_json_of_table = true},
      .context = ContextUse::kCheckpoints,
      .run = run_recipe_diff,
      .print = print_difference});
}

OperationSpec objectives_operation() {
  return operation(OperationOf<OptionalName, Objectives>{
      .name = "objectives",
      .group = OperationGroup::kChoose,
      .summary = "List the built-in objectives, or print one",
      .description = "List what a target can minimize, or print one of the built-in files: a YAML file to copy and "
                     "change.",
      .shared = &kRecipeVerb,
      .choice = "objectives",
      .options = {option("name", &OptionalName::name, text(), "name of the objective to print").optional_word("NAME")},
      .result = objectives_result(),
      .context = ContextUse::kNone,
      .run = run_objectives,
      .print = print_objectives});
}

OperationSpec exclusions_operation() {
  return operation(OperationOf<OptionalName, Exclusions>{
      .name = "exclusions",
      .group = OperationGroup::kChoose,
      .summary = "List the built-in exclusions of types, or print one",
      .description =
          "List which types a target can exclude, or print one of the built-in files: a YAML file to copy and "
          "change.",
      .shared = &kRecipeVerb,
      .choice = "exclusions",
      .options = {option("name", &OptionalName::name, text(), "name of the exclusion to print").optional_word("NAME")},
      .result = exclusions_result(),
      .context = ContextUse::kNone,
      .run = run_exclusions,
      .print = print_exclusions});
}

}  // namespace ggufmill
