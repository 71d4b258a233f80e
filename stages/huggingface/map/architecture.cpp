#include "stages/huggingface/map/architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string_view>

#include "pipeline/config/extended_files.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/core/upstream.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/map/added_maps.h"
#include "stages/huggingface/tokenizer/tables.h"

namespace ggufmill::huggingface {
namespace {

// Resolves a path in `extends` relative to the file that contains it.
std::string beside(const std::string& file, const std::string& name) {
  if (!names_file(file) || !names_file(name)) return name;
  return (fs::path(file).parent_path() / name).lexically_normal().string();
}

// Returns the path of the added map that `name` means in the file `from`, or `name` for any other map. `from` is empty
// for what the user asks for.
std::string resolved(const std::string& name, const std::string& from, const AddedMaps& added) {
  const bool is_built_in = !from.empty() && !names_file(from);
  if (is_built_in || names_file(name)) return name;
  const AddedMaps::Map* const map = added.named(name);
  return map && map->path != from ? map->path : name;
}

Error unknown_architecture(const std::string& name, const Origin& asked, const AddedMaps& added) {
  std::vector<std::string> names;
  for (const AddedMaps::Map& each : added.maps()) names.push_back(each.name);
  for (const BuiltInArchitecture& each : built_in_architectures()) names.emplace_back(each.name);
  const std::string meant = did_you_mean(name, names);
  return error_at(asked, fmt::format("unknown architecture '{}'", name),
                  meant.empty() ? "`ggufmill architectures` lists them; to use a file, give its path: ./mine.yaml"
                                : fmt::format("did you mean '{}'? `ggufmill architectures` lists them", meant));
}

// Returns the contents of a map file, without what it inherits.
Result<MapFile> own_file(const std::string& name, const Origin& asked, const AddedMaps& added, ExtendedFiles& files) {
  if (const BuiltInArchitecture* const built_in = built_in_named(name)) {
    BOOST_OUTCOME_TRY(files.count(built_in->text.size(), asked));
    BOOST_OUTCOME_TRY(const MapFile* const file, built_in_file(*built_in));
    return *file;
  }
  if (!names_file(name)) return unknown_architecture(name, asked, added);
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(name, kMaxMapBytes));
  BOOST_OUTCOME_TRY(files.count(text.size(), asked));
  return parse_document(text, name, map_form());
}

// Adds the contents of a file to what it inherits.
void extend(Architecture& map, MapFile own) {
  put_instead(map.name, std::move(own.name));
  put_instead(map.description, std::move(own.description));
  map.partial = own.partial;
  put_instead(map.part, own.part);
  map.other_names = std::move(own.other_names);
  map.serves = std::move(own.serves);
  map.serves_whole = std::move(own.serves_whole);
  map.serves_when = std::move(own.serves_when);
  map.serves_folder_when = std::move(own.serves_folder_when);
  put_instead(map.config, std::move(own.config));
  put_instead(map.weights, std::move(own.weights));
  put_instead(map.draft_head, own.draft_head);
  put_instead(map.dspark, own.dspark);
  put_instead(map.dense_modules, own.dense_modules);
  put_instead(map.fused_experts, own.fused_experts);
  put_instead(map.fused_qkv, own.fused_qkv);
  put_instead(map.adapters, std::move(own.adapters));
  put_instead(map.adapter_names, std::move(own.adapter_names));
  put_instead(map.layers, std::move(own.layers));
  put_instead(map.computed, std::move(own.computed));
  put_instead(map.tokenizer, std::move(own.tokenizer));
  put_by_key(map.pre_tokenizers, std::move(own.pre_tokenizers));
  put_by_key(map.memory, std::move(own.memory));
  put_by_key(map.defaults, std::move(own.defaults));
  put_last(map.further_weights, std::move(own.further_weights));
  put_last(map.refuses, std::move(own.refuses));
  put_last(map.shards, std::move(own.shards));
  put_last(map.other_maps, std::move(own.other_maps));
  put_instead(map.target_tokenizer, own.target_tokenizer);
  put_instead(map.target_weights, std::move(own.target_weights));
  put_by_key(map.values, std::move(own.values));
  put_last(map.metadata_early, std::move(own.metadata_early));
  put_last(map.metadata_of_tensors, std::move(own.metadata_of_tensors));
  put_first(map.metadata, std::move(own.metadata_first));
  put_last(map.metadata, std::move(own.metadata));
  put_last(map.metadata_before_tokenizer, std::move(own.metadata_before_tokenizer));
  put_last(map.metadata_after_tokenizer, std::move(own.metadata_after_tokenizer));
  put_first(map.names, std::move(own.names));
  put_last(map.names_back, std::move(own.names_back));  // inverse rules go in reverse order
  put_first(map.tensors, std::move(own.tensors));
  put_first(map.types, std::move(own.types));
}

// Reads a map and those it extends into `into`.
Status read(const std::string& name, const Origin& asked, const AddedMaps& added, ExtendedFiles& files,
            Architecture& into) {
  BOOST_OUTCOME_TRY(const bool is_new, files.enter(name, asked));
  if (!is_new) return ok();
  BOOST_OUTCOME_TRY(MapFile file, own_file(name, asked, added, files));
  for (const MapParent& parent : file.extends) {
    const std::string extended = resolved(beside(name, parent.name), name, added);
    BOOST_OUTCOME_TRY(read(extended, parent.origin, added, files, into));
  }
  into.file = name;
  if (names_file(name)) into.files.push_back(name);
  extend(into, std::move(file));
  files.leave();
  return ok();
}

// Returns "Qwen3" for Qwen3ForCausalLM and Qwen3Model.
std::string_view family_of(std::string_view name) {
  return name.substr(0, std::min(name.find("For"), name.find("Model")));
}

// Returns the error for a class that a row of the table of unserved classes describes.
Error unserved_error(std::string_view name, std::span<const std::string_view> row, const std::string& where) {
  Error error =
      input_error(where, fmt::format("'{}' is {}, which is not supported", name, row[1]), std::string(row[2]));
  error.detail = fmt::format("this ggufmill follows llama.cpp {} of {}", upstream_version(), upstream_date());
  return error;
}

// Returns true for the class itself, and if it ends with *, for any that begins like it, ignoring case.
bool describes(std::string_view row_class, std::string_view checkpoint_class) {
  if (!row_class.ends_with('*')) return row_class == checkpoint_class;
  row_class.remove_suffix(1);
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(row_class, checkpoint_class.substr(0, row_class.size()), {}, lower, lower);
}

// Returns the error for a class that the table of unserved classes describes; nullopt for any other class.
std::optional<Error> unserved(std::string_view checkpoint_class, const std::string& where) {
  for (const auto& row : table_rows(unserved_class_table()))
    if (describes(row[0], checkpoint_class)) return unserved_error(checkpoint_class, row, where);
  return {};
}

// The kind of checkpoint that has no text model.
constexpr std::string_view kProjectorKind = "an encoder of images or sound (a projector)";

// Returns how to write a map for a checkpoint, starting from the map `like`; from the one that fits best if it is
// empty.
std::string how_to_write_one(std::string_view like) {
  return fmt::format(
      "`ggufmill architectures new FOLDER{}{} -o mine.yaml` writes one for the checkpoint, which {} adds to the "
      "built-in ones",
      like.empty() ? "" : " --like ", like, option_reference("architectures", "mine.yaml"));
}

Error no_projector(const std::string& checkpoint_class, const std::string& where) {
  return input_error(where, fmt::format("no map describes the projector of '{}'", checkpoint_class),
                     "if it has one, start from another model's map: " + how_to_write_one("clip-gemma3"));
}

}  // namespace

Result<Architecture> read_architecture(const std::string& name_or_path, const Origin& asked, const AddedMaps& added) {
  ExtendedFiles files("architecture");
  Architecture architecture;
  BOOST_OUTCOME_TRY(read(resolved(name_or_path, {}, added), asked, added, files, architecture));
  if (architecture.partial) return architecture;
  const char* missing =
      architecture.name.empty()                                                                          ? "name"
      : architecture.layers.kind == ValueRule::Kind::kConstant && architecture.layers.constant.is_null() ? "layers"
                                                                                                         : nullptr;
  if (missing)
    return Error{ExitCode::kUsage, name_or_path, fmt::format("the map has no `{}`", missing), "",
                 "set it, or extend a map that sets it: `extends: [decoder, text]`"};
  return architecture;
}

Result<const MapFile*> built_in_file(const BuiltInArchitecture& built_in) {
  static std::mutex mutex;
  static std::map<std::string_view, MapFile> files;
  const std::lock_guard lock(mutex);
  auto found = files.find(built_in.name);
  if (found == files.end()) {
    const std::string name = std::string(built_in.name) + ".yaml";
    BOOST_OUTCOME_TRY(MapFile file, parse_document(built_in.text, name, map_form()));
    found = files.emplace(built_in.name, std::move(file)).first;
  }
  return &found->second;
}

const BuiltInArchitecture* built_in_named(std::string_view name) {
  const auto all = built_in_architectures();
  const auto found = std::ranges::find(all, name, &BuiltInArchitecture::name);
  return found == all.end() ? nullptr : &*found;
}

ModelPart described_part(ModelPart part) { return part == ModelPart::kDraft ? ModelPart::kText : part; }

// The maps that serve a class: the one that describes the wanted part, and whether one describes the projector.
struct Serving {
  std::optional<Architecture> map;
  bool has_projector = false;

  // Returns true if the map describes the wanted part.
  bool add(Architecture architecture, ModelPart wanted) {
    has_projector = has_projector || architecture.part == ModelPart::kProjector;
    if (architecture.part != wanted) return false;
    map = std::move(architecture);
    return true;
  }
};

// Looks for the first added map that describes the part; another one of the same place is an error.
static Status find_added(const std::string& checkpoint_class, ModelPart wanted, const AddedMaps& added,
                         Serving& serving) {
  const AddedMaps::Map* first = nullptr;
  for (const AddedMaps::Map& each : added.maps()) {
    if (first && each.place != first->place) break;
    if (std::ranges::count(each.own.serves, checkpoint_class) == 0) continue;
    BOOST_OUTCOME_TRY(Architecture architecture, read_architecture(each.path, {}, added));
    if (first && architecture.part == wanted)
      return Error{ExitCode::kUsage, each.path, fmt::format("serves '{}', as {} does", checkpoint_class, first->path),
                   "", "remove the class from `serves` in one of them"};
    if (!first && serving.add(std::move(architecture), wanted)) first = &each;
  }
  return ok();
}

static Status find_built_in(const std::string& checkpoint_class, ModelPart wanted, Serving& serving) {
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    // Most files do not contain the class name, so there is no need to parse them.
    if (each.text.find(checkpoint_class) == std::string_view::npos) continue;
    BOOST_OUTCOME_TRY(const MapFile* const own, built_in_file(each));
    if (std::ranges::count(own->serves, checkpoint_class) == 0) continue;
    BOOST_OUTCOME_TRY(Architecture architecture, read_architecture(std::string(each.name)));
    if (serving.add(std::move(architecture), wanted)) break;
  }
  return ok();
}

Result<std::string> built_in_map_for(const std::string& checkpoint_class, ModelPart part) {
  Serving serving;
  BOOST_OUTCOME_TRY(find_built_in(checkpoint_class, described_part(part), serving));
  return serving.map ? serving.map->file : std::string();
}

// Returns the added maps that serve classes, and which, for messages.
static std::string describe_added(const AddedMaps& added) {
  std::string text;
  for (const AddedMaps::Map& each : added.maps())
    if (!each.own.serves.empty())
      text += fmt::format("\n{} serves '{}'", each.path, fmt::join(each.own.serves, "', '"));
  return text;
}

Result<Architecture> find_architecture(const std::string& checkpoint_class, const std::string& where, ModelPart part,
                                       const AddedMaps& added) {
  const ModelPart described = described_part(part);
  Serving serving;
  BOOST_OUTCOME_TRY(find_added(checkpoint_class, described, added, serving));
  if (!serving.map) {
    BOOST_OUTCOME_TRY(find_built_in(checkpoint_class, described, serving));
  }
  if (serving.map) return std::move(*serving.map);
  if (part == ModelPart::kProjector) return no_projector(checkpoint_class, where);
  if (const auto error = unserved(checkpoint_class, where)) return *error;
  if (serving.has_projector) {
    Error error = input_error(where, fmt::format("'{}' is {}", checkpoint_class, kProjectorKind));
    error.help = "convert it as one: `part: projector` in the source";
    return with_options(std::move(error), "convert it as one: `ggufmill convert --mmproj`");
  }
  std::vector<std::string> family;
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    BOOST_OUTCOME_TRY(const Architecture architecture, read_architecture(std::string(each.name)));
    if (architecture.part != described) continue;
    for (const std::string& name : architecture.serves)
      if (family_of(name) == family_of(checkpoint_class)) family.push_back(fmt::format("'{}'", name));
  }
  std::ranges::sort(family);
  Error error = input_error(where, fmt::format("no architecture is known for '{}'", checkpoint_class));
  error.detail = fmt::format(
      "convert_hf_to_gguf.py of llama.cpp {}, which this ggufmill follows, does not support it "
      "either; a later version may{}{}",
      upstream_version(), family.empty() ? "" : "; known in the same family: ", fmt::join(family, ", "));
  error.detail += describe_added(added);
  error.help = "start from a map of a similar model: " + how_to_write_one({});
  return error;
}

Result<std::optional<MarkedFolder>> marked_folder(const fs::path& folder, const AddedMaps& added,
                                                  std::string_view config) {
  // Most folders are not marked, so what a map inherits is read only if its own condition is true.
  const auto marked_by = [&](const MapFile& own, const std::string& name,
                             const AddedMaps& with) -> Result<std::optional<MarkedFolder>> {
    if (!own.serves_folder_when || own.serves.empty()) return std::nullopt;
    const std::map<std::string, ValueRule> values(own.values.begin(), own.values.end());
    BOOST_OUTCOME_TRY(const bool is_marked, Facts(folder, {}, values).holds(own.serves_folder_when));
    if (!is_marked) return std::nullopt;
    BOOST_OUTCOME_TRY(const Architecture map, read_architecture(name, {}, with));
    if (!config.empty() && config != map.config) return std::nullopt;
    return MarkedFolder{map.serves.front(), map.config};
  };
  for (const AddedMaps::Map& each : added.maps()) {
    BOOST_OUTCOME_TRY(auto marked, marked_by(each.own, each.path, added));
    if (marked) return marked;
  }
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    if (each.text.find("serves_folder_when") == std::string_view::npos) continue;
    BOOST_OUTCOME_TRY(const MapFile* const own, built_in_file(each));
    BOOST_OUTCOME_TRY(auto marked, marked_by(*own, std::string(each.name), no_added_maps()));
    if (marked) return marked;
  }
  if (!config.empty() && config != Architecture().config) return std::nullopt;
  for (const auto& row : table_rows(unserved_class_table())) {
    bool all = !row[3].empty();
    for (std::string_view files = row[3]; all && !files.empty();) {
      const std::string_view name = files.substr(0, files.find(' '));
      const std::string path = (folder / name).string();
      all = is_file(path);
      if (all) {
        BOOST_OUTCOME_TRY(open_source(path));  // a server that does not respond is an error
      }
      files.remove_prefix(std::min(files.size(), name.size() + 1));
    }
    if (all) return unserved_error(row[0], row, folder.string());
  }
  return std::nullopt;
}

Result<std::string> class_to_convert(const boost::json::object& config, const AddedMaps& added) {
  std::string name = checkpoint_class(config);
  std::string whole = whole_class(config);
  if (whole.empty() || whole == name) return name;
  for (const AddedMaps::Map& each : added.maps())
    if (std::ranges::count(each.own.serves_whole, whole) > 0) return whole;
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    if (each.text.find(whole) == std::string_view::npos) continue;
    BOOST_OUTCOME_TRY(const MapFile* const own, built_in_file(each));
    if (std::ranges::count(own->serves_whole, whole) > 0) return whole;
  }
  return name;
}

std::string projector_class(const boost::json::object& config) {
  const boost::json::value* const vision = config.if_contains("vision_config");
  std::string name = vision && vision->is_object() ? whole_class(vision->get_object()) : std::string();
  return name.empty() ? whole_class(config) : name;
}

Result<Architecture> find_architecture_without_class(const fs::path& folder, const std::string& name,
                                                     const boost::json::object& config, const AddedMaps& added) {
  const auto serves = [&](const Architecture& map) -> Result<bool> {
    if (map.config != name || !map.serves_when) return false;
    return Facts(folder, config, map.values).holds(map.serves_when);
  };
  for (const AddedMaps::Map& each : added.maps()) {
    if (!each.own.serves_when) continue;
    BOOST_OUTCOME_TRY(Architecture architecture, read_architecture(each.path, {}, added));
    BOOST_OUTCOME_TRY(const bool is_served, serves(architecture));
    if (is_served) return architecture;
  }
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    if (each.text.find("serves_when") == std::string_view::npos) continue;
    BOOST_OUTCOME_TRY(Architecture architecture, read_architecture(std::string(each.name)));
    BOOST_OUTCOME_TRY(const bool is_served, serves(architecture));
    if (is_served) return architecture;
  }
  if (name != "config.json")
    return input_error((folder / name).string(), "no architecture is known for this model",
                       fmt::format("use config.json and its weights if the folder has them, or add a map of your own "
                                   "with `config: {}` and `serves_when`: {}",
                                   name, option_reference("architectures", "mine.yaml")));
  return input_error(
      (folder / name).string(), "'architectures', which names the kind of model, is missing",
      "add it to the file, as in {\"architectures\": [\"LlamaForCausalLM\"]}, or name a map in the source of a "
      "pipeline file: `architecture: llama`; `ggufmill architectures` lists both. For a model of images or video, use "
      "`source: {diffusion: ...}`; for any other model, `source: {safetensors: ...}` copies the tensors");
}

Result<Architecture> named_architecture(const std::string& name_or_path, const Origin& asked, const AddedMaps& added) {
  BOOST_OUTCOME_TRY(Architecture architecture, read_architecture(name_or_path, asked, added));
  if (architecture.partial)
    return error_at(asked, fmt::format("architecture '{}' can only be extended", name_or_path),
                    "`ggufmill architectures` lists the complete ones");
  return architecture;
}

}  // namespace ggufmill::huggingface
