// `ggufmill architectures`: lists or prints the built-in architecture maps, and lists what maps can call.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/catalog.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

CommandSpec architectures_command() {
  CommandSpec spec;
  spec.usage = "ggufmill architectures [list | show NAME] [options]";
  spec.description =
      "List the built-in architecture maps, which define how Hugging Face checkpoints are converted: the classes of "
      "config.json that each map supports, and its tokenizers. `show` prints one: a YAML file to copy, change, and "
      "name in `architecture:` of the source. Your own map can set `extends: NAME` and add rules.";
  spec.examples =
      "  ggufmill architectures\n"
      "  ggufmill architectures show llama > mine.yaml\n"
      "  ggufmill architectures --functions";
  spec.options.add_options()("functions", "list what maps can call: functions of values, operations on tensors");
  spec.options.add_options()("json",
                             "print a JSON array: [{map, architecture, description, classes, tokenizers, partial}]");
  spec.positional = "words";
  spec.words = {"list", "show"};
  spec.optional = true;
  spec.many = true;
  return spec;
}

// Returns the texts of a JSON array, separated by commas.
std::string joined(const json::value& array) {
  std::string line;
  for (const json::value& each : array.as_array()) line.append(line.empty() ? "" : ", ").append(each.as_string());
  return line;
}

int print_json(const json::array& array) {
  std::puts(to_json_text(array).c_str());
  return 0;
}

int list_architectures(bool as_json) {
  const auto architectures = describe_catalog(CatalogKind::kArchitectures);
  if (!architectures) return fail(architectures.error());
  if (as_json) return print_json(architectures.value());
  std::vector<Row> rows;
  for (const json::value& each : architectures.value())
    if (!each.at("partial").as_bool())
      rows.push_back({text_at(each, "map"), text_at(each, "architecture"), joined(each.at("tokenizers")),
                      text_at(each, "description"), joined(each.at("classes"))});
  std::fputs(render_table({{"map"}, {"architecture"}, {"tokenizer"}, {"what for"}, {"classes"}}, rows).c_str(), stdout);
  return 0;
}

int show_architecture(const std::string& name) {
  const auto text = catalog_text(CatalogKind::kArchitectures, name);
  if (!text) return fail(text.error());
  std::fwrite(text.value().data(), 1, text.value().size(), stdout);
  return 0;
}

int list_functions(bool as_json) {
  const auto functions = describe_catalog(CatalogKind::kFunctions);
  if (!functions) return fail(functions.error());
  if (as_json) return print_json(functions.value());
  std::vector<Row> rows;
  for (const json::value& each : functions.value()) {
    const auto least = each.at("least").to_number<std::uint64_t>(), most = each.at("most").to_number<std::uint64_t>();
    rows.push_back({text_at(each, "name"), text_at(each, "kind"),
                    least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                    text_at(each, "description")});
  }
  std::fputs(render_table({{"name"}, {"kind"}, {"arguments", Align::kRight}, {"what it does"}}, rows).c_str(), stdout);
  return 0;
}

int architectures_verb(const Parsed& parsed) {
  const auto words = value_or<Arguments>(parsed.values, "words", {});
  const bool as_json = parsed.values.count("json") > 0;
  if (parsed.values.count("functions") && words.empty()) return list_functions(as_json);
  if (words.empty() || (words.size() == 1 && words[0] == "list")) return list_architectures(as_json);
  if (words.size() == 2 && words[0] == "show" && !as_json) return show_architecture(words[1]);
  return fail(usage_error(fmt::format("invalid arguments: '{}'", fmt::join(words, " ")),
                          "usage: " + architectures_command().usage));
}

}  // namespace

const Verb kArchitecturesVerb{"architectures", VerbGroup::kReference,
                              "List the supported checkpoint architectures, or print a map to copy",
                              architectures_command, architectures_verb};

}  // namespace ggufmill
