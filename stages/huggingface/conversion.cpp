#include "stages/huggingface/conversion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <unordered_map>

#include "pipeline/core/adapter.h"
#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/adapter_conversion.h"
#include "stages/huggingface/checkpoint/adapter.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/quantized_checkpoint.h"
#include "stages/huggingface/checkpoint/torch_file.h"
#include "stages/huggingface/general.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/metadata_rules.h"
#include "stages/huggingface/map/model_type.h"
#include "stages/huggingface/map/tensor_map.h"

namespace ggufmill {
namespace huggingface {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

struct FileType {
  std::string_view tensor_type;
  std::uint32_t number;  // general.file_type
};
// Indexed by OutType.
constexpr FileType kFileTypes[] = {{"", 0},     {"F32", 0},    {"F16", 1},   {"BF16", 32},
                                   {"Q8_0", 7}, {"TQ1_0", 36}, {"TQ2_0", 37}};
static_assert(std::size(kFileTypes) == std::size(kOutTypeWords));
constexpr std::uint32_t kFileTypeMxfp4 = 38, kFileTypeNvfp4 = 39;

// Of checkpoints that are stored as GGML blocks. Source: llama_ftype in include/llama.h of llama.cpp (MIT).
constexpr FileType kBlockFileTypes[] = {{"Q8_0", 7},   {"IQ2_XXS", 19}, {"IQ2_XS", 20},
                                        {"IQ1_S", 24}, {"IQ2_S", 28},   {"IQ1_M", 31}};

// Returns null if no file type is named like the type of these blocks.
const FileType* file_type_with(const TypeInfo& blocks) {
  const auto found = std::ranges::find(kBlockFileTypes, blocks.name, &FileType::tensor_type);
  return found == std::end(kBlockFileTypes) ? nullptr : &*found;
}

const FileType& file_type_of(OutType type) { return kFileTypes[static_cast<std::size_t>(type)]; }

// The files of a checkpoint. Each is opened once, so that several models made from it share their sources.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(const CheckpointOpener& open) : open_(open) {}

  Result<Checkpoint> safetensors(const std::string& path) {
    return once(safetensors_, path, [&] { return open_(path); });
  }
  Result<std::optional<Checkpoint>> torch(const std::string& folder) {
    return once(torch_, folder, [&] { return read_torch_checkpoint(folder); });
  }
  Result<SourceRef> other(const std::string& path) {
    return once(others_, path, [&]() -> Result<SourceRef> {
      BOOST_OUTCOME_TRY(const auto opened, open_source(path));
      return opened->describe();
    });
  }

 private:
  template <class Value, class Open>
  static Result<Value> once(std::map<std::string, Value>& known, const std::string& path, const Open& open) {
    if (const auto found = known.find(path); found != known.end()) return found->second;
    BOOST_OUTCOME_TRY(Value value, open());
    return known.emplace(path, std::move(value)).first->second;
  }

  const CheckpointOpener& open_;
  std::map<std::string, Checkpoint> safetensors_;
  std::map<std::string, std::optional<Checkpoint>> torch_;
  std::map<std::string, SourceRef> others_;
};

// Returns BF16 or F16, depending on which of them the first such tensor of two or more dimensions has; F16 by default.
OutType guess(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.values->shape.rank < 2) continue;
    if (tensor.values->type->name == "BF16") return OutType::kBf16;
    if (tensor.values->type->name == "F16") return OutType::kF16;
  }
  return OutType::kF16;
}

// Returns the number in "blk.17.ffn_norm.weight"; 0 if there is none.
std::uint64_t layer_of(std::string_view name) {
  std::uint64_t layer = 0;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

std::vector<std::string> quoted_names(const json::array& names) {
  std::vector<std::string> quoted;
  for (const json::value& name : names)
    quoted.push_back(quoted_name(name.is_string() ? std::string(name.get_string()) : shown(name)));
  return quoted;
}

class Conversion {
 public:
  // `adapter`: converted instead of the checkpoint, which is its base.
  Conversion(const SourceOptions& options, CheckpointFiles& files, const Adapter* adapter = nullptr)
      : options_(options), files_(files), adapter_(adapter) {}

  Result<ConvertedCheckpoint> run() {
    const std::string asked = options_.folder;
    BOOST_OUTCOME_TRY(options_.folder, pinned(asked));
    if (!options_.architecture.empty()) {
      BOOST_OUTCOME_TRY(architecture_, named_architecture(options_.architecture, options_.origin));
    }
    if (!options_.config.empty()) architecture_.config = options_.config;
    BOOST_OUTCOME_TRY(read_config());
    json::object config = config_;
    if (options_.class_defaults && architecture_.config == "config.json") {
      BOOST_OUTCOME_TRY(CompletedConfig completed, with_class_defaults(options_.folder, config_));
      if (completed.is_refused)
        warn(
            fmt::format("{}: transformers rejects a value for model type '{}', so the file is read as is, without "
                        "class defaults, as convert_hf_to_gguf.py does",
                        config_file().string(), std::string_view(config_.at("model_type").as_string())));
      config = std::move(completed.config);
    }
    if (options_.part == ModelPart::kProjector) {
      class_ = projector_class(config);
    } else {
      BOOST_OUTCOME_TRY(class_, class_to_convert(config));
    }
    if (options_.architecture.empty()) {
      BOOST_OUTCOME_TRY(architecture_, architecture_of_config());
      BOOST_OUTCOME_TRY(choose_other_map(config));
    }
    BOOST_OUTCOME_TRY(check_part());
    BOOST_OUTCOME_TRY(check_options());
    facts_.emplace(options_.folder, std::move(config), architecture_.values);
    const bool is_draft = options_.part == ModelPart::kDraft;
    json::object option{{"draft_head", is_draft || options_.draft_head == DraftHead::kInclude},
                        {"draft_head_only", is_draft},
                        {"dense_modules", options_.dense_modules},
                        {"class", class_},
                        {"folder", folder_name(asked)}};
    facts_->set("option", option);
    BOOST_OUTCOME_TRY(choose_adapter(std::move(option)));
    BOOST_OUTCOME_TRY(read_preprocessor());
    BOOST_OUTCOME_TRY(read_target());
    BOOST_OUTCOME_TRY(check_refusals());
    BOOST_OUTCOME_TRY(choose_name(architecture_, *facts_));
    if (has_tokenizer()) {
      BOOST_OUTCOME_TRY(read_vocabulary());
    }
    out_type_ = options_.out_type;
    BOOST_OUTCOME_TRY(adapter_ ? read_pairs() : read_tensors());
    BOOST_OUTCOME_TRY(adapter_ ? add_adapter_metadata() : add_metadata());
    if (has_tokenizer()) {
      BOOST_OUTCOME_TRY(add_tokenizer());
    }
    BOOST_OUTCOME_TRY(check_texts());
    BOOST_OUTCOME_TRY(add_files());
    BOOST_OUTCOME_TRY(warn_of_adapters());
    note_parts();
    return std::move(result_);
  }

 private:
  fs::path file(std::string_view name) const { return fs::path(options_.folder) / name; }

  void warn(std::string warning) { result_.model.warnings.push_back(std::move(warning)); }

  fs::path config_file() const { return file(architecture_.config); }

  Status read_config() {
    const std::string& name = architecture_.config;
    if (!is_folder(options_.folder)) return no_checkpoint_folder(options_.folder);
    const std::string path = config_file().string();
    if (const std::string_view kind = kind_of_path(path); !is_file(path) && !kind.empty())
      return input_error(path, fmt::format("is {}, not a file", kind), "replace it with the checkpoint's file");
    if (!is_file(path)) return no_config(name);
    BOOST_OUTCOME_TRY(const json::value config, read_checkpoint_json(path));
    if (!config.is_object()) return input_error(path, "is not a JSON object");
    config_ = config.get_object();
    result_.model.notes.set(notes::kCheckpointConfig, path);
    result_.model.notes.set(notes::kCheckpointArchitecture, options_.architecture);
    return ok();
  }

  Error no_config(const std::string& name) const {
    if (const std::string adapter = file("adapter_config.json"); is_file(adapter)) {
      const auto config = read_checkpoint_json(adapter);
      const auto base = config ? json_string(config.value(), "base_model_name_or_path") : std::nullopt;
      return input_error(
          options_.folder, "is a LoRA adapter, not a model",
          fmt::format("`ggufmill convert-lora` converts adapters; to convert its base model{}, give that "
                      "model's folder",
                      base ? fmt::format(" ({})", quoted_name(*base)) : ""));
    }
    std::string help = fmt::format(
        "a checkpoint folder has {}, a tokenizer, and weights: *.safetensors or pytorch_model*.bin; to read "
        "safetensors files alone, use `source: {{diffusion: ...}}` for a model of images or video, and "
        "`source: {{safetensors: ...}}` for others",
        name);
    if (name == "config.json" && is_file(file("params.json")))
      help =
          "it has params.json, as in Mistral's own format; set `config: params.json` in the source, or use "
          "--mistral-format";
    return input_error(options_.folder, fmt::format("has no {}", name), help);
  }

  Result<Architecture> architecture_of_config() const {
    if (!class_.empty()) return find_architecture(class_, config_file().string(), options_.part);
    return find_architecture_without_class(options_.folder, architecture_.config, config_);
  }

  Status choose_other_map(const json::object& config) {
    Facts facts(options_.folder, config, architecture_.values);
    facts.set("option", json::object{{"dspark", options_.dspark}, {"adapter", options_.adapter}});
    for (const OtherMap& other : architecture_.other_maps) {
      BOOST_OUTCOME_TRY(const bool holds, facts.holds(other.when));
      if (!holds) continue;
      BOOST_OUTCOME_TRY(Architecture chosen, read_architecture(other.map));
      architecture_ = std::move(chosen);
      return ok();
    }
    return ok();
  }

  bool has_tokenizer() const { return architecture_.part == ModelPart::kText && !adapter_ && !architecture_.adapters; }

  // For one of the adapters in the checkpoint: finds it by its name.
  Status choose_adapter(json::object option) {
    if (!architecture_.adapters) return ok();
    BOOST_OUTCOME_TRY(const json::value listed, facts_->evaluate(*architecture_.adapters));
    const json::array* const names = listed.if_array();
    if (!names || names->empty())
      return input_error(config_file().string(), "the checkpoint contains no adapters",
                         fmt::format("the map reads their names at {}", architecture_.adapters->place));
    const auto found = std::ranges::find(*names, json::value(options_.adapter));
    if (found == names->end()) {
      return error_at(options_.origin,
                      fmt::format("the checkpoint contains no adapter {}", quoted_name(options_.adapter)),
                      fmt::format("set `adapter` in the source to one of {}", fmt::join(quoted_names(*names), ", ")));
    }
    option["adapter"] = options_.adapter;
    option["adapter_index"] = found - names->begin();
    option["adapters"] = names->size();
    facts_->set("option", std::move(option));
    return ok();
  }

  Status check_part() const {
    if (architecture_.part != described_part(options_.part))
      return error_at(options_.origin,
                      fmt::format("the map '{}' describes the {}, but the source asks for the {}", architecture_.file,
                                  part_name(architecture_.part), part_name(options_.part)),
                      fmt::format("ask for `part: {}`, or choose another map", part_name(architecture_.part)));
    if (options_.vocabulary_only && architecture_.part != ModelPart::kText)
      return error_at(options_.origin, "a projector has no vocabulary", "omit vocabulary_only, or `part: projector`");
    return ok();
  }

  // Sets `preprocessor`: the members of preprocessor_config.json and processor_config.json, whose nested settings
  // replace those at the top, and the second file those of the first.
  Status read_preprocessor() {
    constexpr std::pair<std::string_view, std::string_view> kFiles[] = {{"preprocessor_config.json", "media_proc_cfg"},
                                                                        {"processor_config.json", "image_processor"}};
    if (architecture_.part != ModelPart::kProjector) return ok();
    json::object merged;
    const auto merge = [&](const json::object& from) {
      for (const auto& member : from) merged[member.key()] = member.value();
    };
    for (const auto& [name, nested] : kFiles) {
      const auto path = facts_->file(name);
      if (!path) continue;
      BOOST_OUTCOME_TRY(const json::value settings, read_checkpoint_json(path->string()));
      if (!settings.is_object()) return input_error(path->string(), "is not a JSON object");
      merge(settings.get_object());
      const json::value* const inner = settings.get_object().if_contains(nested);
      if (inner && inner->is_object()) merge(inner->get_object());
    }
    facts_->set("preprocessor", std::move(merged), facts_->folder() / kFiles[0].first);
    return ok();
  }

  // For a draft of another model: sets `target`, that model's config.json, and what its tokenizer is read from.
  Status read_target() {
    if (architecture_.target_tokenizer == TargetTokenizer::kNone) {
      if (options_.target.empty()) return ok();
      return error_at(options_.origin,
                      fmt::format("the map '{}' does not describe a draft for another model", architecture_.file),
                      "omit the target");
    }
    if (options_.target.empty())
      return input_error(options_.folder, "is a draft for another model, whose config.json and tokenizer are needed",
                         "give that model's folder: `target: FOLDER` in the source, or --target-model-dir FOLDER");
    BOOST_OUTCOME_TRY(target_, pinned(options_.target));
    if (!is_folder(target_)) return no_checkpoint_folder(target_);
    const std::string path = (fs::path(target_) / "config.json").string();
    if (!is_file(path)) return input_error(target_, "has no config.json");
    BOOST_OUTCOME_TRY(const json::value config, read_checkpoint_json(path));
    if (!config.is_object()) return input_error(path, "is not a JSON object");
    BOOST_OUTCOME_TRY(const std::string target_class, class_to_convert(config.get_object()));
    if (architecture_.target_tokenizer == TargetTokenizer::kModel) {
      BOOST_OUTCOME_TRY(target_map_, find_architecture(target_class, path));
    }
    // The tokenizer's rules see the draft's config.json, as in convert_hf_to_gguf.py.
    target_facts_.emplace(target_, facts_->config(), tokenizer_map().values);
    target_facts_->set("option", json::object{{"class", target_class}, {"folder", folder_name(target_)}});
    json::object target = Facts(target_, config.get_object(), no_values_).config();
    const json::value *const tokens = facts_->config().if_contains("vocab_size"), *const known =
                                                                                      target.if_contains("vocab_size");
    if (tokens && known && tokens->is_number() && known->is_number() && *tokens != *known)
      return input_error(config_file().string(),
                         fmt::format("the draft is for a vocabulary of {} tokens, but that of the target is {}",
                                     shown(*tokens), shown(*known)),
                         fmt::format("{} is not the model that it drafts for", target_));
    facts_->set("target", std::move(target), path);
    return ok();
  }

  const Architecture& tokenizer_map() const {
    return architecture_.target_tokenizer == TargetTokenizer::kModel ? target_map_ : architecture_;
  }
  // The facts that the tokenizer's rules see.
  Facts& tokenizer_facts() { return target_facts_ ? *target_facts_ : *facts_; }

  Status check_options() const {
    if (options_.dspark && !architecture_.dspark)
      return error_at(options_.origin, fmt::format("checkpoints of '{}' contain no DSpark draft", architecture_.name),
                      "omit dspark; for a folder that has only a draft, set `target` alone");
    if (!options_.adapter.empty() && !architecture_.adapters)
      return error_at(options_.origin, fmt::format("checkpoints of '{}' contain no adapters", architecture_.name),
                      "omit the adapter; an adapter in a folder of its own is read with `source: {lora: ...}`");
    if (options_.dense_modules && !architecture_.dense_modules)
      return error_at(options_.origin,
                      fmt::format("dense_modules is not possible: the map of '{}' has none", architecture_.name),
                      "omit it; a map with such modules sets `dense_modules: true`");
    const bool is_draft = options_.part == ModelPart::kDraft;
    const bool omits_draft = options_.part == ModelPart::kText && options_.draft_head == DraftHead::kLeaveOut;
    if (architecture_.draft_head || !(is_draft || omits_draft)) return ok();
    return error_at(
        options_.origin,
        fmt::format("{}: the map of '{}' has no layers that predict further tokens",
                    is_draft ? "no draft can be made" : "the draft head cannot be omitted", architecture_.name),
        "omit the option; a map with such layers sets `draft_head: true`");
  }

  Status check_refusals() const {
    for (const Refusal& refusal : architecture_.refuses) {
      BOOST_OUTCOME_TRY(const bool holds, facts_->holds(refusal.when));
      if (holds)
        return input_error(facts_->file_behind(refusal.when, config_file()).string(), refusal.what, refusal.help);
    }
    return ok();
  }

  // Runs first because some maps truncate the embedding to the number of tokens.
  Status read_vocabulary() {
    BOOST_OUTCOME_TRY(TokenizerOptions options, tokenizer_options(tokenizer_map().tokenizer, tokenizer_facts()));
    if (options_.pre) options.pre = *options_.pre;
    BOOST_OUTCOME_TRY(tokenizer_, read_tokenizer(tokenizer_facts().folder(), options));
    for (Facts* const facts : {&*facts_, &tokenizer_facts()}) {
      facts->set("tokenizer_entries", tokenizer_.entries);
      facts->set_tokens([this](std::string_view text) { return token_named(text); });
      facts->set("tokenizer_reader", json::string(tokenizer_reader_name(tokenizer_.reader)));
    }
    return ok();
  }

  // Returns the id of the first token with the given text, as the tokenizer defines it.
  std::optional<std::uint64_t> token_named(std::string_view text) const {
    const MetadataValue* tokens = tokenizer_.metadata.find("tokenizer.ggml.tokens");
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

  // Opens the tensors under the names that the map's rules see, and resolves `auto` to a type based on the model's own
  // tensors.
  Result<std::vector<NamedTensor>> open_tensors() {
    std::vector<NamedTensor> tensors, further;
    BOOST_OUTCOME_TRY(Checkpoint checkpoint, open_weights());
    add_tensors(std::move(checkpoint), "", tensors);
    for (const std::string& name : architecture_.further_weights)
      if (const fs::path path = file(name); is_file(path)) {
        BOOST_OUTCOME_TRY(Checkpoint more, files_.safetensors(path.string()));
        add_tensors(std::move(more), fs::path(name).parent_path().string() + "/", further);
      }
    std::vector<std::string> names;
    std::unordered_map<std::string, ExpressionRef> values;
    for (const auto* part : {&tensors, &further})
      for (const NamedTensor& tensor : *part) {
        names.push_back(tensor.name);
        values.emplace(tensor.name, tensor.values);
      }
    facts_->set_tensors(
        std::move(names),
        [values](const std::string& name, std::optional<std::uint64_t> row) {
          const Expression& tensor = *values.at(name);
          const std::uint64_t columns = tensor.shape.dims[0];
          auto read = row ? read_small_values(tensor, *row * columns, columns) : read_small_values(tensor);
          if (!read) read.error().what = fmt::format("tensor {}: {}", quoted_name(name), read.error().what);
          return read;
        },
        [values](const std::string& name) { return values.at(name)->shape.rows(); });
    BOOST_OUTCOME_TRY(tensors, rename_tensors(architecture_, *facts_, std::move(tensors)));
    BOOST_OUTCOME_TRY(further, rename_tensors(architecture_, *facts_, std::move(further)));
    if (out_type_ == OutType::kAuto) out_type_ = guess(tensors);
    std::ranges::move(further, std::back_inserter(tensors));
    return tensors;
  }

  // Appends the tensors, with `prefix` prepended to their names.
  void add_tensors(Checkpoint checkpoint, const std::string& prefix, std::vector<NamedTensor>& into) {
    for (const CheckpointFile& each : checkpoint.files) result_.model.files.push_back(each.source);
    for (CheckpointTensor& tensor : checkpoint.tensors)
      into.push_back({prefix + tensor.name, tensor.values, false, false, tensor.values->type});
  }

  // Prefers safetensors to PyTorch files.
  Result<Checkpoint> open_weights() const {
    BOOST_OUTCOME_TRY(const bool has_safetensors,
                      has_file(architecture_.weights.empty() ? "model" : architecture_.weights, ".safetensors"));
    if (!has_safetensors) {
      BOOST_OUTCOME_TRY(std::optional<Checkpoint> checkpoint, files_.torch(options_.folder));
      if (checkpoint) return std::move(*checkpoint);
    }
    return files_.safetensors(weights());
  }

  // Returns the folder, or the single file or index with the map's name.
  std::string weights() const {
    if (architecture_.weights.empty()) return options_.folder;
    const fs::path index = file(architecture_.weights + ".safetensors.index.json");
    return (is_file(index) ? index : file(architecture_.weights + ".safetensors")).string();
  }

  Result<bool> has_file(std::string_view beginning, std::string_view ending) const {
    BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(options_.folder));
    return std::ranges::any_of(paths, [&](const fs::path path) {
      const std::string name = path.filename();
      return name.starts_with(beginning) && name.ends_with(ending);
    });
  }

  Status read_tensors() {
    if (options_.vocabulary_only) {
      BOOST_OUTCOME_TRY(const bool has_safetensors, has_file("", ".safetensors"));
      BOOST_OUTCOME_TRY(const bool has_torch_files, has_file("pytorch_model", ".bin"));
      if (!has_safetensors && !has_torch_files) {
        if (out_type_ == OutType::kAuto) out_type_ = OutType::kF16;
        return ok();
      }
    }
    BOOST_OUTCOME_TRY(auto tensors, open_tensors());
    // The metadata and the file type describe the weights even if only the vocabulary is written.
    if (options_.vocabulary_only) return ok();
    const Blocks blocks = options_.out_type == OutType::kAuto ? Blocks::kKeep : Blocks::kDecode;
    BOOST_OUTCOME_TRY(DecodedCheckpoint decoded,
                      decode_checkpoint(facts_->folder(), facts_->config(), std::move(tensors), blocks));
    file_type_ = decoded.is_nvfp4 ? kFileTypeNvfp4 : decoded.is_mxfp4 || decoded.has_mxfp4 ? kFileTypeMxfp4 : 0;
    is_repacked_ = decoded.has_mxfp4 && !decoded.is_nvfp4;
    if (decoded.block_type && blocks == Blocks::kKeep) block_file_type_ = file_type_with(*decoded.block_type);
    BOOST_OUTCOME_TRY(auto mapped, map_tensors(architecture_, *facts_, decoded.tensors, options_.folder));
    BOOST_OUTCOME_TRY(check_weights(mapped));
    if (options_.fuse_gate_up_experts) {
      const std::size_t before = mapped.size();
      BOOST_OUTCOME_TRY(fuse(mapped));
      if (mapped.size() == before) warn("fuse_gate_up_experts has no effect: no layer has gate and up experts");
    }
    if (options_.fp8_as_q8_0 && std::ranges::none_of(mapped, &MappedTensor::was_fp8))
      warn("fp8_as_q8_0 has no effect: no tensor is stored in 8-bit floats");
    for (MappedTensor& tensor : mapped) {
      BOOST_OUTCOME_TRY(add_tensor(std::move(tensor)));
    }
    return ok();
  }

  // config.json can describe a projector or a draft whose weights were removed from the checkpoint. A draft shares the
  // tensors outside of layers with the text model.
  Status check_weights(const std::vector<MappedTensor>& tensors) const {
    if (options_.part == ModelPart::kText) return ok();
    const bool is_draft = options_.part == ModelPart::kDraft;
    const auto is_own = [&](const MappedTensor& tensor) {
      return !tensor.computed && (!is_draft || tensor.name.starts_with("blk."));
    };
    if (std::ranges::any_of(tensors, is_own)) return ok();
    return input_error(options_.folder, fmt::format("contains no weights of the {}", part_name(options_.part)),
                       fmt::format("{} describes it, but its tensors are missing: take them from the original "
                                   "checkpoint, or convert the text model alone",
                                   architecture_.config));
  }

  // Merges the experts' gate and up weights into one tensor, at the position of the later of the two.
  Status fuse(std::vector<MappedTensor>& tensors) const {
    constexpr std::string_view kGate = "ffn_gate_exps.", kUp = "ffn_up_exps.";
    const auto place = [&](std::string name, std::string_view from, std::string_view to) {
      name.replace(name.find(from), from.size(), to);
      return std::ranges::find(tensors, name, &MappedTensor::name) - tensors.begin();
    };
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string name = tensors[i].name;
      if (name.find(kGate) == std::string::npos || !name.ends_with(".weight")) continue;
      const auto up = static_cast<std::size_t>(place(name, kGate, kUp));
      if (up == tensors.size()) continue;
      if (!architecture_.fused_experts)
        return error_at(
            options_.origin,
            fmt::format(
                "fuse_gate_up_experts is not possible: llama.cpp has no tensor for fused gate and up experts in '{}'",
                architecture_.name),
            "omit the option");
      const std::size_t later = std::max(i, up), earlier = std::min(i, up);
      MappedTensor fused = tensors[later];
      fused.name.replace(fused.name.find(later == i ? kGate : kUp), (later == i ? kGate : kUp).size(),
                         "ffn_gate_up_exps.");
      BOOST_OUTCOME_TRY(fused.values, expressions::concat({tensors[i].values, tensors[up].values}, 1));
      tensors[later] = std::move(fused);
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(earlier));
      if (earlier <= i) --i;
    }
    return ok();
  }

  static std::string_view stored_type(const MappedTensor& tensor) {
    return tensor.was_fp8 ? "FP8" : tensor.stored ? tensor.stored->name : "";
  }

  // Returns the type that the reference gives to the tensor. add_tensor() falls back to F16 if the rows are not
  // whole blocks of that type.
  Result<const TypeInfo*> type_of(const MappedTensor& tensor) const {
    const TypeInfo& f32 = type_named("F32");
    const Expression& values = *tensor.values;
    if (values.type->is_quantized()) return values.type;                        // repacked, not converted
    if (values.type->name == "I64" && !values.as_extent()) return values.type;  // ids that an operation computed
    if (values.shape.rank <= 1 || tensor.name.ends_with("_norm.weight")) return &f32;
    const bool ternary = out_type_ == OutType::kTq1_0 || out_type_ == OutType::kTq2_0;
    const TypeInfo* type = nullptr;
    for (const TypeRule& rule : architecture_.types) {
      if ((rule.only_ternary && !ternary) || (rule.only_f16 && out_type_ != OutType::kF16)) continue;
      if (!rule.stored.empty() && rule.stored != stored_type(tensor)) continue;
      BOOST_OUTCOME_TRY(const bool fits, rule.match.matches(tensor.name));
      if (!fits) continue;
      if (rule.from_layer) {
        BOOST_OUTCOME_TRY(const std::uint64_t from, facts_->count(*rule.from_layer, "a number of layers"));
        if (layer_of(tensor.name) < from) continue;
      }
      type = rule.type ? rule.type : &type_named(file_type_of(out_type_).tensor_type);
      break;
    }
    if (!type && options_.fp8_as_q8_0 && tensor.was_fp8) type = &type_named("Q8_0");
    const auto ends_with = [&](std::string_view ending) { return tensor.name.ends_with(ending); };
    if (!type && !ends_with(".weight") && !ends_with(kLoraA) && !ends_with(kLoraB)) type = &f32;
    if (!type) type = &type_named(file_type_of(out_type_).tensor_type);
    return type;
  }

  Status add_tensor(MappedTensor mapped) {
    BOOST_OUTCOME_TRY(const TypeInfo* const wanted, type_of(mapped));
    const bool fits = mapped.values->shape.columns() % wanted->block_elements == 0;
    const TypeInfo* type = fits ? wanted : &type_named("F16");
    auto values = expressions::cast(std::move(mapped.values), *type);
    if (!values)
      return input_error(options_.folder, fmt::format("tensor {}: {}", quoted_name(mapped.name), values.error().what));
    Tensor tensor;
    tensor.name = std::move(mapped.name);
    tensor.expression = std::move(values).value();
    tensor.type = type;
    if (!fits) tensor.fallback_from = wanted;
    result_.model.tensors.push_back(std::move(tensor));
    return ok();
  }

  // Appends the tensors of the adapter: norms, and the matrices of each pair.
  Status read_pairs() {
    BOOST_OUTCOME_TRY(const bool has_weights, has_file("model", ".safetensors"));
    if (has_weights) {
      BOOST_OUTCOME_TRY(const Checkpoint base, open_weights());
      BOOST_OUTCOME_TRY(check_base(*adapter_, base, options_.folder));
    }
    if (out_type_ == OutType::kAuto)
      out_type_ = adapter_->stored && adapter_->stored->name == "BF16" ? OutType::kBf16 : OutType::kF16;
    BOOST_OUTCOME_TRY(auto mapped, map_adapter(*adapter_, architecture_, *facts_, result_.model.warnings));
    for (MappedTensor& tensor : mapped) {
      BOOST_OUTCOME_TRY(add_tensor(std::move(tensor)));
    }
    for (const SourceRef& each : adapter_->files) result_.model.files.push_back(each);
    return ok();
  }

  Status add_adapter_metadata() {
    Metadata& metadata = result_.model.metadata;
    metadata.set("general.architecture", metadata_string(architecture_.name));
    BOOST_OUTCOME_TRY(result_.name.id, set_adapter_metadata(*adapter_, count_weights(result_.model.tensors), metadata,
                                                            result_.model.warnings));
    metadata.set("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    result_.name.file_type = file_type_of(out_type_).tensor_type;
    return ok();
  }

  // Adds the metadata of an adapter that is part of a checkpoint: that of the map alone.
  Status add_stored_adapter_metadata() {
    result_.name.id.name = options_.adapter;
    result_.name.file_type = type_named("F32").name;
    return set_metadata(architecture_.metadata, architecture_, *facts_, result_.model.metadata);
  }

  Status add_metadata() {
    Metadata& metadata = result_.model.metadata;
    metadata.set("general.architecture", metadata_string(architecture_.name));
    BOOST_OUTCOME_TRY(set_metadata(architecture_.metadata_early, architecture_, *facts_, metadata));
    if (!options_.vocabulary_only) {
      BOOST_OUTCOME_TRY(set_metadata(architecture_.metadata_of_tensors, architecture_, *facts_, metadata));
    }
    if (architecture_.adapters) return add_stored_adapter_metadata();
    const WeightCount weights = count_weights(result_.model.tensors);
    BOOST_OUTCOME_TRY(General general, read_general({options_.folder, options_.model_name, options_.metadata_file,
                                                     architecture_.part == ModelPart::kProjector ? "mmproj" : "model"},
                                                    config_, weights));
    for (const MetadataEntry& entry : general.metadata.entries()) metadata.set(entry.key, entry.value);
    for (std::string& warning : general.warnings) warn(std::move(warning));
    const FileType& out = file_type_of(out_type_);
    const bool plain = out_type_ == OutType::kF32 || out_type_ == OutType::kF16 || out_type_ == OutType::kBf16;
    const std::uint32_t file_type = block_file_type_                             ? block_file_type_->number
                                    : (plain || is_repacked_) && file_type_ != 0 ? file_type_
                                                                                 : out.number;
    result_.name.id = std::move(general.id);
    result_.name.file_type = out.tensor_type;
    if (file_type == kFileTypeNvfp4) result_.name.file_type = type_named("NVFP4").name;
    // Only the experts have this type, as the file type's name indicates.
    if (block_file_type_) result_.name.file_type = block_file_type_->tensor_type;
    if (file_type == kFileTypeMxfp4) result_.name.file_type = std::string(type_named("MXFP4").name) + "_MOE";
    facts_->set("file_type", file_type);
    BOOST_OUTCOME_TRY(const std::uint64_t layers, facts_->count(architecture_.layers, "the number of layers"));
    facts_->set("layers", layers);
    BOOST_OUTCOME_TRY(set_metadata(architecture_.metadata, architecture_, *facts_, metadata));
    metadata.set("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    return ok();
  }

  Status add_tokenizer() {
    Metadata& metadata = result_.model.metadata;
    const Architecture& map = tokenizer_map();
    BOOST_OUTCOME_TRY(set_metadata(map.metadata_before_tokenizer, architecture_, tokenizer_facts(), metadata));
    for (const MetadataEntry& entry : tokenizer_.metadata.entries())
      metadata.set(whole_key(entry.key, architecture_.name), entry.value);
    for (std::string& warning : tokenizer_.warnings) warn(std::move(warning));
    BOOST_OUTCOME_TRY(check_embedding());
    BOOST_OUTCOME_TRY(set_metadata(map.metadata_after_tokenizer, architecture_, tokenizer_facts(), metadata));
    if (&map == &architecture_) return ok();
    return set_metadata(architecture_.metadata_after_tokenizer, architecture_, *facts_, metadata);
  }

  // JSON escapes can contain half of a surrogate pair, which has no UTF-8 encoding. RWKV tokens may be arbitrary
  // bytes.
  Status check_texts() const {
    for (const MetadataEntry& entry : result_.model.metadata.entries()) {
      bool good = is_utf8(as_string(entry.value).value_or(""));
      if (entry.key != "tokenizer.ggml.tokens" || tokenizer_.reader != TokenizerReader::kRwkv)
        for_each_item(entry.value,
                      [&](const MetadataValue& item) { return good = good && is_utf8(as_string(item).value_or("")); });
      if (!good)
        return input_error(options_.folder,
                           fmt::format("the value of {} is not UTF-8: it has an unpaired surrogate", entry.key),
                           "find the unpaired \\ud800 to \\udfff in the JSON files and remove it");
    }
    return ok();
  }

  // Checks that the embedding has one row per token and as many columns as config.json specifies. Models that do not
  // generate text may read narrower features.
  Status check_embedding() {
    const auto embedding = std::ranges::find(result_.model.tensors, "token_embd.weight", &Tensor::name);
    if (embedding == result_.model.tensors.end()) return ok();
    const std::uint64_t rows = embedding->shape().rows(), columns = embedding->shape().columns();
    const MetadataValue* length = result_.model.metadata.find(architecture_.name + ".features_length");
    if (!length) length = result_.model.metadata.find(architecture_.name + ".embedding_length");
    if (length && as_unsigned(*length).value_or(0) != columns)
      return input_error(
          config_file().string(),
          fmt::format("the hidden size is {}, but the embedding (token_embd.weight) has rows of {} values",
                      describe(*length), columns),
          fmt::format("check that {} and the weights are of the same model", architecture_.config));
    if (tokenizer_.reader == TokenizerReader::kNone || tokenizer_.tokens <= rows) return ok();
    const std::string what = fmt::format(
        "the tokenizer has {} tokens, but the embedding (token_embd.weight) has only {} rows", tokenizer_.tokens, rows);
    BOOST_OUTCOME_TRY(const bool is_stated, vocabulary_size_is_stated());
    if (is_stated)
      return input_error(options_.folder, what,
                         "check that the tokenizer and the weights are of the same model; vocab_size in config.json is "
                         "the number of tokens");
    warn(what + ": vocab_size is missing in config.json, and the larger default of its model type is used");
    return ok();
  }

  // Returns true if the vocabulary size is stated in config.json rather than a class default.
  Result<bool> vocabulary_size_is_stated() const {
    const auto& rule = architecture_.tokenizer.vocabulary_size;
    if (!rule) return true;
    BOOST_OUTCOME_TRY(const json::value size, Facts(options_.folder, config_, architecture_.values).evaluate(*rule));
    BOOST_OUTCOME_TRY(const json::value used, facts_->evaluate(*rule));
    return size == used;
  }

  // Adds the files other than the weights that were or may have been read: none of them may be overwritten, or change
  // before the job is done.
  Status add_files() {
    std::vector<fs::path> paths(facts_->files_read().begin(), facts_->files_read().end());
    const auto& for_tokenizer = tokenizer_facts().files_read();
    paths.insert(paths.end(), for_tokenizer.begin(), for_tokenizer.end());
    for (const std::string_view name :
         {"config.json", "params.json", "generation_config.json", "hf_quant_config.json", "README.md", "tokenizer.json",
          "tekken.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer_config.json",
          "added_tokens.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json", "vocab.json",
          "merges.txt", "rwkv_vocab_v20230424.txt", "tokenizer.jsonl"})
      for (const fs::path& folder : {fs::path(options_.folder), tokenizer_facts().folder()})
        paths.push_back(folder / name);
    for (const TokenizerRules::Reader& reader : tokenizer_map().tokenizer.readers)
      if (!reader.choice.file.empty()) paths.push_back(tokenizer_facts().folder() / reader.choice.file);
    if (const std::string templates = file("additional_chat_templates"); is_folder(templates)) {
      BOOST_OUTCOME_TRY(const std::vector<std::string> further, paths_in(templates));
      for (const std::string& path : further)
        if (path.ends_with(".jinja")) paths.emplace_back(path);
    }
    for (const std::string& path : architecture_.files) paths.emplace_back(path);
    if (options_.metadata_file) paths.emplace_back(*options_.metadata_file);
    if (adapter_)
      for (const std::string_view name : {"adapter_config.json", "config.json", "generation_config.json", "README.md"})
        paths.push_back(fs::path(adapter_->folder) / name);
    std::ranges::sort(paths);
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    for (const fs::path& path : paths) {
      if (!is_file(path)) continue;
      BOOST_OUTCOME_TRY(SourceRef source, files_.other(path.string()));
      result_.model.files.push_back(std::move(source));
    }
    return ok();
  }

  Status warn_of_adapters() {
    if (!architecture_.adapter_names) return ok();
    BOOST_OUTCOME_TRY(const json::value listed, facts_->evaluate(*architecture_.adapter_names));
    const json::array* const names = listed.if_array();
    if (names && !names->empty())
      warn(
          fmt::format("the checkpoint contains the adapters {}, which are not part of the model; set `adapter: NAME` "
                      "in the source of a pipeline file to convert one",
                      fmt::join(quoted_names(*names), ", ")));
    return ok();
  }

  // Notes on the model which parts its checkpoint has: those that a map describes.
  void note_parts() {
    if (adapter_ || architecture_.adapters) return;
    const bool is_projector = options_.part == ModelPart::kProjector;
    std::optional<Architecture> text;
    if (!is_projector) text = architecture_;
    if (const auto name = class_to_convert(facts_->config()); is_projector && name)
      if (auto found = find_architecture(name.value(), config_file().string())) text = std::move(found).value();
    std::vector<ModelPart> parts;
    if (text) parts.push_back(ModelPart::kText);
    if (is_projector || find_architecture(projector_class(config_), config_file().string(), ModelPart::kProjector))
      parts.push_back(ModelPart::kProjector);
    if (text && text->draft_head && describes_draft(*text)) parts.push_back(ModelPart::kDraft);
    set_parts(result_.model, parts);
  }

  // Returns true if the checkpoint has layers that predict further tokens, whether or not the output omits them.
  bool describes_draft(const Architecture& text) const {
    Facts facts(options_.folder, facts_->config(), text.values);
    facts.set("option", json::object{{"draft_head", true}, {"draft_head_only", true}});
    facts.set_tensors(
        facts_->tensors(), [](const std::string&, std::optional<std::uint64_t>) { return input_error({}, "not read"); },
        [](const std::string&) { return 0; });
    const auto rule = std::ranges::find(text.metadata, "nextn_predict_layers", &MetadataRule::key);
    if (rule == text.metadata.end()) return false;
    const auto layers = facts.evaluate(rule->value);
    return layers && is_true(layers.value());
  }

  SourceOptions options_;
  CheckpointFiles& files_;
  const Adapter* adapter_ = nullptr;  // null: converts the checkpoint
  json::object config_;               // as in the file
  std::string class_;
  Architecture architecture_;
  std::optional<Facts> facts_;
  std::string target_;  // folder of the model that a draft is for; empty: none
  Architecture target_map_;
  std::optional<Facts> target_facts_;
  std::map<std::string, ValueRule> no_values_;
  TokenizerMetadata tokenizer_;
  OutType out_type_ = OutType::kAuto;
  std::uint32_t file_type_ = 0;                // for a checkpoint with repacked blocks; 0 otherwise
  const FileType* block_file_type_ = nullptr;  // for a checkpoint of GGML blocks that are kept
  bool is_repacked_ = false;                   // `file_type_` applies to every requested type
  ConvertedCheckpoint result_;
};

}  // namespace

}  // namespace huggingface

Error no_checkpoint_folder(const std::string& path) {
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

Result<ConvertedCheckpoint> read_huggingface(const huggingface::SourceOptions& options, const CheckpointOpener& open) {
  huggingface::CheckpointFiles files(open);
  return huggingface::Conversion(options, files).run();
}

Result<std::vector<ConvertedCheckpoint>> read_huggingface_parts(const huggingface::SourceOptions& options,
                                                                std::span<const PartRequest> requests,
                                                                const CheckpointOpener& open) {
  huggingface::CheckpointFiles files(open);
  std::vector<ConvertedCheckpoint> parts;
  for (const PartRequest& request : requests) {
    huggingface::SourceOptions one = options;
    one.part = request.part.value_or(options.part);
    one.out_type = request.out_type.value_or(options.out_type);
    if (!request.is_default()) one.origin = request.origin;
    BOOST_OUTCOME_TRY(parts.emplace_back(), huggingface::Conversion(one, files).run());
  }
  return parts;
}

Result<ConvertedCheckpoint> read_huggingface_adapter(const huggingface::AdapterOptions& options,
                                                     const CheckpointOpener& open) {
  BOOST_OUTCOME_TRY(const std::string folder, pinned(options.adapter));
  BOOST_OUTCOME_TRY(huggingface::Adapter adapter, huggingface::read_adapter(folder, open));
  adapter.use = options.use;
  huggingface::SourceOptions base;
  base.folder = options.base;
  base.out_type = options.out_type;
  base.architecture = options.architecture;
  base.class_defaults = options.class_defaults;
  base.origin = options.origin;
  huggingface::CheckpointFiles files(open);
  return huggingface::Conversion(base, files, &adapter).run();
}

}  // namespace ggufmill
