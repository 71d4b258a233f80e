// `ggufmill recipe`: the built-in recipes, listed or printed.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/table.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill recipe list | ggufmill recipe show NAME";
  spec.description =
      "Lists the built-in recipes, or prints one: a YAML file to copy, change and name in `quantize:` by its path.\n"
      "A recipe of your own may say `extends: NAME` and add rules.";
  spec.examples =
      "  ggufmill recipe list\n"
      "  ggufmill recipe show Q4_K_M > mine.yaml";
  spec.positional = "words";
  spec.many = true;
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

}  // namespace

int recipe_verb(const Arguments& arguments) {
  const Parsed parsed = parse_command(command(), arguments);
  if (parsed.exit_code) return *parsed.exit_code;
  const auto words = parsed.values["words"].as<Arguments>();
  if (words.size() == 1 && words[0] == "list") return list();
  if (words.size() == 2 && words[0] == "show") return show(words[1]);
  return fail(usage_error(fmt::format("'{}' is not understood", fmt::join(words, " ")), "usage: " + command().usage));
}

}  // namespace ggufmill
