// `ggufmill recipe`: lists, prints, derives, checks and compares recipes; lists objectives and exclusions.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/catalog.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
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

int list(const po::variables_map& values) {
  const bool as_json = values.count("json") > 0;
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const auto recipes = describe_catalog(CatalogKind::kRecipes, context.value().recipes());
  if (!recipes) return fail(recipes.error());
  std::vector<Row> rows;
  for (const boost::json::value& recipe : recipes.value()) {
    const boost::json::array& aliases = recipe.at("aliases").as_array();
    const boost::json::value& file_type = recipe.at("file_type");
    rows.push_back({text_at(recipe, "name"), aliases.empty() ? "" : std::string(aliases.front().as_string()),
                    file_type.is_null() ? "" : std::to_string(file_type.to_number<std::uint64_t>()),
                    text_at(recipe, "type"), text_at(recipe, "description")});
  }
  print_table({whole_column("recipe"),
               whole_column("alias"),
               {"file type", Align::kRight},
               whole_column("main type"),
               {"what for"}},
              rows, as_json);
  return 0;
}

// Prints the text of a built-in file.
int show(CatalogKind kind, const std::string& name) {
  const auto text = catalog_text(kind, name);
  if (!text) return fail(text.error());
  std::fwrite(text.value().data(), 1, text.value().size(), stdout);
  return 0;
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
  const RecipeCatalog catalog = context.value().recipes();
  const auto recipe = catalog.find(name);
  if (!recipe) return fail(recipe.error());
  const auto model = model_for("check", context.value(), values);
  if (!model) return fail(model.error());
  const auto uses = rule_uses(recipe.value(), model.value(), catalog);
  if (!uses) return fail(uses.error());
  const bool as_json = values.count("json") > 0;
  std::vector<Row> rows;
  std::size_t idle = 0;
  for (const RuleUse& use : uses.value()) {
    rows.push_back({use.tensors == 0 ? "none" : fmt::format("{}", use.tensors), use.rule});
    idle += use.tensors == 0;
  }
  print_table({{"tensors", Align::kRight}, {"rule"}}, rows, as_json);
  if (!as_json)
    fmt::print("{} of {} decide{} no tensor of this model\n", idle, counted(rows.size(), "rule"), idle == 1 ? "s" : "");
  return 0;
}

int diff(const std::string& a, const std::string& b, const po::variables_map& values) {
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const RecipeCatalog catalog = context.value().recipes();
  const auto model = model_for("diff", context.value(), values);
  if (!model) return fail(model.error());
  const auto difference = compare_recipes(a, b, model.value(), catalog);
  if (!difference) return fail(difference.error());
  const RecipeDifference& it = difference.value();
  std::vector<Row> rows;
  for (const boost::json::value& tensor : it.tensors)
    rows.push_back({text_at(tensor, "tensor"), text_at(tensor, "a"), text_at(tensor, "b"), text_at(tensor, "why")});
  const bool as_json = values.count("json") > 0;
  if (as_json || !rows.empty())
    print_table({name_column("tensor"), name_column(a), name_column(b), {"why"}}, rows, as_json);
  if (!as_json)
    fmt::print("{} of {} differ{}; {} and {}\n", rows.size(), counted(it.count, "tensor"), rows.size() == 1 ? "s" : "",
               human_bytes(it.bytes_a), human_bytes(it.bytes_b));
  return 0;
}

int list_objectives(bool as_json) {
  const auto objectives = describe_catalog(CatalogKind::kObjectives);
  if (!objectives) return fail(objectives.error());
  std::vector<Row> rows;
  for (const boost::json::value& each : objectives.value())
    rows.push_back({text_at(each, "name"), text_at(each, "formula")});
  print_table({{"objective"}, {"minimizes"}}, rows, as_json);
  return 0;
}

int list_exclusions(bool as_json) {
  const auto exclusions = describe_catalog(CatalogKind::kExclusions);
  if (!exclusions) return fail(exclusions.error());
  std::vector<Row> rows;
  for (const boost::json::value& each : exclusions.value()) {
    std::string types;
    for (const boost::json::value& type : each.at("types").as_array())
      types.append(types.empty() ? "" : ", ").append(type.as_string());
    for (const boost::json::value& module : each.at("modules").as_array())
      types.append(fmt::format("{}all of the kernel module {}", types.empty() ? "" : ", ",
                               std::string_view(module.as_string())));
    rows.push_back({text_at(each, "name"), std::move(types)});
  }
  print_table({{"exclusion"}, {"types that are left out"}}, rows, as_json);
  return 0;
}

int recipe_verb(const Parsed& parsed) {
  const auto words = parsed.values["words"].as<Arguments>();
  const bool as_json = parsed.values.count("json") > 0;
  if (words.size() == 1 && words[0] == "list") return list(parsed.values);
  if (words.size() == 2 && words[0] == "show") return show(CatalogKind::kRecipes, words[1]);
  if (words.size() == 2 && words[0] == "from") return from(words[1], parsed.values);
  if (words.size() == 2 && words[0] == "check") return check(words[1], parsed.values);
  if (words.size() == 3 && words[0] == "diff") return diff(words[1], words[2], parsed.values);
  if (words.size() == 1 && words[0] == "objectives") return list_objectives(as_json);
  if (words.size() == 2 && words[0] == "objectives") return show(CatalogKind::kObjectives, words[1]);
  if (words.size() == 1 && words[0] == "exclusions") return list_exclusions(as_json);
  if (words.size() == 2 && words[0] == "exclusions") return show(CatalogKind::kExclusions, words[1]);
  return fail(
      usage_error(fmt::format("invalid arguments: '{}'", fmt::join(words, " ")), "usage: " + recipe_command().usage));
}

}  // namespace

const Verb kRecipeVerb{"recipe", OperationGroup::kChoose, "List, print, or derive recipes", recipe_command,
                       recipe_verb};

}  // namespace ggufmill
