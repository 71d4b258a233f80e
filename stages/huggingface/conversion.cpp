#include "stages/huggingface/conversion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/gguf_files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/adapter_conversion.h"
#include "stages/huggingface/check_converted.h"
#include "stages/huggingface/checkpoint/checkpoint_files.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/quantized_checkpoint.h"
#include "stages/huggingface/chosen_map.h"
#include "stages/huggingface/converted_tensors.h"
#include "stages/huggingface/decode_options.h"
#include "stages/huggingface/general.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/metadata_rules.h"
#include "stages/huggingface/map/tensor_map.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

struct FileType {
  std::string name;          // as file names have it
  std::uint32_t number = 0;  // general.file_type
};

FileType file_type_with(const TypeInfo& type) {
  return {std::string(type.name), static_cast<std::uint32_t>(type.facts.file_type)};
}

// The file type of a model whose experts alone have the type MXFP4. Source: llama_ftype in include/llama.h of llama.cpp
// (MIT).
FileType experts_as_mxfp4() { return {std::string(type_named("MXFP4").name) + "_MOE", 38}; }

class Conversion {
 public:
  // `adapter`: converted instead of the checkpoint, which is its base.
  Conversion(const SourceOptions& options, CheckpointFiles& files, const Adapter* adapter = nullptr)
      : chosen_(options), files_(files), adapter_(adapter) {}

  Result<ConvertedCheckpoint> run() {
    BOOST_OUTCOME_TRY(chosen_.choose(result_.model.warnings));
    result_.model.notes.set(notes::kCheckpointConfig, chosen_.config_path);
    result_.model.notes.set(notes::kCheckpointArchitecture, chosen_.options.architecture);
    std::vector<std::string> places;
    for (const MapPlace& place : chosen_.options.architectures) places.push_back(place.path);
    note_checkpoint_maps(places, result_.model.notes);
    if (has_tokenizer()) {
      BOOST_OUTCOME_TRY(chosen_.read_modules(result_.model.warnings));
      BOOST_OUTCOME_TRY(read_vocabulary());
    }
    out_type_ = chosen_.options.out_type;
    BOOST_OUTCOME_TRY(adapter_ ? read_pairs() : read_tensors());
    BOOST_OUTCOME_TRY(adapter_ ? add_adapter_metadata() : add_metadata());
    if (has_tokenizer()) {
      BOOST_OUTCOME_TRY(add_tokenizer());
    }
    if (!adapter_ && !chosen_.architecture.adapters && !chosen_.options.vocabulary_only) {
      BOOST_OUTCOME_TRY(check_complete(converted(), result_.model.warnings));
    }
    BOOST_OUTCOME_TRY(check_texts(converted()));
    BOOST_OUTCOME_TRY(add_files());
    BOOST_OUTCOME_TRY(warn_of_adapters());
    note_parts();
    return std::move(result_);
  }

 private:
  void warn(std::string warning) { result_.model.warnings.push_back(std::move(warning)); }

  // Returns the parts that have been converted so far, for checks.
  ConvertedModel converted() const { return {chosen_, result_.model, tokenizer_, missing_, present_, sources_}; }

  bool has_tokenizer() const {
    return chosen_.architecture.part == ModelPart::kText && !adapter_ && !chosen_.architecture.adapters;
  }

  // Runs first because some maps truncate the embedding to the number of tokens.
  Status read_vocabulary() {
    BOOST_OUTCOME_TRY(TokenizerOptions options,
                      tokenizer_options(chosen_.tokenizer_map().tokenizer, chosen_.tokenizer_facts()));
    if (chosen_.options.pre) options.pre = *chosen_.options.pre;
    options.pre_tokenizers = chosen_.pre_tokenizers();
    BOOST_OUTCOME_TRY(tokenizer_, read_tokenizer(chosen_.tokenizer_folder(), options));
    const MetadataValue* pre = tokenizer_.metadata.find("tokenizer.ggml.pre");
    if (!options.pre.empty() && (!pre || as_string(*pre) != options.pre))
      return error_at(
          chosen_.options.origin,
          fmt::format("`pre` has no effect: the vocabulary is read by '{}', which does not use a pre-tokenizer",
                      tokenizer_reader_name(tokenizer_.reader)),
          "omit it");
    chosen_.set_tokenizer(tokenizer_);
    return ok();
  }

  // Opens the tensors under the names that the map's rules see, and resolves `auto` to a type based on the model's own
  // tensors.
  Result<std::vector<NamedTensor>> open_tensors() {
    BOOST_OUTCOME_TRY(OpenedTensors opened, chosen_.open_tensors(files_));
    std::ranges::move(opened.files, std::back_inserter(result_.model.files));
    for (std::string& note : opened.notes) warn(std::move(note));
    BOOST_OUTCOME_TRY(auto tensors, rename_tensors(chosen_.architecture, *chosen_.facts, std::move(opened.own)));
    BOOST_OUTCOME_TRY(auto further, rename_tensors(chosen_.architecture, *chosen_.facts, std::move(opened.further)));
    if (out_type_ == OutType::kAuto) out_type_ = guess_type(tensors);
    std::ranges::move(further, std::back_inserter(tensors));
    BOOST_OUTCOME_TRY(check_not_empty(tensors, chosen_.options.folder));
    return tensors;
  }

  Status read_tensors() {
    if (chosen_.options.vocabulary_only) {
      BOOST_OUTCOME_TRY(const bool has_safetensors, has_file(chosen_.options.folder, "", ".safetensors"));
      BOOST_OUTCOME_TRY(const bool has_torch_files, has_file(chosen_.options.folder, "pytorch_model", ".bin"));
      if (!has_safetensors && !has_torch_files) {
        if (out_type_ == OutType::kAuto) out_type_ = OutType::kF16;
        return ok();
      }
    }
    BOOST_OUTCOME_TRY(auto tensors, open_tensors());
    // The metadata and the file type describe the weights even if only the vocabulary is written.
    if (chosen_.options.vocabulary_only) return ok();
    const Blocks blocks = chosen_.options.out_type == OutType::kAuto ? Blocks::kKeep : Blocks::kDecode;
    BOOST_OUTCOME_TRY(const DecodeOptions options,
                      decode_options(chosen_.architecture, *chosen_.facts, tensors, blocks, out_type_));
    BOOST_OUTCOME_TRY(DecodedCheckpoint decoded,
                      decode_checkpoint(chosen_.facts->folder(), chosen_.facts->config(), std::move(tensors), options));
    if (decoded.is_nvfp4)
      repacked_ = file_type_with(type_named("NVFP4"));
    else if (decoded.is_mxfp4 || decoded.has_mxfp4)
      repacked_ = experts_as_mxfp4();
    is_repacked_ = decoded.has_mxfp4 && !decoded.is_nvfp4;
    if (decoded.block_type && decoded.block_type->facts.file_type >= 0 && blocks == Blocks::kKeep)
      kept_ = file_type_with(*decoded.block_type);
    BOOST_OUTCOME_TRY(auto mapped, map_tensors(chosen_.architecture, *chosen_.facts, decoded.tensors,
                                               chosen_.options.folder, &missing_));
    BOOST_OUTCOME_TRY(check_weights(chosen_, mapped));
    for (const NamedTensor& tensor : decoded.tensors) present_.push_back(tensor.name);
    for (const MappedTensor& tensor : mapped) sources_.emplace(tensor.name, tensor.source);
    if (chosen_.options.fuse_gate_up_experts) {
      const std::size_t before = mapped.size();
      BOOST_OUTCOME_TRY(fuse_experts(mapped, chosen_.architecture, chosen_.options.origin));
      if (mapped.size() == before) warn("no experts are fused: no layer has gate and up experts");
    }
    if (chosen_.options.fuse_qkv) {
      const std::size_t before = mapped.size();
      if (chosen_.architecture.fused_qkv) {
        BOOST_OUTCOME_TRY(const std::uint64_t layers, fusable_layers());
        BOOST_OUTCOME_TRY(fuse_qkv(mapped, layers));
      }
      if (mapped.size() == before)
        warn(chosen_.architecture.fused_qkv
                 ? "no queries, keys, and values are fused: no layer has separate ones"
                 : fmt::format("no queries, keys, and values are fused: llama.cpp has no tensor for them in '{}'",
                               chosen_.architecture.name));
    }
    if (chosen_.options.fp8_as_q8_0 && std::ranges::none_of(mapped, &MappedTensor::was_fp8))
      warn("no 8-bit floats are written as Q8_0: no tensor is stored in them");
    for (MappedTensor& tensor : mapped) {
      if (tensor.weights_only) weights_only_.insert(tensor.name);
      BOOST_OUTCOME_TRY(add_tensor(std::move(tensor)));
    }
    return ok();
  }

  // Returns the number of layers, from the first, whose queries, keys, and values can be fused.
  Result<std::uint64_t> fusable_layers() const {
    const auto& values = chosen_.architecture.values;
    const auto limit = values.find(std::string(kFusableLayers));
    return chosen_.facts->count(limit == values.end() ? chosen_.architecture.layers : limit->second,
                                "the number of layers");
  }

  Status add_tensor(MappedTensor mapped) {
    const TensorTypes types{chosen_.architecture, out_type_, chosen_.options.fp8_as_q8_0};
    BOOST_OUTCOME_TRY(result_.model.tensors.emplace_back(),
                      converted_tensor(std::move(mapped), types, *chosen_.facts, chosen_.options.folder));
    return ok();
  }

  // Appends the tensors of the adapter: norms, and the matrices of each pair.
  Status read_pairs() {
    BOOST_OUTCOME_TRY(const bool has_weights, has_file(chosen_.options.folder, "model", ".safetensors"));
    if (has_weights) {
      BOOST_OUTCOME_TRY(const Checkpoint base, files_.weights(chosen_.options.folder, chosen_.architecture.weights));
      BOOST_OUTCOME_TRY(check_base(*adapter_, base, chosen_.options.folder));
    }
    if (out_type_ == OutType::kAuto)
      out_type_ = adapter_->stored && adapter_->stored->name == "BF16" ? OutType::kBf16 : OutType::kF16;
    BOOST_OUTCOME_TRY(auto mapped,
                      map_adapter(*adapter_, chosen_.architecture, *chosen_.facts, result_.model.warnings));
    for (MappedTensor& tensor : mapped) {
      BOOST_OUTCOME_TRY(add_tensor(std::move(tensor)));
    }
    for (const SourceRef& each : adapter_->files) result_.model.files.push_back(each);
    return ok();
  }

  Status add_adapter_metadata() {
    Metadata& metadata = result_.model.metadata;
    metadata.set("general.architecture", metadata_string(chosen_.architecture.name));
    BOOST_OUTCOME_TRY(result_.name.id, set_adapter_metadata(*adapter_, count_weights(result_.model.tensors), metadata,
                                                            result_.model.warnings));
    metadata.set("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    result_.name.file_type = tensor_type_of(out_type_).name;
    return ok();
  }

  FileType file_type() const {
    const TypeInfo& out = tensor_type_of(out_type_);
    if (kept_) return *kept_;
    if (repacked_ && (!out.is_quantized() || is_repacked_)) return *repacked_;
    return file_type_with(out);
  }

  // Adds the metadata of an adapter that is part of a checkpoint: that of the map alone.
  Status add_stored_adapter_metadata() {
    result_.name.id.name = chosen_.options.adapter;
    result_.name.file_type = type_named("F32").name;
    return set_metadata(chosen_.architecture.metadata, chosen_.architecture, *chosen_.facts, result_.model.metadata);
  }

  Status add_metadata() {
    Metadata& metadata = result_.model.metadata;
    metadata.set("general.architecture", metadata_string(chosen_.architecture.name));
    BOOST_OUTCOME_TRY(
        set_metadata(chosen_.architecture.metadata_early, chosen_.architecture, *chosen_.facts, metadata));
    if (!chosen_.options.vocabulary_only) {
      BOOST_OUTCOME_TRY(
          set_metadata(chosen_.architecture.metadata_of_tensors, chosen_.architecture, *chosen_.facts, metadata));
    }
    if (chosen_.architecture.adapters) return add_stored_adapter_metadata();
    const WeightCount weights = count_weights(result_.model.tensors);
    BOOST_OUTCOME_TRY(General general,
                      read_general({chosen_.options.folder, chosen_.options.model_name, chosen_.options.metadata_file,
                                    chosen_.architecture.part == ModelPart::kProjector ? "mmproj" : "model"},
                                   chosen_.stored_config, weights));
    for (const MetadataEntry& entry : general.metadata.entries()) metadata.set(entry.key, entry.value);
    for (std::string& warning : general.warnings) warn(std::move(warning));
    const FileType type = file_type();
    result_.name.id = std::move(general.id);
    result_.name.file_type = type.name;
    chosen_.facts->set("file_type", type.number);
    BOOST_OUTCOME_TRY(const std::uint64_t layers,
                      chosen_.facts->count(chosen_.architecture.layers, "the number of layers"));
    chosen_.facts->set("layers", layers);
    BOOST_OUTCOME_TRY(set_metadata(chosen_.architecture.metadata, chosen_.architecture, *chosen_.facts, metadata));
    metadata.set("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    add_activation_types();
    return ok();
  }

  // Lists the tensors that were quantized for activations of more than 4 bits, so that llama.cpp does not quantize
  // them.
  void add_activation_types() {
    if (weights_only_.empty()) return;
    std::vector<MetadataValue> names;
    for (const std::string& name : weights_only_) names.push_back(metadata_string(name));
    const std::vector<MetadataValue> flags(names.size(), metadata_bool(false));
    Metadata& metadata = result_.model.metadata;
    metadata.set("general.tensor_extra.name", metadata_array(MetadataType::kString, names));
    metadata.set("general.tensor_extra.prec_a4", metadata_array(MetadataType::kBool, flags));
  }

  Status add_tokenizer() {
    Metadata& metadata = result_.model.metadata;
    const Architecture& map = chosen_.tokenizer_map();
    BOOST_OUTCOME_TRY(
        set_metadata(map.metadata_before_tokenizer, chosen_.architecture, chosen_.tokenizer_facts(), metadata));
    for (const MetadataEntry& entry : tokenizer_.metadata.entries())
      metadata.set(whole_key(entry.key, chosen_.architecture.name), entry.value);
    for (std::string& warning : tokenizer_.warnings) warn(std::move(warning));
    BOOST_OUTCOME_TRY(check_embedding(converted(), result_.model.warnings));
    BOOST_OUTCOME_TRY(
        set_metadata(map.metadata_after_tokenizer, chosen_.architecture, chosen_.tokenizer_facts(), metadata));
    if (&map == &chosen_.architecture) return ok();
    return set_metadata(chosen_.architecture.metadata_after_tokenizer, chosen_.architecture, *chosen_.facts, metadata);
  }

  // Adds the files other than the weights that were or may have been read: none of them may be overwritten, or change
  // before the job is done.
  Status add_files() {
    std::vector<fs::path> paths(chosen_.facts->files_read().begin(), chosen_.facts->files_read().end());
    const auto& for_tokenizer = chosen_.tokenizer_facts().files_read();
    paths.insert(paths.end(), for_tokenizer.begin(), for_tokenizer.end());
    for (const std::string_view name :
         {"config.json", "params.json", "generation_config.json", "hf_quant_config.json", "README.md", "tokenizer.json",
          "tekken.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer_config.json",
          "added_tokens.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json", "vocab.json",
          "merges.txt", "rwkv_vocab_v20230424.txt", "tokenizer.jsonl"})
      for (const fs::path& folder : {fs::path(chosen_.options.folder), chosen_.tokenizer_folder()})
        paths.push_back(folder / name);
    for (const TokenizerRules::Reader& reader : chosen_.tokenizer_map().tokenizer.readers)
      if (!reader.choice.file.empty()) paths.push_back(chosen_.tokenizer_folder() / reader.choice.file);
    if (const std::string templates = chosen_.file("additional_chat_templates"); is_folder(templates)) {
      BOOST_OUTCOME_TRY(const std::vector<std::string> further, paths_in(templates));
      for (const std::string& path : further)
        if (path.ends_with(".jinja")) paths.emplace_back(path);
    }
    for (const Architecture* map : {&std::as_const(chosen_).architecture, &chosen_.tokenizer_map()})
      for (const std::string& path : map->files) paths.emplace_back(path);
    for (const std::string& path : chosen_.added_maps().tables()) paths.emplace_back(path);
    if (chosen_.options.metadata_file) paths.emplace_back(*chosen_.options.metadata_file);
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
    if (!chosen_.architecture.adapter_names) return ok();
    BOOST_OUTCOME_TRY(const json::value listed, chosen_.facts->evaluate(*chosen_.architecture.adapter_names));
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
    if (adapter_ || chosen_.architecture.adapters) return;
    const bool is_projector = chosen_.options.part == ModelPart::kProjector;
    const std::string config_file = chosen_.config_file().string();
    const AddedMaps& added = chosen_.added_maps();
    std::optional<Architecture> text;
    if (!is_projector) text = chosen_.architecture;
    const std::string& marked = chosen_.folder_class;
    if (const auto name = marked.empty() ? class_to_convert(chosen_.facts->config(), added) : marked;
        is_projector && name)
      if (auto found = find_architecture(name.value(), config_file, ModelPart::kText, added))
        text = std::move(found).value();
    std::vector<ModelPart> parts;
    if (text) parts.push_back(ModelPart::kText);
    if (is_projector || find_architecture(marked.empty() ? projector_class(chosen_.stored_config) : marked, config_file,
                                          ModelPart::kProjector, added))
      parts.push_back(ModelPart::kProjector);
    if (text && text->draft_head && describes_draft(*text)) parts.push_back(ModelPart::kDraft);
    set_parts(result_.model, parts);
  }

  // Returns true if the checkpoint has layers that predict further tokens, whether or not the output omits them.
  bool describes_draft(const Architecture& text) const {
    Facts facts(chosen_.options.folder, chosen_.facts->config(), text.values);
    facts.set("option", json::object{{"draft_head", true}, {"draft_head_only", true}});
    facts.set_tensors(
        chosen_.facts->tensors(),
        [](const std::string&, std::optional<std::uint64_t>) { return input_error({}, "not read"); },
        [](const std::string&) { return 0; });
    const auto rule = std::ranges::find(text.metadata, "nextn_predict_layers", &MetadataRule::key);
    if (rule == text.metadata.end()) return false;
    const auto layers = facts.evaluate(rule->value);
    return layers && is_true(layers.value());
  }

  ChosenMap chosen_;
  CheckpointFiles& files_;
  const Adapter* adapter_ = nullptr;  // null: converts the checkpoint
  TokenizerMetadata tokenizer_;
  OutType out_type_ = OutType::kAuto;
  std::set<std::string> weights_only_;          // names of tensors with `weights_only` set
  std::optional<FileType> repacked_;            // for a checkpoint with repacked blocks
  std::optional<FileType> kept_;                // for a checkpoint of GGML blocks that are kept
  bool is_repacked_ = false;                    // `repacked_` applies to every requested type
  std::vector<MissingPart> missing_;            // according to the map
  std::vector<std::string> present_;            // the checkpoint's tensors, as the map's rules see them
  std::map<std::string, std::string> sources_;  // checkpoint's names of the model's tensors
  ConvertedCheckpoint result_;
};

}  // namespace

namespace {

// An adapter needs only config.json of its base.
Error base_without_config(const std::string& folder) {
  constexpr const char* kNeeds = "the config.json of the base model is needed, without its weights";
  Error error = holds_only_gguf(folder) ? not_a_checkpoint(folder) : input_error(folder, "has no config.json");
  error.help = fmt::format("{}: base: FOLDER, or base: hf://ORG/NAME to read it from the hub", kNeeds);
  return with_options(std::move(error),
                      fmt::format("{}: {}, or {} to read it from the hub", kNeeds, option_reference("base", "FOLDER"),
                                  option_reference("base", "hf://ORG/NAME")));
}

}  // namespace

MissingFiles SourceOptions::missing_files() const {
  const std::string option = "use " + option_reference("allow_missing", "true");
  return {allow_missing,
          origin.where.empty() ? option : keys_or_options("set `allow_missing: true` in the source", option)};
}

}  // namespace ggufmill::huggingface

namespace ggufmill {

Result<huggingface::ConvertedCheckpoint> read_huggingface(const huggingface::SourceOptions& options,
                                                          const CheckpointOpener& open) {
  huggingface::CheckpointFiles files(open, options.missing_files());
  return huggingface::Conversion(options, files).run();
}

Result<std::vector<huggingface::ConvertedCheckpoint>> read_huggingface_parts(const huggingface::SourceOptions& options,
                                                                             std::span<const PartRequest> requests,
                                                                             const CheckpointOpener& open) {
  huggingface::CheckpointFiles files(open, options.missing_files());
  std::vector<huggingface::ConvertedCheckpoint> parts;
  for (const PartRequest& request : requests) {
    huggingface::SourceOptions one = options;
    one.part = request.part.value_or(options.part);
    one.out_type = request.out_type.value_or(options.out_type);
    if (!request.is_default()) one.origin = request.origin;
    BOOST_OUTCOME_TRY(parts.emplace_back(), huggingface::Conversion(one, files).run());
  }
  return parts;
}

Result<huggingface::ConvertedCheckpoint> read_huggingface_adapter(const huggingface::AdapterOptions& options,
                                                                  const CheckpointOpener& open) {
  BOOST_OUTCOME_TRY(const std::string folder, pinned(options.adapter));
  if (!is_address(options.base) && is_folder(options.base) && !is_file(fs::path(options.base) / "config.json"))
    return huggingface::base_without_config(options.base);
  BOOST_OUTCOME_TRY(huggingface::Adapter adapter, huggingface::read_adapter(folder, open));
  adapter.use = options.use;
  huggingface::SourceOptions base;
  base.folder = options.base;
  base.out_type = options.out_type;
  base.architecture = options.architecture;
  base.architectures = options.architectures;
  base.class_defaults = options.class_defaults;
  base.origin = options.origin;
  huggingface::CheckpointFiles files(open);
  return huggingface::Conversion(base, files, &adapter).run();
}

}  // namespace ggufmill
