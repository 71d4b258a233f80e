// `ggufmill recipe`: the built-in recipes, listed or printed.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "stages/quantize/objective.h"
#include "stages/quantize/recipe.h"
#include "stages/quantize/recipe_from.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill recipe (list | show NAME | from FILE | objectives [NAME])";
  spec.description =
      "Lists the built-in recipes, or prints one: a YAML file to copy, change and name in `quantize:` by its path.\n"
      "A recipe of your own may say `extends: NAME` and add rules. `from` prints the recipe that gives another model "
      "of the\n"
      "family the types that a model file has; `objectives` lists what a target's choice can be made by, or prints "
      "one.";
  spec.examples =
      "  ggufmill recipe list\n"
      "  ggufmill recipe show Q4_K_M > mine.yaml\n"
      "  ggufmill recipe from model-mine.gguf > mine.yaml";
  spec.positional = "words";
  spec.many = true;
  add_kernel_options(spec.options);
  return spec;
}

int list() {
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
  std::fputs(
      render_table({{"recipe"}, {"alias"}, {"file type", Align::kRight}, {"main type"}, {"what for"}}, rows).c_str(),
      stdout);
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
  return fail(
      usage_error(fmt::format("'{}' is a file, not a built-in recipe", name), "`ggufmill recipe list` lists those"));
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

int list_objectives() {
  std::vector<Row> rows;
  for (const BuiltInObjective& built_in : built_in_objectives()) {
    const auto objective = find_objective(std::string(built_in.name), {});
    if (!objective) return fail(objective.error());
    rows.push_back({objective.value().name, objective.value().formula});
  }
  std::fputs(render_table({{"objective"}, {"what is made small"}}, rows).c_str(), stdout);
  return 0;
}

int show_objective(const std::string& name) {
  for (const BuiltInObjective& built_in : built_in_objectives())
    if (built_in.name == name) {
      std::fwrite(built_in.text.data(), 1, built_in.text.size(), stdout);
      return 0;
    }
  return fail(usage_error(fmt::format("unknown objective '{}'", name), "`ggufmill recipe objectives` lists them"));
}

}  // namespace

int recipe_verb(const Arguments& arguments) {
  const Parsed parsed = parse_command(command(), arguments);
  if (parsed.exit_code) return *parsed.exit_code;
  const auto words = parsed.values["words"].as<Arguments>();
  if (words.size() == 1 && words[0] == "list") return list();
  if (words.size() == 2 && words[0] == "show") return show(words[1]);
  if (words.size() == 2 && words[0] == "from") return from(words[1], parsed.values);
  if (words.size() == 1 && words[0] == "objectives") return list_objectives();
  if (words.size() == 2 && words[0] == "objectives") return show_objective(words[1]);
  return fail(usage_error(fmt::format("'{}' is not understood", fmt::join(words, " ")), "usage: " + command().usage));
}

}  // namespace ggufmill
