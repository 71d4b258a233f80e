#include "pipeline/llama_cpp/quantize_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/config/written_value.h"
#include "pipeline/config/yaml_words.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/covariance_file.h"
#include "stages/importance/importance_file.h"
#include "stages/quantize/facts.h"

namespace ggufmill {
namespace {

constexpr const char* kForm = "KEY=TYPE:VALUE";
constexpr const char* kExample = "for example general.name=str:mine";

struct Entry {
  std::string key;
  std::string value;  // YAML: "{type: 'uint32', value: '8'}"
};

// If the key exists already, its entry is replaced and moves to the end.
void put(std::vector<Entry>& entries, Entry entry) {
  entries.erase(std::remove_if(entries.begin(), entries.end(), [&](const Entry& it) { return it.key == entry.key; }),
                entries.end());
  entries.push_back(std::move(entry));
}

std::string lines_of(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries) text += fmt::format("        {}: {}\n", yaml_quoted(entry.key), entry.value);
  return text;
}

std::string typed(std::string_view type, const std::string& value) {
  return fmt::format("{{type: {}, value: {}}}", yaml_quoted(type), value);
}

// As in the reference, `int` becomes the uint32 of the absolute value; in ik_llama.cpp's, an int32.
Result<std::string> int_value(const std::string& text, const std::string& word, bool is_signed) {
  if (is_signed) {
    if (const auto number = whole_number<std::int32_t>(text))
      return typed("int32", yaml_quoted(std::to_string(*number)));
    return usage_error(fmt::format("{} in {} is not a 32-bit integer", quoted_name(text), quoted_name(word)),
                       "for larger numbers, use KEY=int64:VALUE");
  }
  const bool negative = text.starts_with('-');
  const auto number = whole_number<std::uint32_t>(negative ? text.substr(1) : text);
  if (!number)
    return usage_error(fmt::format("{} in {} is not a 32-bit integer", quoted_name(text), quoted_name(word)),
                       "for larger numbers, use KEY=uint64:VALUE");
  return typed("uint32", std::to_string(*number));
}

Status check_scalar(std::string_view type, const std::string& value, const std::string& word) {
  WrittenValue written;
  written.text = value;
  auto made = value_of(written, type);
  if (made) return ok();
  Error error = std::move(made).error();
  error.what = fmt::format("{} {}: {}", option_reference("override_kv"), quoted_name(word), error.what);
  return error;
}

// In addition to the reference's int, float, bool and str, TYPE may be any metadata type, or one followed by [] with a
// list in brackets as the value.
Result<std::string> override_value(const std::string& type, const std::string& value, const std::string& word,
                                   bool is_signed) {
  if (type == "int") return int_value(value, word, is_signed);
  if (type == "float" || type == "str") {
    const char* const name = type == "str" ? "string" : "float32";
    BOOST_OUTCOME_TRY(check_scalar(name, value, word));
    return typed(name, yaml_quoted(value));
  }
  if (type.ends_with("[]")) return typed(type, value);
  if (!metadata_type_named(type) || type == "array")
    return usage_error(fmt::format("unknown type {} in {}", quoted_name(type), quoted_name(word)),
                       "use int, float, bool, str, or a metadata type such as uint64 or string[]");
  BOOST_OUTCOME_TRY(check_scalar(type, value, word));
  return typed(type, yaml_quoted(value));
}

Result<Entry> override_entry(const std::string& word, bool is_signed) {
  BOOST_OUTCOME_TRY(const auto sides, split_word(word, kForm, kExample));
  const auto& [key, right] = sides;
  const std::size_t colon = right.find(':');
  if (colon == std::string::npos)
    return usage_error(fmt::format("{} is not of the form {}", quoted_name(word), kForm), kExample);
  BOOST_OUTCOME_TRY(std::string value,
                    override_value(right.substr(0, colon), right.substr(colon + 1), word, is_signed));
  return Entry{key, std::move(value)};
}

constexpr const char* kHidden = "top_secret";  // of ik_llama.cpp's --hide-imatrix

Status put_importance(const QuantizeOptions& options, bool is_signed, std::vector<Entry>& entries) {
  if (options.importance_file().empty()) return ok();
  Selection selection;
  for (const auto& [words, patterns] : {std::pair(&options.include_weights, &selection.include),
                                        std::pair(&options.exclude_weights, &selection.exclude)})
    for (const std::string& word : regex_literals(*words)) {
      BOOST_OUTCOME_TRY(patterns->emplace_back(), Pattern::compile(word));
    }
  if (!options.covariance.empty()) {
    BOOST_OUTCOME_TRY(open_covariance(options.covariance, gguf_opener()));
  }
  BOOST_OUTCOME_TRY(const auto summary, summarize_importance(options.importance_file(), selection, gguf_opener()));
  for (const MetadataEntry& entry : metadata_of(summary)) {
    const auto words = as_string(entry.value);
    const MetadataType type = is_signed && !words ? MetadataType::kInt32 : entry.value.type;
    const std::string value = words                  ? yaml_quoted(options.hide_imatrix ? kHidden : *words)
                              : options.hide_imatrix ? "0"
                                                     : describe(entry.value);
    put(entries, {entry.key, typed(metadata_type_name(type), value)});
  }
  return ok();
}

}  // namespace

Result<std::pair<std::string, std::string>> split_word(const std::string& word, const char* form, const char* example) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == word.size())
    return usage_error(fmt::format("{} is not of the form {}", quoted_name(word), form), example);
  return std::pair(word.substr(0, equals), word.substr(equals + 1));
}

Result<std::string> metadata_text(const QuantizeOptions& options, const std::optional<LayerCount>& layers_left,
                                  bool keys_in_place, std::vector<std::string>& warnings) {
  std::vector<Entry> entries;
  for (const std::string& word : options.override_kv) {
    BOOST_OUTCOME_TRY(Entry entry, override_entry(word, keys_in_place));
    if (!keys_in_place && word.find("=int:-") == entry.key.size())
      warnings.push_back(fmt::format(
          "{} is written as {}, as in llama-quantize; for a negative number, use {}=int32:{}", quoted_name(word),
          word.substr(entry.key.size() + 6), entry.key, word.substr(entry.key.size() + 5)));
    put(entries, std::move(entry));
  }
  BOOST_OUTCOME_TRY(put_importance(options, keys_in_place, entries));
  if (layers_left)  // already set by the stage `prune`; this only moves it to the end
    put(entries, {layers_left->architecture + ".block_count", typed("uint32", std::to_string(layers_left->layers))});
  if (entries.empty()) return std::string();
  if (!keys_in_place) return "    metadata:\n      append:\n" + lines_of(entries);
  entries.insert(entries.begin(), {"general.quantization_version", typed("uint32", "2")});
  return "    metadata:\n      set:\n" + lines_of(entries);
}

Result<std::string> fact_text(const QuantizeOptions& options) {
  std::vector<Entry> set, replaced;
  for (const std::string& word : options.override_kv) {
    BOOST_OUTCOME_TRY(Entry entry, override_entry(word, false));
    if (!decides_types(entry.key)) continue;
    std::vector<Entry>& entries = decides_types_by_layer(entry.key) ? replaced : set;
    put(entries, std::move(entry));
  }
  std::string text = set.empty() && replaced.empty() ? "" : "  - metadata:\n";
  if (!set.empty()) text += "      set:\n" + lines_of(set);
  if (!replaced.empty()) text += "      replace:\n" + lines_of(replaced);
  return text;
}

}  // namespace ggufmill
