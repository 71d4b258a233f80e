// `ggufmill architectures`: lists or prints the built-in architecture maps, and lists what maps can call.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/report/json_text.h"
#include "stages/huggingface/architecture.h"

namespace ggufmill {
namespace {

using namespace huggingface;
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

std::vector<std::string_view> readers_of(const Architecture& architecture) {
  std::vector<std::string_view> readers;
  for (const TokenizerRules::Reader& each : architecture.tokenizer.readers)
    readers.push_back(tokenizer_reader_name(each.choice.reader));
  return readers;
}

json::array words_of(const auto& words) {
  json::array array;
  for (const auto& word : words) array.emplace_back(word);
  return array;
}

// Returns the name of an architecture, followed by its other names.
std::string names_of(const Architecture& architecture) {
  std::string names = architecture.name;
  for (const OtherName& other : architecture.other_names) names += ", " + other.name;
  return names;
}

int list_architectures(bool as_json) {
  std::vector<Row> rows;
  json::array array;
  for (const BuiltInArchitecture& built_in : built_in_architectures()) {
    const auto read = read_architecture(std::string(built_in.name));
    if (!read) return fail(read.error());
    const Architecture& it = read.value();
    array.push_back({{"map", it.file},
                     {"architecture", names_of(it)},
                     {"description", it.description},
                     {"classes", words_of(it.serves)},
                     {"tokenizers", words_of(readers_of(it))},
                     {"partial", it.partial}});
    if (!it.partial)
      rows.push_back({it.file, names_of(it), fmt::format("{}", fmt::join(readers_of(it), ", ")), it.description,
                      fmt::format("{}", fmt::join(it.serves, ", "))});
  }
  std::fputs(as_json
                 ? (to_json_text(array) + "\n").c_str()
                 : render_table({{"map"}, {"architecture"}, {"tokenizer"}, {"what for"}, {"classes"}}, rows).c_str(),
             stdout);
  return 0;
}

int show_architecture(const std::string& name) {
  const auto read = read_architecture(name);
  if (!read) return fail(read.error());
  for (const BuiltInArchitecture& built_in : built_in_architectures())
    if (built_in.name == name) {
      std::fwrite(built_in.text.data(), 1, built_in.text.size(), stdout);
      return 0;
    }
  return fail(usage_error(fmt::format("'{}' is a file, not a built-in map", name),
                          "`ggufmill architectures` lists the built-in maps"));
}

void add_functions(const char* kind, const auto& functions, std::vector<Row>& rows, json::array& array) {
  for (const auto& each : functions) {
    const std::string arguments =
        each.least == each.most ? std::to_string(each.least) : fmt::format("{} to {}", each.least, each.most);
    rows.push_back({std::string(each.name), kind, arguments, std::string(each.doc)});
    array.push_back(
        {{"name", each.name}, {"kind", kind}, {"least", each.least}, {"most", each.most}, {"description", each.doc}});
  }
}

int list_functions(bool as_json) {
  std::vector<Row> rows;
  json::array array;
  add_functions("value", value_functions(), rows, array);
  add_functions("operation", tensor_operations(), rows, array);
  add_functions("computed tensor", tensor_functions(), rows, array);
  std::fputs(as_json ? (to_json_text(array) + "\n").c_str()
                     : render_table({{"name"}, {"kind"}, {"arguments", Align::kRight}, {"what it does"}}, rows).c_str(),
             stdout);
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
