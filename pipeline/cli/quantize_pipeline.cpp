// From the arguments of `ggufmill quantize` to a pipeline file.

#include <fmt/format.h>

#include <cstdlib>

#include "pipeline/cli/quantize_options.h"
#include "pipeline/cli/yaml_words.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/text.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/importance_summary.h"
#include "stages/prune/layer_set.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

using Strings = std::vector<std::string>;

constexpr const char* kOverrideExample = "for example general.name=str:mine";

std::string quoted_list(const Strings& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + yaml_quoted(word);
  return "[" + text + "]";
}

Strings literals(const Strings& words) {
  Strings patterns;
  for (const std::string& word : words) patterns.push_back(regex_literal(word));
  return patterns;
}

Result<std::string> type_name(const std::string& word) {
  if (const TypeInfo* type = find_type(word)) return std::string(type->name);
  std::vector<std::string> names;
  for (const TypeInfo& type : all_types()) names.emplace_back(type.name);
  const std::string meant = did_you_mean(word, names);
  return usage_error(fmt::format("unknown quantization type {}", quoted_name(word)),
                     (meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant)) + "`ggufmill types` lists them");
}

std::string rule_line(const std::string& pattern, const std::string& type) {
  return fmt::format("        - {{match: {}, type: {}, optional: true}}\n", yaml_quoted(pattern), type);
}

// Splits "LEFT=RIGHT"; both must be there.
Result<std::pair<std::string, std::string>> split(const std::string& word, const char* form, const char* example) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == word.size())
    return usage_error(fmt::format("{} is not of the form {}", quoted_name(word), form), example);
  return std::pair(word.substr(0, equals), word.substr(equals + 1));
}

// The reference asks its patterns and mixes only where the recipe's main type is a quantized one.
Result<bool> is_mixed(const QuantizeOptions& options) {
  BOOST_OUTCOME_TRY(const Recipe recipe, RecipeShelf(read_document).find(options.recipe, ConfigNode{}));
  return recipe.type && recipe.type->is_quantized();
}

Result<std::string> tensor_rules(const QuantizeOptions& options, bool mixed) {
  std::string text;
  if (options.leave_output_tensor) text += rule_line("^output\\.weight$", "keep");
  if (options.token_embedding_type) {
    BOOST_OUTCOME_TRY(const auto type, type_name(*options.token_embedding_type));
    text += rule_line("^(per_layer_)?token_embd\\.weight$", type);
  }
  if (options.output_tensor_type) {
    BOOST_OUTCOME_TRY(const auto type, type_name(*options.output_tensor_type));
    text += rule_line("^output\\.weight$", type);
  }
  for (const std::string& word : options.tensor_types) {
    BOOST_OUTCOME_TRY(const auto sides, split(word, "PATTERN=TYPE", "for example ffn_down=Q6_K"));
    BOOST_OUTCOME_TRY(const auto type, type_name(sides.second));
    BOOST_OUTCOME_TRY(Pattern::compile(sides.first));
    if (mixed) text += rule_line(sides.first, type);
  }
  return text.empty() ? text : "      tensors:\n" + text;
}

// A tied token embedding is the head, too, and takes the output tensor's type.
Result<std::string> head_rule(const QuantizeOptions& options, bool mixed) {
  if (!options.output_tensor_type || options.pure || !mixed) return std::string();
  BOOST_OUTCOME_TRY(const auto type, type_name(*options.output_tensor_type));
  return fmt::format("      rules: [{{class: head, type: {}}}]\n", type);
}

Result<std::string> quantize_text(const QuantizeOptions& options) {
  BOOST_OUTCOME_TRY(const bool mixed, is_mixed(options));
  BOOST_OUTCOME_TRY(const auto tensors, tensor_rules(options, mixed));
  BOOST_OUTCOME_TRY(const auto rules, head_rule(options, mixed));
  std::string text =
      fmt::format("    quantize:\n      recipe: {}\n      requantize: {}\n", options.recipe, options.allow_requantize);
  if (options.pure) text += "      pure: true\n";
  if (options.keep_split) text += "      order: source\n";
  return text + tensors + rules;
}

std::string entry_line(const std::string& key, std::string_view type, const std::string& value) {
  return fmt::format("        {}: {{type: {}, value: {}}}\n", yaml_quoted(key), yaml_quoted(type), value);
}

// KEY=TYPE:VALUE. int becomes uint32 of the absolute value, as in the reference; besides its int, float, bool and str,
// TYPE may be any metadata type, or one followed by [] and a list in brackets.
Result<std::string> override_line(const std::string& word) {
  BOOST_OUTCOME_TRY(const auto sides, split(word, "KEY=TYPE:VALUE", kOverrideExample));
  const auto& [key, typed] = sides;
  const std::size_t colon = typed.find(':');
  if (colon == std::string::npos)
    return usage_error(fmt::format("{} is not of the form KEY=TYPE:VALUE", quoted_name(word)), kOverrideExample);
  const std::string type = typed.substr(0, colon);
  const std::string value = typed.substr(colon + 1);
  if (type == "int") {
    const long long number = std::atoll(value.c_str());
    return entry_line(key, "uint32", std::to_string(static_cast<std::uint32_t>(std::llabs(number))));
  }
  if (type == "float") return entry_line(key, "float32", yaml_quoted(value));
  if (type == "str" || type == "string") return entry_line(key, "string", yaml_quoted(value));
  if (type.ends_with("[]")) return entry_line(key, type, value);
  if (!metadata_type_named(type) || type == "array")
    return usage_error(fmt::format("unknown type {} in {}", quoted_name(type), quoted_name(word)),
                       "int, float, bool, str, or a metadata type such as uint64, string[]");
  return entry_line(key, type, yaml_quoted(value));
}

Result<std::string> importance_lines(const QuantizeOptions& options) {
  if (options.imatrix.empty()) return std::string();
  Selection selection;
  for (const auto& [words, patterns] : {std::pair(&options.include_weights, &selection.include),
                                        std::pair(&options.exclude_weights, &selection.exclude)})
    for (const std::string& word : literals(*words)) {
      BOOST_OUTCOME_TRY(patterns->emplace_back(), Pattern::compile(word));
    }
  BOOST_OUTCOME_TRY(const auto summary, summarize_importance(options.imatrix, selection, read_gguf));
  std::string text;
  for (const MetadataEntry& entry : metadata_of(summary)) {
    const auto words = as_string(entry.value);
    text += entry_line(entry.key, metadata_type_name(entry.value.type),
                       words ? yaml_quoted(*words) : describe(entry.value));
  }
  return text;
}

// The stage `prune` has set the count already; here it only moves to the end.
Result<std::string> layer_count_line(const QuantizeOptions& options) {
  if (options.prune_layers.empty()) return std::string();
  BOOST_OUTCOME_TRY(const Model model, read_gguf(options.input));
  LayerSet pruned;
  BOOST_OUTCOME_TRY(pruned.add(options.prune_layers));
  const MetadataValue* arch = model.metadata.find("general.architecture");
  const std::string key = std::string(arch ? as_string(*arch).value_or("") : "") + ".block_count";
  const MetadataValue* count = model.metadata.find(key);
  const auto layers = count ? as_unsigned(*count) : std::nullopt;
  if (!layers) return std::string();
  return entry_line(key, "uint32", std::to_string(*layers - pruned.count(0, *layers)));
}

// The metadata that comes after file_type, in the reference's order: overrides, importance, pruning's layer count.
Result<std::string> metadata_text(const QuantizeOptions& options) {
  std::string lines;
  for (const std::string& word : options.override_kv) {
    BOOST_OUTCOME_TRY(const auto line, override_line(word));
    lines += line;
  }
  BOOST_OUTCOME_TRY(const auto importance, importance_lines(options));
  BOOST_OUTCOME_TRY(const auto layers, layer_count_line(options));
  lines += importance + layers;
  return lines.empty() ? lines : "    metadata:\n      append:\n" + lines;
}

std::string stages_text(const QuantizeOptions& options) {
  std::string text;
  if (!options.imatrix.empty()) {
    text += fmt::format("  - importance:\n      file: {}\n      any_model: true\n      record: false\n",
                        yaml_quoted(options.imatrix));
    if (!options.include_weights.empty())
      text += fmt::format("      include: {}\n", quoted_list(literals(options.include_weights)));
    if (!options.exclude_weights.empty())
      text += fmt::format("      exclude: {}\n", quoted_list(literals(options.exclude_weights)));
  }
  if (!options.prune_layers.empty())
    text += fmt::format("  - prune: {{layers: {}}}\n", yaml_quoted(options.prune_layers));
  return text.empty() ? text : "stages:\n" + text;
}

}  // namespace

Result<std::string> pipeline_of(const QuantizeOptions& options) {
  if (!options.include_weights.empty() && !options.exclude_weights.empty())
    return usage_error("--include-weights and --exclude-weights cannot be used together", "give one of them");
  BOOST_OUTCOME_TRY(const auto quantize, quantize_text(options));
  BOOST_OUTCOME_TRY(const auto metadata, metadata_text(options));
  std::string text = fmt::format("version: 1\nsource: {{gguf: {}}}\n", yaml_quoted(options.input));
  text += stages_text(options);
  text += options.keep_split
              ? fmt::format("outputs:\n  - gguf: {{path: {}, shards: source}}\n", yaml_quoted(options.output))
              : fmt::format("outputs:\n  - gguf: {}\n", yaml_quoted(options.output));
  text += quantize + metadata;
  if (options.threads) text += fmt::format("limits: {{threads: {}}}\n", *options.threads);
  return text;
}

}  // namespace ggufmill
