// `ggufmill recipe`: lists, prints, derives, checks and compares recipes; lists objectives and exclusions.

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "stages/quantize/exclusion.h"
#include "stages/quantize/objective.h"
#include "stages/quantize/recipe.h"
#include "stages/quantize/recipe_from.h"
#include "stages/quantize/rule_uses.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec recipe_command() {
  CommandSpec spec;
  spec.usage =
      "ggufmill recipe (list | show NAME | from FILE | check NAME --model FILE | diff A B --model FILE | "
      "objectives [NAME] | exclusions [NAME])";
  spec.description =
      "List the built-in recipes, or print one: a YAML file to copy, change, and name in `quantize:` by its path. Your "
      "own recipe can set `extends: NAME` and add rules. `from` prints a recipe that gives other models of the same "
      "family the types of a model file; `check` prints how many tensors of a model each rule decides; `diff` prints "
      "the tensors to which two recipes give different types; `objectives` and `exclusions` list what a target can "
      "minimize and which types it can exclude, or print one of them.";
  spec.examples =
      "  ggufmill recipe list\n"
      "  ggufmill recipe show Q4_K_M > mine.yaml\n"
      "  ggufmill recipe from model-mine.gguf > mine.yaml\n"
      "  ggufmill recipe diff Q4_K_M mine.yaml --model model-BF16.gguf";
  spec.positional = "words";
  spec.words = {"list", "show", "from", "check", "diff", "objectives", "exclusions"};
  spec.many = true;
  spec.options.add_options()("model", po::value<std::string>(), "model for check and diff; only its headers are read")(
      "json",
      "with list, check, diff, objectives, and exclusions: print a JSON array with one object per row of the table");
  add_kernel_options(spec.options);
  return spec;
}

int list(bool as_json) {
  std::vector<Row> rows;
  const RecipeShelf shelf;
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    const auto recipe = shelf.find(std::string(built_in.name));
    if (!recipe) return fail(recipe.error());
    const Recipe& it = recipe.value();
    rows.push_back({it.name, it.aliases.empty() ? "" : it.aliases.front(),
                    it.file_type ? std::to_string(*it.file_type) : "", it.type ? std::string(it.type->name) : "",
                    it.description});
  }
  print_table({whole_column("recipe"),
               whole_column("alias"),
               {"file type", Align::kRight},
               whole_column("main type"),
               {"what for"}},
              rows, as_json);
  return 0;
}

int show(const std::string& name) {
  const auto recipe = RecipeShelf().find(name);
  if (!recipe) return fail(recipe.error());
  for (const BuiltInRecipe& built_in : built_in_recipes())
    if (built_in.name == recipe.value().name) {
      std::fwrite(built_in.text.data(), 1, built_in.text.size(), stdout);
      return 0;
    }
  return fail(usage_error(fmt::format("'{}' is a file, not a built-in recipe", name),
                          "`ggufmill recipe list` lists the built-in recipes"));
}

int from(const std::string& path, const po::variables_map& values) {
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const auto model = context.value().inspect(path);
  if (!model) return fail(model.error());
  const auto text = recipe_from(model.value(), path, context.value().recipes());
  if (!text) return fail(text.error());
  std::fputs(text.value().c_str(), stdout);
  return 0;
}

// Opens the model that --model names; `what` names the subcommand in the error message.
Result<Model> model_for(const std::string& what, const Context& context, const po::variables_map& values) {
  const auto path = text_of(values, "model");
  if (!path)
    return usage_error(fmt::format("recipe {} needs a model", what),
                       "give --model FILE: any model of the architecture");
  return context.inspect(*path);
}

int check(const std::string& name, const po::variables_map& values) {
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const RecipeShelf shelf = context.value().recipes();
  const auto recipe = shelf.find(name);
  if (!recipe) return fail(recipe.error());
  const auto model = model_for("check", context.value(), values);
  if (!model) return fail(model.error());
  const auto uses = rule_uses(recipe.value(), model.value(), shelf);
  if (!uses) return fail(uses.error());
  const bool as_json = values.count("json") > 0;
  std::vector<Row> rows;
  std::size_t idle = 0;
  for (const RuleUse& use : uses.value()) {
    rows.push_back({use.tensors == 0 ? "none" : fmt::format("{}", use.tensors), use.rule});
    idle += use.tensors == 0;
  }
  print_table({{"tensors", Align::kRight}, {"rule"}}, rows, as_json);
  if (!as_json) fmt::print("{} of {} rules decide no tensor of this model\n", idle, rows.size());
  return 0;
}

int diff(const std::string& a, const std::string& b, const po::variables_map& values) {
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const RecipeShelf shelf = context.value().recipes();
  const auto model = model_for("diff", context.value(), values);
  if (!model) return fail(model.error());
  std::vector<Model> made;
  for (const std::string& name : {a, b}) {
    const auto recipe = shelf.find(name);
    if (!recipe) return fail(recipe.error());
    auto with = with_recipe(recipe.value(), model.value(), shelf);
    if (!with) return fail(with.error());
    made.push_back(std::move(with).value());
  }
  std::map<std::string_view, const Tensor*> of_b;
  for (const Tensor& tensor : made[1].tensors) of_b.emplace(tensor.name, &tensor);
  const bool as_json = values.count("json") > 0;
  std::vector<Row> rows;
  std::uint64_t bytes[2] = {0, 0};
  for (const Tensor& tensor : made[0].tensors) {
    const Tensor& other = *of_b.at(tensor.name);
    for (const bool second : {false, true}) {
      const auto size = bytes_of(second ? *other.type : *tensor.type, tensor.shape().elements());
      if (!size) return fail(size.error());
      bytes[second] += size.value();
    }
    if (tensor.type != other.type)
      rows.push_back({tensor.name, std::string(tensor.type->name), std::string(other.type->name), other.reason});
  }
  if (as_json || !rows.empty())
    print_table({name_column("tensor"), name_column(a), name_column(b), {"why"}}, rows, as_json);
  if (!as_json)
    fmt::print("{} of {} tensors differ; {} and {}\n", rows.size(), made[0].tensors.size(), human_bytes(bytes[0]),
               human_bytes(bytes[1]));
  return 0;
}

int list_objectives(bool as_json) {
  std::vector<Row> rows;
  for (const BuiltInObjective& built_in : built_in_objectives()) {
    const auto objective = find_objective(std::string(built_in.name), {});
    if (!objective) return fail(objective.error());
    rows.push_back({objective.value().name, objective.value().formula});
  }
  print_table({{"objective"}, {"what is made small"}}, rows, as_json);
  return 0;
}

int list_exclusions(bool as_json) {
  std::vector<Row> rows;
  for (const BuiltInExclusion& built_in : built_in_exclusions()) {
    const auto exclusion = find_exclusion(std::string(built_in.name), {}, {});
    if (!exclusion) return fail(exclusion.error());
    std::string types;
    for (const TypeInfo* type : exclusion.value().types)
      types += fmt::format("{}{}", types.empty() ? "" : ", ", type->name);
    rows.push_back({exclusion.value().name, std::move(types)});
  }
  print_table({{"exclusion"}, {"types that are left out"}}, rows, as_json);
  return 0;
}

// Prints the built-in with that name; `word` is the subcommand that lists the built-ins.
template <class BuiltIns>
int show_built_in(const BuiltIns& built_ins, const std::string& name, const char* word) {
  for (const auto& built_in : built_ins)
    if (built_in.name == name) {
      std::fwrite(built_in.text.data(), 1, built_in.text.size(), stdout);
      return 0;
    }
  return fail(usage_error(fmt::format("'{}' is not one of the built-in {}", name, word),
                          fmt::format("`ggufmill recipe {}` lists them", word)));
}

int recipe_verb(const Parsed& parsed) {
  const auto words = parsed.values["words"].as<Arguments>();
  const bool as_json = parsed.values.count("json") > 0;
  if (words.size() == 1 && words[0] == "list") return list(as_json);
  if (words.size() == 2 && words[0] == "show") return show(words[1]);
  if (words.size() == 2 && words[0] == "from") return from(words[1], parsed.values);
  if (words.size() == 2 && words[0] == "check") return check(words[1], parsed.values);
  if (words.size() == 3 && words[0] == "diff") return diff(words[1], words[2], parsed.values);
  if (words.size() == 1 && words[0] == "objectives") return list_objectives(as_json);
  if (words.size() == 2 && words[0] == "objectives")
    return show_built_in(built_in_objectives(), words[1], "objectives");
  if (words.size() == 1 && words[0] == "exclusions") return list_exclusions(as_json);
  if (words.size() == 2 && words[0] == "exclusions")
    return show_built_in(built_in_exclusions(), words[1], "exclusions");
  return fail(
      usage_error(fmt::format("invalid arguments: '{}'", fmt::join(words, " ")), "usage: " + recipe_command().usage));
}

}  // namespace

const Verb kRecipeVerb{"recipe", VerbGroup::kChoose, "List, print, or derive recipes", recipe_command, recipe_verb};

}  // namespace ggufmill
