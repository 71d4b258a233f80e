// Translates the arguments of `ggufmill quantize` into a pipeline file.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "pipeline/api/open_model.h"
#include "pipeline/api/registry.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/config/yaml_words.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/gguf_files.h"
#include "pipeline/io/source_path.h"
#include "pipeline/llama_cpp/quantize_options.h"
#include "stages/prune/prune_stage.h"
#include "stages/quantize/encoder_fields.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

using Strings = std::vector<std::string>;

Result<std::string> type_name(const std::string& word, const Types& types) {
  if (const TypeInfo* type = types.find_choice(word)) return std::string(type->name);
  return unknown_type(word, types);
}

// Returns a rule for a tensor that the model may not have. `misfit`: what to do if its rows are not whole blocks of the
// type; empty: not applicable.
std::string rule_line(const std::string& pattern, const std::string& type, const std::string& misfit) {
  return fmt::format("        - {{match: {}, type: {}, optional: true{}}}\n", yaml_quoted(pattern), type,
                     misfit.empty() ? "" : ", misfit: " + misfit);
}

// Returns a rule with a pattern of the user.
std::string pattern_line(const std::string& pattern, const std::string& type) {
  return fmt::format("        - {{match: {}, type: {}, misfit: fallback}}\n", yaml_quoted(pattern), type);
}

// Adds each warning only once, although several outputs have the same options.
void warn(std::string text, std::vector<std::string>& warnings) {
  if (std::ranges::count(warnings, text) == 0) warnings.push_back(std::move(text));
}

// The reference converts a pattern to lowercase before the search, so \D becomes \d.
void warn_of_capitals(const std::string& pattern, std::vector<std::string>& warnings) {
  std::string small = pattern;
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (small != pattern)
    warn(fmt::format("the pattern {} is matched as written; llama-quantize would match {}", quoted_name(pattern),
                     quoted_name(small)),
         warnings);
}

// The layers to prune that exist, and the number of those that remain.
struct Pruning {
  std::string layers;  // for example "6,7"; empty: none is pruned
  std::optional<LayerCount> left;
};

// Like the reference, ignores layer numbers that the model does not have.
Result<Pruning> pruning(const QuantizeOptions& options, const Types& types, std::vector<std::string>& warnings) {
  if (options.prune_layers.empty()) return Pruning{};
  LayerSet asked;
  if (Status read = asked.add(options.prune_layers); !read) {
    Error error = std::move(read).error();
    error.what = option_reference("prune_layers") + ": " + error.what;
    return error;
  }
  BOOST_OUTCOME_TRY(const Model model,
                    open_model(options.input, {}, make_registry(types, options.architectures), FileForm::kConverted));
  BOOST_OUTCOME_TRY(LayerCount count, count_layers(model));
  Pruning found;
  for (std::uint64_t layer = 0; layer < std::min(count.layers, asked.last() + 1); ++layer)
    if (asked.contains(layer)) found.layers += (found.layers.empty() ? "" : ",") + std::to_string(layer);
  if (asked.last() >= count.layers)
    warnings.push_back(fmt::format(
        "{} {}: the model has no layer{}", option_reference("prune_layers"), quoted_name(options.prune_layers),
        count.layers == 0
            ? "s"
            : fmt::format(" {}; its {} layers are 0 to {}", asked.last(), count.layers, count.layers - 1)));
  count.layers -= asked.count(0, count.layers);
  found.left = std::move(count);
  return found;
}

// The reference applies patterns and type mixes only if the recipe's main type is quantized.
bool is_mixed(const Recipe& recipe) { return recipe.type && recipe.type->is_quantized(); }

// Warns about types that the recipe does not use. In ik_llama.cpp, custom types change the mix, which `pure` replaces.
void warn_of_unused_types(const QuantizeOptions& options, const Recipe& recipe, std::vector<std::string>& warnings) {
  const auto ignored = [&](const char* option) {
    warn(
        fmt::format("{} is ignored: with {} there is no mix of types to change", option_reference(option), recipe.name),
        warnings);
  };
  if (!is_mixed(recipe) && !options.tensor_types.empty()) ignored("tensor_type");
  if (!is_mixed(recipe) && !options.custom_types.empty()) ignored("custom_q");
  if (is_mixed(recipe) && options.pure && !options.custom_types.empty())
    warn(fmt::format("{} is ignored: with {} there is no mix of types to change", option_reference("custom_q"),
                     option_reference("pure", "true")),
         warnings);
  if (!recipe.type && (options.output_tensor_type || options.token_embedding_type))
    warn(fmt::format("{} and {} are ignored: {} changes no type", option_reference("output_tensor_type"),
                     option_reference("token_embedding_type"), recipe.name),
         warnings);
}

// Returns the items of lists that are separated by commas.
std::vector<std::string> items_of(const Strings& lists) {
  std::vector<std::string> items;
  for (const std::string& list : lists) {
    std::istringstream words(list);
    for (std::string item; std::getline(words, item, ',');) items.push_back(item);
  }
  return items;
}

// Returns the rules of --custom-q, "PATTERN=TYPE,PATTERN=TYPE", in the order given.
Result<std::string> custom_rules(const QuantizeOptions& options, const Types& types) {
  std::string text;
  for (const std::string& item : items_of(options.custom_types)) {
    BOOST_OUTCOME_TRY(const auto sides, split_word(item, "REGEX=TYPE", "for example attn_v=iq6_k,ffn_down=iq5_ks"));
    BOOST_OUTCOME_TRY(const auto type, type_name(sides.second, types));
    BOOST_OUTCOME_TRY(Pattern::compile(sides.first));
    text += pattern_line(sides.first, type);
  }
  return text;
}

// The embedding of each layer (Gemma 3n), a table of its own, follows --token-embedding-type unless a pattern of
// --tensor-type matches it.
Result<bool> names_layer_embedding(const QuantizeOptions& options) {
  for (const std::string& word : options.tensor_types) {
    BOOST_OUTCOME_TRY(const Pattern pattern, Pattern::compile(word.substr(0, word.find('='))));
    BOOST_OUTCOME_TRY(const bool matches, pattern.matches("per_layer_token_embd.weight"));
    if (matches) return true;
  }
  return false;
}

// If rows do not fit, the types given for the token embedding and the output tensor are refused; those of patterns
// fall back.
Result<std::string> tensor_rules(const QuantizeOptions& options, bool mixed, const Types& types,
                                 std::vector<std::string>& warnings) {
  std::string text;
  if (options.leave_output_tensor) text += rule_line("^output\\.weight$", "keep", "");
  if (options.token_embedding_type) {
    BOOST_OUTCOME_TRY(const auto type, type_name(*options.token_embedding_type, types));
    BOOST_OUTCOME_TRY(const bool named, names_layer_embedding(options));
    text += rule_line(named ? "^token_embd\\.weight$" : "^(per_layer_)?token_embd\\.weight$", type, "refuse");
  }
  if (options.output_tensor_type) {
    BOOST_OUTCOME_TRY(const auto type, type_name(*options.output_tensor_type, types));
    text += rule_line("^output\\.weight$", type, "refuse");
  }
  std::string patterns;
  for (const std::string& word : options.tensor_types) {
    BOOST_OUTCOME_TRY(const auto sides, split_word(word, "PATTERN=TYPE", "for example ffn_down=Q6_K"));
    BOOST_OUTCOME_TRY(const auto type, type_name(sides.second, types));
    BOOST_OUTCOME_TRY(Pattern::compile(sides.first));
    warn_of_capitals(sides.first, warnings);
    if (mixed) patterns += pattern_line(sides.first, type);
  }
  BOOST_OUTCOME_TRY(const auto custom, custom_rules(options, types));
  if (mixed && !options.pure) patterns += custom;
  if (text.empty() && patterns.empty()) return text;
  return (patterns.empty() ? "" : "      unused_rules: warn\n") + std::string("      tensors:\n") + text + patterns;
}

// A tied token embedding is also the head: it takes the output tensor's type, or the fallback of that type.
Result<std::string> head_rule(const QuantizeOptions& options, bool mixed, const Types& types) {
  if (!options.output_tensor_type || options.pure || !mixed) return std::string();
  BOOST_OUTCOME_TRY(const auto type, type_name(*options.output_tensor_type, types));
  return fmt::format("      rules: [{{class: head, type: {}}}]\n      misfit: fallback\n", type);
}

Result<std::string> quantize_text(const QuantizeOptions& options, const std::string& recipe_name, const Recipe& recipe,
                                  const Types& types, std::vector<std::string>& warnings) {
  const bool mixed = is_mixed(recipe);
  warn_of_unused_types(options, recipe, warnings);
  BOOST_OUTCOME_TRY(const auto tensors, tensor_rules(options, mixed, types, warnings));
  BOOST_OUTCOME_TRY(const auto rules, head_rule(options, mixed, types));
  std::string text =
      fmt::format("    quantize:\n      recipe: {}\n      requantize: {}\n",
                  names_file(recipe_name) ? yaml_quoted(recipe_name) : recipe_name, options.allow_requantize);
  if (!options.encoder.empty()) {
    BOOST_OUTCOME_TRY(parse_option("--encoder", encoder_form(types), options.encoder, types));
    text += fmt::format("      encoder: {}\n", options.encoder);
  }
  if (options.pure) text += "      pure: true\n";
  if (options.keep_split) text += "      order: source\n";
  return text + tensors + rules;
}

// Returns the stage of an output whose rows are only rearranged.
Result<std::string> repack_text(const QuantizeOptions& options) {
  std::string pattern;
  for (const std::string& item : items_of(options.repack_patterns)) {
    BOOST_OUTCOME_TRY(Pattern::compile(item));
    pattern += fmt::format("{}({})", pattern.empty() ? "" : "|", item);
  }
  return fmt::format(
      "    quantize:\n      repack: {}\n",
      pattern.empty() ? "interleaved" : fmt::format("{{rows: interleaved, match: {}}}", yaml_quoted(pattern)));
}

// Returns the stages, which all outputs share; `facts` comes first.
std::string stages_text(const QuantizeOptions& options, const std::string& facts, const std::string& pruned) {
  std::string text = facts;
  if (const std::string& file = options.importance_file(); !file.empty()) {
    text += fmt::format("  - importance:\n      {}: {}\n      any_model: true\n      record: false\n",
                        options.covariance.empty() ? "file" : "covariance", yaml_quoted(file));
    if (!options.include_weights.empty())
      text += fmt::format("      include: {}\n", yaml_quoted_list(regex_literals(options.include_weights)));
    if (!options.exclude_weights.empty())
      text += fmt::format("      exclude: {}\n", yaml_quoted_list(regex_literals(options.exclude_weights)));
  }
  if (!pruned.empty()) text += fmt::format("  - prune: {{layers: {}}}\n", yaml_quoted(pruned));
  return text.empty() ? text : "stages:\n" + text;
}

Status check_buffer_size(const std::optional<std::string>& text, std::vector<std::string>& warnings) {
  if (!text) return ok();
  if (whole_number<std::uint64_t>(*text).value_or(0) == 0)
    return usage_error(
        fmt::format("{} {} is not a number of MiB above 0", option_reference("max_buffer_size"), quoted_name(*text)),
        "for example 8192, the default of llama-quantize; or omit it, as it has no effect");
  warn(fmt::format("{} has no effect: the memory of every job is bounded (limits.memory)",
                   option_reference("max_buffer_size", *text)),
       warnings);
  return ok();
}

constexpr std::string_view kGgufSource = "gguf";

// Returns the name of the source that reads the input: a folder is a checkpoint of a language model unless it has only
// GGUF files, and a safetensors file a model of images or video.
std::string_view source_of(const std::string& input) {
  if (is_folder(input)) return holds_only_gguf(input) ? kGgufSource : "huggingface";
  return is_diffusion_file(input) ? "diffusion" : kGgufSource;
}

// Returns the section `source:`.
Result<std::string> source_text(const QuantizeOptions& options, std::string_view source) {
  const std::string path = yaml_quoted(options.input);
  std::string further;
  if (!options.architectures.empty())
    further += fmt::format(", architectures: {}", yaml_quoted_list(options.architectures));
  if (options.allow_missing) further += ", allow_missing: true";
  if (further.empty()) return fmt::format("source: {{{}: {}}}\n", source, path);
  if (source != "huggingface")
    return usage_error(fmt::format("{} has no effect: {} is not a checkpoint folder",
                                   options.architectures.empty() ? option_reference("allow_missing", "true")
                                                                 : option_reference("architectures"),
                                   quoted_name(options.input)),
                       "omit it");
  return fmt::format("source: {{huggingface: {{path: {}{}}}}}\n", path, further);
}

}  // namespace

Result<std::string> pipeline_of(const QuantizeOptions& options, std::vector<std::string>& warnings,
                                const RecipeCatalog& catalog) {
  if (!options.include_weights.empty() && !options.exclude_weights.empty())
    return usage_error(fmt::format("{} and {} cannot be used together", option_reference("include_weights"),
                                   option_reference("exclude_weights")),
                       "give one of them");
  if (!options.repack && !options.repack_patterns.empty())
    return usage_error(
        fmt::format("{} needs {}", option_reference("repack_pattern"), option_reference("repack", "true")),
        "add " + option_reference("repack", "true"));
  if (options.repack && (options.pure || options.leave_output_tensor || !options.tensor_types.empty() ||
                         !options.custom_types.empty() || options.output_tensor_type || options.token_embedding_type))
    return usage_error(
        option_reference("repack", "true") + " changes no type, and options that change types are given with it",
        "quantize first, and repack the result");
  for (const auto& [given, name] :
       {std::pair(!options.encoder.empty(), "encoder"), std::pair(!options.covariance.empty(), "covariance")})
    if (options.repack && given)
      return usage_error(fmt::format("{} changes no value, so {} has no effect with it",
                                     option_reference("repack", "true"), option_reference(name)),
                         fmt::format("omit {}, or quantize first and repack the result", option_reference(name)));
  if (!options.imatrix.empty() && !options.covariance.empty())
    return usage_error(
        fmt::format("{} and {} cannot be used together", option_reference("imatrix"), option_reference("covariance")),
        fmt::format("give {} alone: its file is also an importance matrix", option_reference("covariance")));
  if (options.importance_file().empty())
    for (const auto& [given, name] : {std::pair(!options.include_weights.empty(), "include_weights"),
                                      std::pair(!options.exclude_weights.empty(), "exclude_weights"),
                                      std::pair(options.hide_imatrix, "hide_imatrix")})
      if (given)
        warn(fmt::format("{} has no effect without {}", option_reference(name), option_reference("imatrix")), warnings);
  if (options.leave_output_tensor && options.output_tensor_type)
    warn(fmt::format("{} has no effect with {}", option_reference("output_tensor_type"),
                     option_reference("leave_output_tensor", "true")),
         warnings);
  BOOST_OUTCOME_TRY(check_buffer_size(options.max_buffer_size, warnings));
  const std::string_view source = source_of(options.input);
  if (source != kGgufSource && options.keep_split)
    return usage_error(
        fmt::format("{} keeps the shards of a GGUF, but {} is a checkpoint", option_reference("keep_split", "true"),
                    quoted_name(options.input)),
        fmt::format("set `shard_size` in the pipeline file that {} prints", option_reference("emit_pipeline", "true")));
  BOOST_OUTCOME_TRY(const auto facts, fact_text(options));
  BOOST_OUTCOME_TRY(const auto pruned, pruning(options, catalog.types(), warnings));
  BOOST_OUTCOME_TRY(std::string text, source_text(options, source));
  text.insert(0, "version: 1\n");
  text += stages_text(options, facts, pruned.layers) + "outputs:\n";
  for (const QuantizedOutput& output : options.outputs) {
    const std::string path = yaml_quoted(output.path);
    text += options.keep_split ? fmt::format("  - gguf: {{path: {}, shards: source}}\n", path)
                               : fmt::format("  - gguf: {}\n", path);
    BOOST_OUTCOME_TRY(const Recipe recipe, catalog.find(output.recipe));
    const bool in_place = options.repack || recipe.keys_in_place.value_or(false);
    std::vector<std::string> notes;
    BOOST_OUTCOME_TRY(const auto metadata, metadata_text(options, pruned.left, in_place, notes));
    for (std::string& note : notes) warn(std::move(note), warnings);
    BOOST_OUTCOME_TRY(const auto quantize,
                      options.repack ? repack_text(options)
                                     : quantize_text(options, output.recipe, recipe, catalog.types(), warnings));
    text += in_place ? metadata + quantize : quantize + metadata;
  }
  if (options.threads) text += fmt::format("limits: {{threads: {}}}\n", *options.threads);
  return text;
}

}  // namespace ggufmill
