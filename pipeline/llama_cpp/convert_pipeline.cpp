// Translates the arguments of `ggufmill convert` into a pipeline file.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "pipeline/config/yaml_words.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/llama_cpp/convert_options.h"
#include "pipeline/llama_cpp/quantize_options.h"
#include "stages/huggingface/adapter_source.h"
#include "stages/huggingface/checkpoint/adapter.h"
#include "stages/huggingface/huggingface_source.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/output_name.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace {

constexpr std::string_view kMistralConfig = "params.json";

// If `quantize` supports the type, the help names that command.
Error unknown_out_type(const ConvertOptions& options) {
  const std::string recipe = recipe_of_word(options.outtype);
  std::string help = fmt::format("one of: {}", fmt::join(kOutTypeWords, ", "));
  if (!recipe.empty())
    help += fmt::format("; `ggufmill quantize {} {}` converts and quantizes in one pass", options.folder, recipe);
  return usage_error(fmt::format("unknown {} {}", option_reference("outtype"), quoted_name(options.outtype)), help);
}

Error no_folder(const std::string& path) {
  if (!is_file(path)) return no_checkpoint_folder(path);
  std::string folder = fs::path(path).parent_path();
  return usage_error(
      fmt::format("{} is a file; a checkpoint must be a folder", quoted_name(path)),
      path.ends_with(".gguf")
          ? fmt::format("a GGUF needs no conversion: `ggufmill quantize {} TYPE` changes the types of its tensors",
                        path)
          : fmt::format("give the folder with config.json: `ggufmill convert {}`", folder.empty() ? "." : folder));
}

// `split_max_size`: parsed, 0 for no limit.
bool is_split(const ConvertOptions& options, std::uint64_t split_max_size) {
  return split_max_size != 0 || options.split_max_tensors != 0 || options.no_tensor_first_split;
}

Status check(const ConvertOptions& options, std::uint64_t split_max_size) {
  if (!out_type_named(options.outtype)) return unknown_out_type(options);
  const auto together = [](const char* one, const char* other, const char* help) {
    return usage_error(fmt::format("{} and {} cannot be used together", option_reference(one), option_reference(other)),
                       help);
  };
  constexpr const char* kTwice = "convert twice, once with each";
  if (options.mtp && options.no_mtp) return together("mtp", "no_mtp", kTwice);
  if (options.dspark && (options.mtp || options.no_mtp || options.mmproj))
    return together("dspark", options.mtp ? "mtp" : options.no_mtp ? "no_mtp" : "mmproj", kTwice);
  if (options.mmproj && (options.vocab_only || options.mtp || options.no_mtp))
    return together("mmproj",
                    options.vocab_only ? "vocab_only"
                    : options.mtp      ? "mtp"
                                       : "no_mtp",
                    "a projector has neither a vocabulary nor a multi-token prediction head; omit one of them");
  if (options.vocab_only && is_split(options, split_max_size))
    return usage_error(fmt::format("{} writes no tensors to split", option_reference("vocab_only")),
                       "omit the split options");
  if (!is_address(options.folder) && !is_folder(options.folder)) return no_folder(options.folder);
  return ok();
}

// Returns the option of a source that adds maps to the built-in ones; empty if there are none.
std::string architectures_text(const std::vector<std::string>& maps) {
  return maps.empty() ? "" : fmt::format("    architectures: {}\n", yaml_quoted_list(maps));
}

std::string source_text(const ConvertOptions& options) {
  std::string text = fmt::format("source:\n  huggingface:\n    path: {}\n    outtype: {}\n",
                                 yaml_quoted(options.folder), options.outtype);
  if (options.mmproj) text += "    part: projector\n";
  if (options.mtp) text += "    part: draft\n";
  if (options.mistral_format) text += fmt::format("    config: {}\n", kMistralConfig);
  if (options.model_name) text += fmt::format("    model_name: {}\n", yaml_quoted(*options.model_name));
  if (options.metadata) text += fmt::format("    metadata: {}\n", yaml_quoted(*options.metadata));
  if (options.vocab_only) text += "    vocabulary_only: true\n";
  if (options.no_mtp) text += "    draft_head: leave_out\n";
  if (options.dspark) text += "    dspark: true\n";
  if (!options.target_model_dir.empty()) text += fmt::format("    target: {}\n", yaml_quoted(options.target_model_dir));
  if (options.fuse_gate_up_exps) text += "    fuse_gate_up_experts: true\n";
  if (options.fuse_qkv) text += "    fuse_qkv: true\n";
  if (options.fp8_as_q8) text += "    fp8_as_q8_0: true\n";
  if (options.allow_missing) text += "    allow_missing: true\n";
  if (options.sentence_transformers_dense_modules) text += "    dense_modules: true\n";
  text += architectures_text(options.architectures);
  return text;
}

// Returns the output in a pipeline file. `fields`: options of the sink, each after ", ".
std::string output_text(const std::string& path, const std::string& fields) {
  const std::string quoted = yaml_quoted(path);
  return fmt::format("outputs:\n  - gguf: {}\n",
                     fields.empty() ? quoted : fmt::format("{{path: {}{}}}", quoted, fields));
}

std::string pipeline_text(const ConvertOptions& options, std::uint64_t split_max_size, const std::string& path) {
  std::string sink;
  const auto add = [&](const std::string& field) { sink += ", " + field; };
  if (split_max_size != 0) add(fmt::format("shard_size: {}", split_max_size));
  if (options.split_max_tensors != 0) add(fmt::format("shard_tensors: {}", options.split_max_tensors));
  if (options.no_tensor_first_split) add("metadata_shard: true");
  if (is_split(options, split_max_size) || options.vocab_only) add("shard_rule: convert");
  if (options.bigendian) add("byte_order: big");
  return fmt::format("version: 1\n{}{}", source_text(options), output_text(path, sink));
}

// Returns the output's file name if none is given or a template is. `folder`: the source.
Result<std::string> made_name(const std::string& folder, huggingface::OutputContent content, const std::string& given,
                              const huggingface::CheckpointName& name) {
  if (!given.empty()) return huggingface::fill_output_name(given, name.file_type);
  auto made = default_output_name(name.id, name.file_type, content);
  if (made) return made;
  Error error = made.error();
  error.where = folder;
  error.help = "name the output: " + option_reference("outfile", "NAME.gguf");
  return error;
}

// Returns the path of the output. `outfile`: file, folder, a new one if it ends with a separator, or empty for the
// folder of the source. Calls `name` only if the file's name depends on it.
Result<std::string> output_path(const std::string& folder, const std::string& outfile,
                                huggingface::OutputContent content,
                                const std::function<Result<huggingface::CheckpointName>()>& name) {
  std::error_code none;
  // Nothing can be written next to a model on a server.
  const fs::path inside = is_address(folder) ? "." : folder;
  const fs::path asked = outfile.empty() ? inside : fs::path(outfile);
  const bool is_folder = fs::is_directory(asked, none) || (!outfile.empty() && is_separator(outfile.back()));
  const std::string given = is_folder ? "" : asked.filename().string();
  if (!is_folder && given.find_first_of("{}") == std::string::npos) return asked.string();
  BOOST_OUTCOME_TRY(const huggingface::CheckpointName id, name());
  BOOST_OUTCOME_TRY(const std::string made, made_name(folder, content, given, id));
  return ((is_folder ? asked : asked.parent_path()) / made).string();
}

// Returns the folder of the base that an adapter names.
Result<std::string> base_of(const std::string& adapter) {
  const std::string path = fs::path(adapter) / "adapter_config.json";
  if (!is_file(path)) return huggingface::no_adapter(adapter);
  BOOST_OUTCOME_TRY(const boost::json::value config, read_checkpoint_json(path));
  const std::string named(json_string(config, "base_model_name_or_path").value_or(""));
  if (!named.empty() && is_folder(named)) return named;
  return usage_error(named.empty() ? "no base model is given, and the adapter names none"
                                   : fmt::format("the adapter's base model {} is not a folder", quoted_name(named)),
                     fmt::format("add {}, with the config.json of the base model{}", option_reference("base", "FOLDER"),
                                 named.empty() ? ""
                                               : fmt::format(", or {} to read it from the hub",
                                                             option_reference("base", "hf://" + named))));
}

huggingface::AdapterOptions source_of(const ConvertLoraOptions& options, const std::string& base) {
  huggingface::AdapterOptions source;
  source.adapter = options.adapter;
  source.base = base;
  source.out_type = out_type_named(options.outtype).value_or(source.out_type);
  source.architectures = huggingface::map_places(options.architectures);
  return source;
}

}  // namespace

Result<std::vector<std::string>> convertible_classes(const std::vector<std::string>& maps) {
  std::set<std::string> classes;
  const auto add = [&](const huggingface::Architecture& architecture) {
    if (architecture.part == ModelPart::kText) classes.insert(architecture.serves.begin(), architecture.serves.end());
  };
  BOOST_OUTCOME_TRY(const auto added, huggingface::AddedMaps::read(huggingface::map_places(maps)));
  for (const huggingface::AddedMaps::Map& each : added.maps()) {
    BOOST_OUTCOME_TRY(const auto architecture, huggingface::read_architecture(each.path, {}, added));
    add(architecture);
  }
  for (const huggingface::BuiltInArchitecture& built_in : huggingface::built_in_architectures()) {
    BOOST_OUTCOME_TRY(const auto architecture, huggingface::read_architecture(std::string(built_in.name)));
    add(architecture);
  }
  return std::vector<std::string>(classes.begin(), classes.end());
}

Result<std::uint64_t> parse_split_size(const std::string& word) {
  std::uint64_t number = 0, unit = 1;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string_view rest(stop, static_cast<std::size_t>(word.data() + word.size() - stop));
  for (const auto& [name, bytes] : {std::pair("K", 1000u), std::pair("M", 1000000u), std::pair("G", 1000000000u)})
    if (rest == name) unit = bytes;
  if (error != std::errc() || (unit == 1 && !rest.empty()) || __builtin_mul_overflow(number, unit, &number))
    return usage_error(fmt::format("{} {} is not a valid size", option_reference("split_max_size"), quoted_name(word)),
                       "give a number followed by K, M, or G, for example 20G");
  return number;
}

huggingface::SourceOptions source_of(const ConvertOptions& options) {
  huggingface::SourceOptions source;
  source.folder = options.folder;
  source.out_type = out_type_named(options.outtype).value_or(OutType::kAuto);
  if (options.mistral_format) source.config = kMistralConfig;
  if (options.mmproj) source.part = ModelPart::kProjector;
  source.model_name = options.model_name;
  source.metadata_file = options.metadata;
  source.dspark = options.dspark;
  source.target = options.target_model_dir;
  source.vocabulary_only = options.vocab_only;
  source.fuse_gate_up_experts = options.fuse_gate_up_exps;
  source.fuse_qkv = options.fuse_qkv;
  source.fp8_as_q8_0 = options.fp8_as_q8;
  source.allow_missing = options.allow_missing;
  source.dense_modules = options.sentence_transformers_dense_modules;
  source.architectures = huggingface::map_places(options.architectures);
  if (options.mtp) source.part = ModelPart::kDraft;
  if (options.no_mtp) source.draft_head = huggingface::DraftHead::kLeaveOut;
  return source;
}

Result<std::string> pipeline_of(const ConvertOptions& options, const CheckpointNamer& name_of_checkpoint) {
  BOOST_OUTCOME_TRY(const std::uint64_t split_max_size, parse_split_size(options.split_max_size));
  BOOST_OUTCOME_TRY(check(options, split_max_size));
  const huggingface::OutputContent content = options.vocab_only ? huggingface::OutputContent::kVocabulary
                                             : options.mtp      ? huggingface::OutputContent::kDraftHead
                                             : options.mmproj   ? huggingface::OutputContent::kProjector
                                                                : huggingface::OutputContent::kModel;
  BOOST_OUTCOME_TRY(const std::string path, output_path(options.folder, options.outfile, content,
                                                        [&] { return name_of_checkpoint(source_of(options)); }));
  return pipeline_text(options, split_max_size, path);
}

Result<std::string> pipeline_of(const ConvertLoraOptions& options, const AdapterNamer& name_of_adapter) {
  const std::vector<std::string> types = adapter_type_names();
  if (std::ranges::count(types, options.outtype) == 0)
    return usage_error(fmt::format("unknown {} {}", option_reference("outtype"), quoted_name(options.outtype)),
                       fmt::format("one of: {}", fmt::join(types, ", ")));
  std::string base = options.base;
  if (base.empty()) {
    BOOST_OUTCOME_TRY(base, base_of(options.adapter));
  }
  BOOST_OUTCOME_TRY(const std::string path,
                    output_path(options.adapter, options.outfile, huggingface::OutputContent::kAdapter,
                                [&] { return name_of_adapter(source_of(options, base)); }));
  std::string source =
      fmt::format("source:\n  lora:\n    adapter: {}\n    base: {}\n", yaml_quoted(options.adapter), yaml_quoted(base));
  if (options.outtype != out_type_name(huggingface::AdapterOptions().out_type))
    source += fmt::format("    outtype: {}\n", options.outtype);
  source += architectures_text(options.architectures);
  return fmt::format("version: 1\n{}{}", source, output_text(path, options.bigendian ? ", byte_order: big" : ""));
}

Result<std::string> pipeline_of(const ConvertOptions& options) {
  return pipeline_of(options, [](huggingface::SourceOptions source) -> Result<huggingface::CheckpointName> {
    source.allow_missing = true;  // the run refuses what is incomplete, not the choice of a name
    BOOST_OUTCOME_TRY(huggingface::ConvertedCheckpoint checkpoint, read_huggingface(source, read_safetensors));
    return std::move(checkpoint.name);
  });
}

Result<std::string> pipeline_of(const ConvertLoraOptions& options) {
  return pipeline_of(options, [](const huggingface::AdapterOptions& source) -> Result<huggingface::CheckpointName> {
    BOOST_OUTCOME_TRY(huggingface::ConvertedCheckpoint adapter, read_huggingface_adapter(source, read_safetensors));
    return std::move(adapter.name);
  });
}

}  // namespace ggufmill
