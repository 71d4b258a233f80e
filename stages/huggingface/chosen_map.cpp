#include "stages/huggingface/chosen_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/adapter.h"
#include "stages/huggingface/checkpoint/checkpoint_files.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/general.h"
#include "stages/huggingface/map/metadata_rules.h"
#include "stages/huggingface/map/model_type.h"
#include "stages/huggingface/map/trainer_names.h"

namespace ggufmill::huggingface {

namespace json = boost::json;

Status ChosenMap::choose(std::vector<std::string>& warnings) {
  const std::string asked = options.folder;
  BOOST_OUTCOME_TRY(options.folder, pinned(asked));
  BOOST_OUTCOME_TRY(added_, AddedMaps::read(options.architectures));
  if (!options.architecture.empty()) {
    BOOST_OUTCOME_TRY(architecture, named_architecture(options.architecture, options.origin, added_));
  }
  if (!options.config.empty()) architecture.config = options.config;
  if (options.architecture.empty()) {
    BOOST_OUTCOME_TRY(const std::optional<MarkedFolder> marked, marked_folder(options.folder, added_, options.config));
    if (marked) {
      folder_class = marked->checkpoint_class;
      architecture.config = marked->config;
    }
  }
  BOOST_OUTCOME_TRY(read_config());
  json::object config = stored_config;
  if (!options.class_defaults)
    warnings.emplace_back(
        "'defaults: none' has no effect: the keys missing in config.json always get the defaults of their class");
  if (fs::path(architecture.config).filename() == "config.json") {
    BOOST_OUTCOME_TRY(CompletedConfig completed, with_class_defaults(options.folder, stored_config));
    if (completed.is_refused)
      warnings.push_back(
          fmt::format("{}: transformers rejects a value for model type '{}', so the file is read as is, without "
                      "class defaults, as convert_hf_to_gguf.py does",
                      config_file().string(), std::string_view(stored_config.at("model_type").as_string())));
    config = std::move(completed.config);
  }
  if (!folder_class.empty()) {
    class_name = folder_class;
  } else if (options.part == ModelPart::kProjector) {
    class_name = projector_class(config);
  } else {
    BOOST_OUTCOME_TRY(class_name, class_to_convert(config, added_));
  }
  if (options.architecture.empty()) {
    BOOST_OUTCOME_TRY(architecture, architecture_of_config());
    BOOST_OUTCOME_TRY(choose_other_map(config));
  }
  BOOST_OUTCOME_TRY(note_replaced(warnings));
  BOOST_OUTCOME_TRY(check_part());
  BOOST_OUTCOME_TRY(check_options());
  facts.emplace(options.folder, std::move(config), architecture.values);
  const bool is_draft = options.part == ModelPart::kDraft;
  json::object option{{"draft_head", is_draft || options.draft_head == DraftHead::kInclude},
                      {"draft_head_only", is_draft},
                      {"dense_modules", options.dense_modules},
                      {"class", class_name},
                      {"folder", folder_name(asked)}};
  facts->set("option", option);
  BOOST_OUTCOME_TRY(choose_adapter(std::move(option)));
  BOOST_OUTCOME_TRY(read_preprocessor());
  BOOST_OUTCOME_TRY(read_target());
  BOOST_OUTCOME_TRY(check_refusals());
  return choose_name(architecture, *facts);
}

Status ChosenMap::read_config() {
  const std::string& name = architecture.config;
  if (!is_folder(options.folder)) return no_checkpoint_folder(options.folder);
  BOOST_OUTCOME_TRY(refuse_adapter());
  const std::string path = config_file().string();
  if (const std::string_view kind = kind_of_path(path); !is_file(path) && !kind.empty())
    return input_error(path, fmt::format("is {}, not a file", kind), "replace it with the checkpoint's file");
  if (!is_file(path)) return no_config(name);
  BOOST_OUTCOME_TRY(const json::value config, read_checkpoint_json(path));
  if (!config.is_object()) return input_error(path, "is not a JSON object");
  stored_config = config.get_object();
  config_path = path;
  return ok();
}

// Trainers may save config.json beside an adapter.
Status ChosenMap::refuse_adapter() const {
  const std::string adapter = file("adapter_config.json");
  if (!is_file(adapter)) return ok();
  if (is_file(config_file().string())) {
    BOOST_OUTCOME_TRY(const bool has_torch_files, has_file(options.folder, "pytorch_model", ".bin"));
    BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(options.folder));
    const auto is_adapter = [](const fs::path path) { return is_adapter_file(path.filename().string()); };
    const auto is_weights = [&](const fs::path path) {
      return path.extension() == ".safetensors" && !is_adapter(path);
    };
    if (has_torch_files || std::ranges::any_of(paths, is_weights) || std::ranges::none_of(paths, is_adapter))
      return ok();
  }
  const auto config = read_checkpoint_json(adapter);
  const auto base = config ? json_string(config.value(), "base_model_name_or_path") : std::nullopt;
  const std::string of_base = fmt::format("to convert its base model{}, give that model's folder",
                                          base ? fmt::format(" ({})", quoted_name(*base)) : "");
  return with_options(input_error(options.folder, "is a LoRA adapter, not a model",
                                  fmt::format("to convert it: source: {{lora: {{adapter: {}, base: FOLDER}}}}; {}",
                                              options.folder, of_base)),
                      fmt::format("`ggufmill convert-lora {}` converts adapters; {}", options.folder, of_base));
}

// sentence-transformers saved models in a folder of their own, and reads such checkpoints still.
std::string ChosenMap::folder_of_model() const {
  const std::string list = file("modules.json");
  if (!is_file(list)) return {};
  const auto modules = read_checkpoint_json(list);
  const json::array* const all = modules ? modules.value().if_array() : nullptr;
  if (!all) return {};
  for (const json::value& module : *all) {
    const std::string path(json_string(module, "path").value_or(""));
    if (json_string(module, "type").value_or("").ends_with("Transformer") && !path.empty() && !leads_outside(path) &&
        is_file(file(path + "/config.json")))
      return path;
  }
  return {};
}

Error ChosenMap::no_config(const std::string& name) const {
  if (const std::string model = folder_of_model(); !model.empty())
    return input_error(
        options.folder,
        fmt::format("has no {}: modules.json names {} as the folder of the model", name, quoted_name(model)),
        fmt::format("move the files of {0}/{1} to {0}, where the other modules are found, too", options.folder, model));
  const std::string what = fmt::format("has no {}", name);
  if (name == "config.json" && is_file(file("params.json")))
    return with_options(
        input_error(options.folder, what,
                    "it has params.json, as in Mistral's own format; set `config: params.json` in the source"),
        "it has params.json, as in Mistral's own format: use " + option_reference("mistral_format", "true"));
  const std::string help =
      fmt::format("a checkpoint folder has {}, a tokenizer, and weights: *.safetensors or pytorch_model*.bin", name);
  return with_options(
      input_error(options.folder, what,
                  help + "; to read safetensors files alone, use `source: {diffusion: ...}` for a model of images or "
                         "video, and `source: {safetensors: ...}` for others"),
      help + "; the safetensors file of a model of images or video is read by `ggufmill quantize`");
}

Result<Architecture> ChosenMap::architecture_of_config() const {
  if (!class_name.empty()) return find_architecture(class_name, config_file().string(), options.part, added_);
  return find_architecture_without_class(options.folder, architecture.config, stored_config, added_);
}

Status ChosenMap::choose_other_map(const json::object& config) {
  Facts known(options.folder, config, architecture.values);
  known.set("option", json::object{{"dspark", options.dspark}, {"adapter", options.adapter}});
  for (const OtherMap& other : architecture.other_maps) {
    BOOST_OUTCOME_TRY(const bool holds, known.holds(other.when));
    if (!holds) continue;
    const bool is_added = names_file(architecture.file);
    BOOST_OUTCOME_TRY(Architecture chosen, read_architecture(other.map, {}, is_added ? added_ : no_added_maps()));
    architecture = std::move(chosen);
    return ok();
  }
  return ok();
}

// For one of the adapters in the checkpoint: finds it by its name.
Status ChosenMap::choose_adapter(json::object option) {
  if (!architecture.adapters) return ok();
  BOOST_OUTCOME_TRY(const json::value listed, facts->evaluate(*architecture.adapters));
  const json::array* const names = listed.if_array();
  if (!names || names->empty())
    return input_error(config_file().string(), "the checkpoint contains no adapters",
                       fmt::format("the map reads their names at {}", architecture.adapters->place));
  const auto found = std::ranges::find(*names, json::value(options.adapter));
  if (found == names->end()) {
    return error_at(options.origin, fmt::format("the checkpoint contains no adapter {}", quoted_name(options.adapter)),
                    fmt::format("set `adapter` in the source to one of {}", fmt::join(quoted_names(*names), ", ")));
  }
  option["adapter"] = options.adapter;
  option["adapter_index"] = found - names->begin();
  option["adapters"] = names->size();
  facts->set("option", std::move(option));
  return ok();
}

Status ChosenMap::check_part() const {
  if (architecture.part != described_part(options.part))
    return error_at(options.origin,
                    fmt::format("the map '{}' describes the {}, but the source asks for the {}", architecture.file,
                                part_name(architecture.part), part_name(options.part)),
                    fmt::format("ask for `part: {}`, or choose another map", part_name(architecture.part)));
  if (options.vocabulary_only && architecture.part != ModelPart::kText)
    return error_at(options.origin, "a projector has no vocabulary", "omit vocabulary_only, or `part: projector`");
  return ok();
}

// Sets `preprocessor`: the members of preprocessor_config.json and processor_config.json, whose nested settings
// replace those at the top, and the second file those of the first.
Status ChosenMap::read_preprocessor() {
  constexpr std::pair<std::string_view, std::string_view> kFiles[] = {{"preprocessor_config.json", "media_proc_cfg"},
                                                                      {"processor_config.json", "image_processor"}};
  if (architecture.part != ModelPart::kProjector) return ok();
  json::object merged;
  const auto merge = [&](const json::object& from) {
    for (const auto& member : from) merged[member.key()] = member.value();
  };
  for (const auto& [name, nested] : kFiles) {
    const auto path = facts->file(name);
    if (!path) continue;
    BOOST_OUTCOME_TRY(const json::value settings, read_checkpoint_json(path->string()));
    if (!settings.is_object()) return input_error(path->string(), "is not a JSON object");
    merge(settings.get_object());
    const json::value* const inner = settings.get_object().if_contains(nested);
    if (inner && inner->is_object()) merge(inner->get_object());
  }
  facts->set("preprocessor", std::move(merged), facts->folder() / kFiles[0].first);
  return ok();
}

// For a draft of another model: sets `target`, that model's config.json, and what its tokenizer is read from.
Status ChosenMap::read_target() {
  if (architecture.target_tokenizer == TargetTokenizer::kNone) {
    if (options.target.empty()) return ok();
    return error_at(options.origin,
                    fmt::format("the map '{}' does not describe a draft for another model", architecture.file),
                    "omit the target");
  }
  if (options.target.empty())
    return with_options(
        input_error(options.folder, "is a draft for another model, whose config.json and tokenizer are needed",
                    "give that model's folder: `target: FOLDER` in the source"),
        "give that model's folder: " + option_reference("target_model_dir", "FOLDER"));
  BOOST_OUTCOME_TRY(target_folder, pinned(options.target));
  if (!is_folder(target_folder)) return no_checkpoint_folder(target_folder);
  const std::string path = (fs::path(target_folder) / "config.json").string();
  if (!is_file(path)) return input_error(target_folder, "has no config.json");
  BOOST_OUTCOME_TRY(const json::value config, read_checkpoint_json(path));
  if (!config.is_object()) return input_error(path, "is not a JSON object");
  BOOST_OUTCOME_TRY(const std::string target_class, class_to_convert(config.get_object(), added_));
  if (architecture.target_tokenizer == TargetTokenizer::kModel) {
    BOOST_OUTCOME_TRY(target_map, find_architecture(target_class, path, ModelPart::kText, added_));
  }
  // The tokenizer's rules see the draft's config.json, as in convert_hf_to_gguf.py.
  target_facts.emplace(target_folder, facts->config(), tokenizer_map().values);
  target_facts->set("option", json::object{{"class", target_class}, {"folder", folder_name(target_folder)}});
  json::object target = Facts(target_folder, config.get_object(), no_values).config();
  const json::value *const tokens = facts->config().if_contains("vocab_size"), *const known =
                                                                                   target.if_contains("vocab_size");
  if (tokens && known && tokens->is_number() && known->is_number() && *tokens != *known)
    return input_error(config_file().string(),
                       fmt::format("the draft is for a vocabulary of {} tokens, but that of the target is {}",
                                   shown(*tokens), shown(*known)),
                       fmt::format("{} is not the model that it drafts for", target_folder));
  BOOST_OUTCOME_TRY(CompletedConfig completed, with_class_defaults(target_folder, config.get_object()));
  facts->set("target", std::move(target), path);
  facts->set("completed_target", Facts(target_folder, std::move(completed.config), no_values).config(), path);
  facts->set("target_class", json::string(target_class));
  return ok();
}

Status ChosenMap::check_options() const {
  if (options.dspark && !architecture.dspark)
    return error_at(options.origin, fmt::format("checkpoints of '{}' contain no DSpark draft", architecture.name),
                    "omit dspark; for a folder that has only a draft, set `target` alone");
  if (!options.adapter.empty() && !architecture.adapters)
    return error_at(options.origin, fmt::format("checkpoints of '{}' contain no adapters", architecture.name),
                    "omit the adapter; an adapter in a folder of its own is read with `source: {lora: ...}`");
  if (options.dense_modules && !architecture.dense_modules)
    return error_at(
        options.origin,
        fmt::format("Dense modules cannot be included: llama.cpp does not support them in '{}'", architecture.name),
        fmt::format("omit {} (`dense_modules` in a pipeline file), and apply them to the embeddings yourself",
                    option_reference("sentence_transformers_dense_modules")));
  const bool is_draft = options.part == ModelPart::kDraft;
  const bool omits_draft = options.part == ModelPart::kText && options.draft_head == DraftHead::kLeaveOut;
  if (architecture.draft_head || !(is_draft || omits_draft)) return ok();
  return error_at(
      options.origin,
      fmt::format("{}: the map of '{}' has no layers that predict further tokens",
                  is_draft ? "no draft can be made" : "the draft head cannot be omitted", architecture.name),
      "omit the option; a map with such layers sets `draft_head: true`");
}

Status ChosenMap::check_refusals() const {
  for (const Refusal& refusal : architecture.refuses) {
    BOOST_OUTCOME_TRY(const bool holds, facts->holds(refusal.when));
    if (holds) return input_error(facts->file_behind(refusal.when, config_file()).string(), refusal.what, refusal.help);
  }
  return ok();
}

namespace {

// Moves the tensors, with `prefix` prepended to their names.
void add_tensors(Checkpoint checkpoint, const std::string& prefix, std::vector<NamedTensor>& into,
                 std::vector<SourceRef>& files) {
  for (const CheckpointFile& each : checkpoint.files) files.push_back(each.source);
  for (CheckpointTensor& tensor : checkpoint.tensors)
    into.push_back({prefix + tensor.name, tensor.values, false, false, tensor.values->type});
}

// Returns the id of the first token with the given text, as the tokenizer defines it.
std::optional<std::uint64_t> token_named(std::string_view text, const TokenizerMetadata& tokenizer) {
  const MetadataValue* tokens = tokenizer.metadata.find("tokenizer.ggml.tokens");
  const MetadataValue wanted = metadata_string(text);
  std::optional<std::uint64_t> found;
  if (!tokens) return found;
  std::uint64_t id = 0;
  for_each_item(*tokens, [&](const MetadataValue& token) {
    if (token == wanted) found = id;
    ++id;
    return !found;
  });
  return found;
}

}  // namespace

Status ChosenMap::read_modules(std::vector<std::string>& warnings) {
  BOOST_OUTCOME_TRY(dense_modules_, read_dense_modules(architecture, options.dense_modules, *facts, warnings));
  return ok();
}

// Those that are missing are not added: the rules report what they need.
Status ChosenMap::add_target_tensors(CheckpointFiles& files, OpenedTensors& opened) const {
  if (!architecture.target_weights || target_folder.empty()) return ok();
  BOOST_OUTCOME_TRY(const bool are_used, facts->holds(architecture.target_weights->when));
  if (!are_used) return ok();
  BOOST_OUTCOME_TRY(Checkpoint target, files.weights(target_folder, target_map.weights));
  const auto is_wanted = [&](const std::string& name) {
    return std::ranges::count(architecture.target_weights->names, name) > 0;
  };
  std::erase_if(target.tensors, [&](const CheckpointTensor& tensor) { return !is_wanted(tensor.name); });
  std::ranges::move(target.warnings, std::back_inserter(opened.notes));
  add_tensors(std::move(target), "target/", opened.further, opened.files);
  return ok();
}

Result<OpenedTensors> ChosenMap::open_tensors(CheckpointFiles& files) {
  OpenedTensors opened;
  BOOST_OUTCOME_TRY(Checkpoint checkpoint, files.weights(options.folder, architecture.weights));
  opened.notes = std::move(checkpoint.warnings);
  add_tensors(std::move(checkpoint), "", opened.own, opened.files);
  for (const std::string& name : architecture.further_weights)
    if (const fs::path path = file(name); is_file(path)) {
      BOOST_OUTCOME_TRY(Checkpoint more, files.safetensors(path.string()));
      const fs::path inside = fs::path(name).parent_path();
      add_tensors(std::move(more), (inside.empty() ? fs::path(name).stem() : inside).string() + "/", opened.further,
                  opened.files);
    }
  BOOST_OUTCOME_TRY(add_target_tensors(files, opened));
  for (const DenseModule& module : dense_modules_)
    if (!module.name.empty()) {
      BOOST_OUTCOME_TRY(add_dense_weights(module, *facts, files, opened.further, opened.files));
    }
  BOOST_OUTCOME_TRY(std::vector<std::string> notes, remove_trainer_names(architecture, *facts, opened.own));
  std::ranges::move(notes, std::back_inserter(opened.notes));
  std::vector<std::string> names;
  std::unordered_map<std::string, ExpressionRef> values;
  for (const auto* part : {&opened.own, &opened.further})
    for (const NamedTensor& tensor : *part) {
      names.push_back(tensor.name);
      values.emplace(tensor.name, tensor.values);
    }
  facts->set_tensors(
      std::move(names),
      [values](const std::string& name, std::optional<std::uint64_t> row) {
        const Expression& tensor = *values.at(name);
        const std::uint64_t columns = tensor.shape.dims[0];
        auto read = row ? read_small_values(tensor, *row * columns, columns) : read_small_values(tensor);
        if (!read) read.error().what = fmt::format("tensor {}: {}", quoted_name(name), read.error().what);
        return read;
      },
      [values](const std::string& name) { return values.at(name)->shape.rows(); },
      [values](const std::string& name) { return values.at(name)->shape.columns(); },
      [values](const std::string& name) {
        auto read = read_small_integers(*values.at(name));
        if (!read) read.error().what = fmt::format("tensor {}: {}", quoted_name(name), read.error().what);
        return read;
      });
  return opened;
}

fs::path ChosenMap::tokenizer_folder() {
  const std::string& within = tokenizer_map().tokenizer.folder;
  return within.empty() ? tokenizer_facts().folder() : tokenizer_facts().folder() / within;
}

void ChosenMap::set_tokenizer(const TokenizerMetadata& tokenizer) {
  for (Facts* const each : {&*facts, &tokenizer_facts()}) {
    each->set("tokenizer_entries", tokenizer.entries);
    each->set_tokens([&tokenizer](std::string_view text) { return token_named(text, tokenizer); });
    each->set("tokenizer_reader", json::string(tokenizer_reader_name(tokenizer.reader)));
  }
}

// Reports that an added map is used for a class that a built-in one serves, or for the name of a built-in one.
Status ChosenMap::note_replaced(std::vector<std::string>& warnings) const {
  if (!names_file(architecture.file)) return ok();
  if (!options.architecture.empty()) {
    if (built_in_named(options.architecture))
      warnings.push_back(
          fmt::format("{}: used instead of the built-in map '{}'", architecture.file, options.architecture));
    return ok();
  }
  if (class_name.empty()) return ok();
  BOOST_OUTCOME_TRY(const std::string replaced, built_in_map_for(class_name, options.part));
  if (!replaced.empty())
    warnings.push_back(
        fmt::format("{}: used for '{}' instead of the built-in map '{}'", architecture.file, class_name, replaced));
  return ok();
}

PreTokenizers ChosenMap::pre_tokenizers() const {
  PreTokenizers names = tokenizer_map().pre_tokenizers;
  names.insert(added_.pre_tokenizers().begin(), added_.pre_tokenizers().end());
  return names;
}

std::vector<std::string> quoted_names(const json::array& names) {
  std::vector<std::string> quoted;
  for (const json::value& name : names)
    quoted.push_back(quoted_name(name.is_string() ? std::string(name.get_string()) : shown(name)));
  return quoted;
}

}  // namespace ggufmill::huggingface

namespace ggufmill {

Error no_checkpoint_folder(const std::string& path) {
  if (path.ends_with(".gguf") && is_file(path))
    return input_error(path, "is a GGUF file, not a checkpoint",
                       fmt::format("it needs no conversion; to read it: source: {{gguf: {0}}}, or `ggufmill quantize "
                                   "{0} OUT.gguf Q4_K_M`",
                                   path));
  const std::string_view kind = kind_of_path(path);
  std::string help =
      "a checkpoint folder has config.json, a tokenizer, and weights: *.safetensors or pytorch_model*.bin";
  const auto is_name = [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.find('/') == part.npos;
  };
  const std::size_t slash = path.find('/');
  if (kind.empty() && slash != path.npos && is_name(std::string_view(path).substr(0, slash)) &&
      is_name(std::string_view(path).substr(slash + 1)))
    help = fmt::format("for a model on the hub, use hf://{}; otherwise give the path of the checkpoint folder", path);
  return input_error(path, kind.empty() ? "the folder does not exist" : fmt::format("is {}, not a folder", kind), help);
}

}  // namespace ggufmill
