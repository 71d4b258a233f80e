// `ggufmill architectures`: lists or prints architecture maps, writes a first one, and lists what maps can call.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/catalog.h"
#include "pipeline/api/reports.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/verb.h"
#include "pipeline/io/input_file.h"
#include "pipeline/report/json_text.h"
#include "stages/huggingface/first_map.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
namespace po = boost::program_options;

CommandSpec architectures_command() {
  CommandSpec spec;
  spec.usage = "ggufmill architectures [list | show NAME | new CHECKPOINT] [options]";
  spec.description =
      "List the architecture maps, which define how Hugging Face checkpoints are converted: the classes of config.json "
      "that each map supports, and its tokenizers. `show` prints one. `new` writes a first map of a checkpoint that no "
      "map supports, from the map of similar models: what matches, what does not, and what is missing. Your own map is "
      "a YAML file that can set `extends: NAME` and add rules; --architectures adds it to the built-in ones.";
  spec.examples =
      "  ggufmill architectures\n"
      "  ggufmill architectures show llama\n"
      "  ggufmill architectures new models/New-8B -o new.yaml\n"
      "  ggufmill architectures --functions";
  spec.options.add_options()("functions", "list what maps can call: functions of values, operations on tensors");
  spec.options.add_options()("json",
                             "print a JSON array: [{map, architecture, description, classes, tokenizers, partial}]");
  auto add = spec.options.add_options();
  add("like", po::value<std::string>(),
      "with `new`: the map of similar models, by name or path (default: the map of text models that fits best)");
  add("output,o", po::value<std::string>(), "with `new`: file to write; default: standard output");
  add("overwrite", "replace an existing file");
  add_architectures_option(spec.options);
  spec.positional = "words";
  spec.words = {"list", "show", "new"};
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

int list_architectures(bool as_json, const Strings& maps) {
  const auto architectures = describe_catalog(CatalogKind::kArchitectures, RecipeCatalog(), maps);
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

int show_architecture(const std::string& name, const Strings& maps) {
  const auto text = catalog_text(CatalogKind::kArchitectures, name, maps);
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

int write_first_map(const std::string& checkpoint, const po::variables_map& values) {
  const auto like = text_of(values, "like"), output = text_of(values, "output");
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const OpenedFiles opened;
  const auto text = first_map({checkpoint, like.value_or(""), context.value().maps()}, read_safetensors);
  if (!text) return fail(text.error());
  if (!output) {
    std::fwrite(text.value().data(), 1, text.value().size(), stdout);
    return 0;
  }
  const bool overwrite = values.count("overwrite") > 0;
  const Status allowed = context.value().check_written({*output, "map"}, opened.paths(), overwrite);
  if (!allowed) return fail(allowed.error());
  if (const Status written = write_text(*output, text.value(), overwrite); !written) return fail(written.error());
  print_note(fmt::format("wrote {}  first map; `ggufmill convert {} --architectures {}` uses it", *output, checkpoint,
                         *output));
  return 0;
}

// Returns an error if an option is given that only `new` has.
Status check_new_options(const po::variables_map& values) {
  for (const char* const option : {"like", "output", "overwrite"})
    if (values.count(option))
      return usage_error(fmt::format("--{} needs `new`", option),
                         "`ggufmill architectures new CHECKPOINT -o FILE` writes a first map");
  return ok();
}

int architectures_verb(const Parsed& parsed) {
  const auto words = value_or<Arguments>(parsed.values, "words", {});
  const auto maps = value_or<Strings>(parsed.values, "architectures", {});
  const bool as_json = parsed.values.count("json") > 0;
  const bool lists_functions = parsed.values.count("functions") > 0;
  if (lists_functions && (!words.empty() || !maps.empty()))
    return fail(usage_error("--functions lists what every map can call, so no maps can be given with it",
                            "run `ggufmill architectures --functions`"));
  if (!words.empty() && words[0] == "new") {
    if (words.size() != 2 || as_json)
      return fail(usage_error("`new` takes one checkpoint, and writes a YAML file",
                              "`ggufmill architectures new CHECKPOINT -o FILE` writes a first map"));
    return write_first_map(words[1], parsed.values);
  }
  if (const Status usable = check_new_options(parsed.values); !usable) return fail(usable.error());
  if (lists_functions) return list_functions(as_json);
  if (words.empty() || (words.size() == 1 && words[0] == "list")) return list_architectures(as_json, maps);
  if (words.size() == 2 && words[0] == "show" && !as_json) return show_architecture(words[1], maps);
  return fail(usage_error(fmt::format("invalid arguments: '{}'", fmt::join(words, " ")),
                          "usage: " + architectures_command().usage));
}

}  // namespace

const Verb kArchitecturesVerb{"architectures", OperationGroup::kReference,
                              "List the supported checkpoint architectures, or print or start a map",
                              architectures_command, architectures_verb};

}  // namespace ggufmill
