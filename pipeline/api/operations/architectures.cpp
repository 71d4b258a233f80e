// `architectures`, `architecture`, `architecture_functions`, `first_map`: the maps of checkpoints.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/yaml_text.h"
#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "stages/huggingface/first_map.h"
#include "stages/huggingface/map/added_maps.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace {

constexpr SharedVerb kArchitecturesVerb{
    .name = "architectures",
    .summary = "List the supported checkpoint architectures, or print or start a map",
    .description =
        "List the architecture maps, which define how Hugging Face checkpoints are converted: the classes of "
        "config.json that each map supports, and its tokenizers. `show` prints one. `new` writes a first map of a "
        "checkpoint that no map supports, from the map of similar models: what matches, what does not, and what is "
        "missing. Your own map is a YAML file that can set `extends: NAME` and add rules; --architectures adds it to "
        "the built-in ones.",
    .examples =
        "  ggufmill architectures\n"
        "  ggufmill architectures show llama\n"
        "  ggufmill architectures new models/New-8B -o new.yaml\n"
        "  ggufmill architectures --functions",
    .usage = "[list | show NAME | new CHECKPOINT] [options]"};

// ---- lists ----

struct MapsRequest {};

struct ListedMap {
  std::string map, architecture, description;
  std::vector<std::string> classes, tokenizers;
  bool is_partial = false;
};

struct ListedMaps {
  std::vector<ListedMap> maps;
};

// Returns the name of an architecture, followed by its other names.
std::string names_of(const huggingface::Architecture& architecture) {
  std::string names = architecture.name;
  for (const huggingface::OtherName& other : architecture.other_names) names += ", " + other.name;
  return names;
}

// The paths of added maps, and the names of the built-in ones.
std::vector<std::string> map_names(const huggingface::AddedMaps& added) {
  std::vector<std::string> names;
  for (const huggingface::AddedMaps::Map& each : added.maps()) names.push_back(each.path);
  for (const huggingface::BuiltInArchitecture& built_in : huggingface::built_in_architectures())
    if (!added.named(built_in.name)) names.emplace_back(built_in.name);
  return names;
}

Result<Answer<ListedMaps>> run_architectures(const Context& context, const MapsRequest&, const Call&) {
  BOOST_OUTCOME_TRY(const auto added, huggingface::AddedMaps::read(huggingface::map_places(context.maps())));
  Answer<ListedMaps> answer{};
  for (const std::string& name : map_names(added)) {
    BOOST_OUTCOME_TRY(const auto it, huggingface::read_architecture(name, {}, added));
    ListedMap listed{it.file, names_of(it), it.description, it.serves, {}, it.partial};
    for (const auto& each : it.tokenizer.readers)
      listed.tokenizers.emplace_back(tokenizer_reader_name(each.choice.reader));
    answer.value.maps.push_back(std::move(listed));
  }
  return answer;
}

void print_maps(const ListedMaps& list, TextOutput& to) {
  to.table = Table{{{"map"}, {"architecture"}, {"tokenizer"}, {"what for"}, {"classes"}}, {}};
  for (const ListedMap& it : list.maps)
    if (!it.is_partial)
      to.table->rows.push_back({it.map, it.architecture, fmt::format("{}", fmt::join(it.tokenizers, ", ")),
                                it.description, fmt::format("{}", fmt::join(it.classes, ", "))});
}

// A function that maps can call. The texts are constants.
struct ListedFunction {
  std::string_view name, kind;
  std::uint64_t least = 0, most = 0;
  std::string_view description;
};

struct ListedFunctions {
  std::vector<ListedFunction> functions;
};

Result<Answer<ListedFunctions>> run_functions(const Context&, const MapsRequest&, const Call&) {
  Answer<ListedFunctions> answer{};
  const auto add = [&](std::string_view kind, const auto& functions) {
    for (const auto& each : functions)
      answer.value.functions.push_back({each.name, kind, each.least, each.most, each.doc});
  };
  add("value", huggingface::value_functions());
  add("operation", huggingface::tensor_operations());
  add("computed tensor", huggingface::tensor_functions());
  return answer;
}

void print_functions(const ListedFunctions& list, TextOutput& to) {
  to.table = Table{{{"name"}, {"kind"}, {"arguments", Align::kRight}, {"what it does"}}, {}};
  for (const ListedFunction& it : list.functions)
    to.table->rows.push_back(
        {std::string(it.name), std::string(it.kind),
         it.least == it.most ? std::to_string(it.least) : fmt::format("{} to {}", it.least, it.most),
         std::string(it.description)});
}

// ---- one map ----

struct MapRequest {
  std::string name{};
};

Result<Answer<YamlText>> run_architecture(const Context& context, const MapRequest& request, const Call&) {
  BOOST_OUTCOME_TRY(const auto added, huggingface::AddedMaps::read(huggingface::map_places(context.maps())));
  if (const huggingface::AddedMaps::Map* const map = added.named(request.name)) {
    BOOST_OUTCOME_TRY(std::string text, read_text_file(map->path, huggingface::kMaxMapBytes));
    return Answer<YamlText>{{std::move(text)}};
  }
  BOOST_OUTCOME_TRY(huggingface::read_architecture(request.name));
  for (const huggingface::BuiltInArchitecture& built_in : huggingface::built_in_architectures())
    if (built_in.name == request.name) return Answer<YamlText>{{std::string(built_in.text)}};
  return usage_error(fmt::format("'{}' is a file, not a built-in map", request.name),
                     "`ggufmill architectures` lists the built-in maps");
}

struct FirstMapRequest {
  std::string checkpoint{}, like{}, output{};
  bool overwrite = false;
};

struct FirstMap : YamlText {
  std::string checkpoint, output;
};

Result<Answer<FirstMap>> run_first_map(const Context& context, const FirstMapRequest& request, const Call&) {
  const OpenedFiles opened;
  BOOST_OUTCOME_TRY(std::string text, first_map({request.checkpoint, request.like, context.maps()}, read_safetensors));
  if (!request.output.empty()) {
    BOOST_OUTCOME_TRY(context.check_written({request.output, "map"}, opened.paths(), request.overwrite));
    BOOST_OUTCOME_TRY(write_text(request.output, text, request.overwrite));
  }
  return Answer<FirstMap>{{{std::move(text)}, request.checkpoint, request.output}};
}

void print_first_map(const FirstMap& map, TextOutput& to) {
  if (map.output.empty())
    to.out = map.yaml;
  else
    to.notes.push_back({fmt::format("wrote {0}  first map; `ggufmill convert {1} --architectures {0}` uses it",
                                    map.output, map.checkpoint)});
}

ResultForm<ListedFunctions> functions_result() {
  using Function = ListedFunction;
  const auto text = [](std::string_view name, std::string_view Function::*member, std::string_view doc) {
    return result<Function>(
        name, [member](const Function& it) { return std::optional(boost::json::value(it.*member)); }, doc);
  };
  const ResultForm<Function> function{{text("name", &Function::name, "its name"),
                                       text("kind", &Function::kind, "of values or on tensors"),
                                       result("least", &Function::least, "minimum number of arguments"),
                                       result("most", &Function::most, "maximum number of arguments"),
                                       text("description", &Function::description, "what it does")}};
  return {.members = {result("functions", &ListedFunctions::functions, function, "the functions")}, .is_alone = true};
}

}  // namespace

OperationSpec architectures_operation() {
  const ResultForm<ListedMap> map{{result("map", &ListedMap::map, "name of the map, or its path"),
                                   result("architecture", &ListedMap::architecture, "its general.architecture"),
                                   result("description", &ListedMap::description, "what it is for"),
                                   result("classes", &ListedMap::classes, "the classes of config.json"),
                                   result("tokenizers", &ListedMap::tokenizers, "how its tokenizers are read"),
                                   result("partial", &ListedMap::is_partial, "true: other maps extend it")}};
  return operation(OperationOf<MapsRequest, ListedMaps>{
      .name = "architectures",
      .group = OperationGroup::kReference,
      .summary = "List the supported checkpoint architectures",
      .description = "List the architecture maps, which define how Hugging Face checkpoints are converted: the classes "
                     "of config.json that each map supports, and its tokenizers.",
      .shared = &kArchitecturesVerb,
      .choice = "list",
      .is_usual_choice = true,
      .result = {.members = {result("architectures", &ListedMaps::maps, map, "the maps")}, .is_alone = true},
      .context = ContextUse::kMaps,
      .run = run_architectures,
      .print = print_maps});
}

OperationSpec architecture_operation() {
  return operation(OperationOf<MapRequest, YamlText>{
      .name = "architecture",
      .group = OperationGroup::kReference,
      .summary = "Print an architecture map",
      .description =
          "Print an architecture map: a YAML file to copy and change. Your own map can set `extends: NAME` and "
          "add rules.",
      .prints_data = true,
      .shared = &kArchitecturesVerb,
      .choice = "show",
      .options = {option("name", &MapRequest::name, text(), "name of the map").word("NAME")},
      .result = yaml_result("the text of the map"),
      .context = ContextUse::kMaps,
      .run = run_architecture,
      .print = print_yaml});
}

OperationSpec first_map_operation() {
  using Request = FirstMapRequest;
  return operation(OperationOf<FirstMapRequest, FirstMap>{
      .name = "first_map",
      .group = OperationGroup::kReference,
      .summary = "Start an architecture map for a checkpoint",
      .description = "Write a first map of a checkpoint that no map supports, from the map of similar models: what "
                     "matches, what does not, and what is missing.",
      .prints_data = true,
      .shared = &kArchitecturesVerb,
      .choice = "new",
      .options = {option("checkpoint", &Request::checkpoint, text(), "the checkpoint: a folder, or the address of one")
                      .word("CHECKPOINT"),
                  option("like", &Request::like, text(),
                         "the map of similar models, by name or path (default: the map of text models that fits best)"),
                  option("output", &Request::output, path(),
                         "file to write; by default, the map is only printed or returned")
                      .short_flag('o'),
                  option("overwrite", &Request::overwrite, "replace an existing file")},
      .result = {.members = {result<FirstMap>(
                     "yaml", [](const FirstMap& map) { return std::optional(boost::json::value(map.yaml)); },
                     "the text of the map")},
                 .is_alone = true},
      .context = ContextUse::kMaps,
      .run = run_first_map,
      .print = print_first_map});
}

OperationSpec architecture_functions_operation() {
  return operation(OperationOf<MapsRequest, ListedFunctions>{
      .name = "architecture_functions",
      .group = OperationGroup::kReference,
      .summary = "List what maps can call: functions of values, operations on tensors",
      .description = "List what architecture maps can call: functions of values, operations on tensors, and functions "
                     "that compute tensors.",
      .shared = &kArchitecturesVerb,
      .choice = "--functions",
      .result = functions_result(),
      .context = ContextUse::kNone,
      .run = run_functions,
      .print = print_functions});
}

}  // namespace ggufmill
