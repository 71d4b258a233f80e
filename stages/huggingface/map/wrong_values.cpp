// Errors about values of config.json, and of the files beside it: they name the key and what stands there.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// A value as a person would read it in the file: `"64", a string`.
std::string written(const json::value& value) {
  constexpr std::size_t kWidth = 60;
  const std::string quoted = quoted_name(written_json(value), kWidth);
  const std::size_t end = quoted.rfind('\'');
  const std::string_view kind = value.is_string()   ? ", a string"
                                : value.is_array()  ? ", a list"
                                : value.is_object() ? ", an object"
                                                    : "";
  return quoted.substr(1, end - 1) + quoted.substr(end + 1) + std::string(kind);
}

// Returns the number that is meant by a text or by 2.0; null if none is.
json::value meant_number(const json::value& value) {
  if (value.is_double() && std::abs(value.get_double()) < 9e15 && std::trunc(value.get_double()) == value.get_double())
    return static_cast<std::int64_t>(value.get_double());
  if (!value.is_string()) return {};
  const std::string_view text = value.get_string();
  const char* const end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, integer); error == std::errc() && at == end)
    return integer;
  double number = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, number);
      error == std::errc() && at == end && std::isfinite(number))
    return number;
  return {};
}

std::string help_for(const std::string& key, const json::value& value, std::string_view expected,
                     std::string_view file) {
  const bool is_number = expected.find("number") != expected.npos || expected.starts_with("an integer");
  const json::value meant = is_number ? meant_number(value) : json::value();
  if (meant.is_null() || (meant.is_double() && expected.starts_with("an integer")))
    return fmt::format("correct it, or take {} from the original model", file);
  return fmt::format("write \"{}\": {}{}", key, written_json(meant), value.is_string() ? ", without quotes" : "");
}

// Returns the last part of a key of config.json that transformers reads, but does not save with models of some classes,
// with its value as JSON and where that is from. Source: configuration_gpt2.py, configuration_cohere2.py, and
// modeling_falcon_h1.py of transformers (Apache-2.0).
std::string help_for_left_out(const std::string& key, const json::object& config) {
  const auto number = [&](std::string_view name) {
    const json::value* const value = config.if_contains(name);
    return value ? whole_number(*value).value_or(0) : 0;
  };
  if (key == "n_ctx" && number("n_positions") > 0)
    return fmt::format("\"n_ctx\": {}, the value of n_positions", number("n_positions"));
  if (key == "rotary_pct") return "\"rotary_pct\": 1.0, unless only a part of each head is rotated";
  const std::int64_t width = number("hidden_size"), heads = number("num_attention_heads");
  if (key == "head_dim" && width > 0 && heads > 0 && width % heads == 0)
    return fmt::format("\"head_dim\": {}, which is hidden_size / num_attention_heads", width / heads);
  return {};
}

}  // namespace

void Facts::add_keys(const ValueRule& rule, Busy& seen, std::vector<KeyOfFile>& into) const {
  constexpr std::string_view kRoot = "root.", kRope = "rope.", kParameters = "rope_parameters.";
  for (const std::string& name : rule.names) {
    const auto value = values_.find(name);
    const bool is_own = value != values_.end() && !seen.contains(name);
    if (is_own && seen.size() < kDeepestValues) {
      seen.insert(name);
      add_keys(value->second, seen, into);
      if (rule.kind == ValueRule::Kind::kFirstKey) return;
      continue;
    }
    const json::value* const found = find(name);
    if (!found) continue;
    const std::string_view top = std::string_view(name).substr(0, name.find('.'));
    std::string key = name;
    if (name.starts_with(kRoot)) {
      key = name.substr(kRoot.size());
    } else if (name.starts_with(kRope) || name.starts_with(kParameters)) {
      key = name.substr(name.find('.') + 1);
      for (const char* const object : {"rope_parameters", "rope_scaling"})
        if (const json::value* const given = config_.if_contains(object); given && json_member(*given, key)) {
          key = fmt::format("{}.{}", object, key);
          break;
        }
    } else if (files_.contains(top)) {
      key = name.substr(std::min(name.size(), top.size() + 1));
    } else if (set_.contains(top)) {
      continue;
    }
    into.push_back({std::move(key), *found});
    if (rule.kind == ValueRule::Kind::kFirstKey) return;
  }
  for (const ValueRule& argument : rule.arguments) add_keys(argument, seen, into);
}

Error Facts::wrong_value(const ValueRule& rule, const json::value& value, std::string_view expected,
                         const Use& use) const {
  const fs::path file = file_behind(rule, use.config);
  const std::string name = file.filename().string();
  Busy seen;
  std::vector<KeyOfFile> keys;
  add_keys(rule, seen, keys);
  const auto is_it = [&](const KeyOfFile& key) { return key.value == value; };
  if (const auto key = std::ranges::find_if(keys, is_it); key != keys.end()) {
    Error error =
        input_error(file.string(), fmt::format("{} is {}; expected {}", printable(key->name), written(value), expected),
                    help_for(key->name, value, expected, name));
    error.detail = use.is;
    return error;
  }
  const auto has_it = [&](const KeyOfFile& key) {
    const json::array* const list = key.value.if_array();
    return list && std::ranges::find(*list, value) != list->end();
  };
  if (const auto key = std::ranges::find_if(keys, has_it); key != keys.end()) {
    Error error =
        input_error(file.string(),
                    fmt::format("{} has the element {}; expected {}", printable(key->name), written(value), expected),
                    fmt::format("correct it, or take {} from the original model", name));
    error.detail = use.is;
    return error;
  }
  std::vector<std::string> from;
  for (const KeyOfFile& key : keys) from.push_back(fmt::format("{} ({})", printable(key.name), written(key.value)));
  return input_error(file.string(), use.otherwise,
                     from.empty() ? fmt::format("the value is computed at {}", rule.place)
                                  : fmt::format("it is computed from {}: correct these in {}", list_some(from), name));
}

std::optional<Error> Facts::wrong_argument(std::span<const ValueRule> rules, std::span<const json::value> values,
                                           const Error& error) const {
  for (std::size_t i = 0; i < rules.size() && i < values.size(); ++i) {
    const json::value& value = values[i];
    const std::string text =
        value.is_double() && !std::isfinite(value.get_double()) ? fmt::format("{}", value.get_double()) : shown(value);
    for (const char* const expected : {"a number", "a finite number", "an integer", "an integer from 0 to 2^63 - 1"}) {
      if (error.what != fmt::format("{} is not {}", text, expected)) continue;
      Busy seen;
      std::vector<KeyOfFile> keys;
      add_keys(rules[i], seen, keys);
      if (std::ranges::find(keys, value, &KeyOfFile::value) != keys.end())
        return wrong_value(rules[i], value, expected, {folder_ / "config.json", "", ""});
    }
  }
  return {};
}

Error Facts::missing_values(std::vector<std::string> names, fs::path config, std::string use,
                            std::string_view place) const {
  fs::path where = std::move(config);
  std::vector<std::string> keys;  // of `where`, each once
  for (const std::string& name : names) {
    const auto file = files_.find(name.substr(0, name.find('.')));
    if (file != files_.end()) where = file->second;
    std::string key = file == files_.end() ? name : name.substr(name.find('.') + 1);
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
  }
  const std::string file = where.filename().string();
  if (keys.empty())
    return input_error(where.string(), "a value that the map computes is missing",
                       fmt::format("{}see {}", use.empty() ? "" : use + ", ", place));
  const std::string all = fmt::format("'{}'", fmt::join(keys, "' or '"));
  Error error = input_error(where.string(), all + " is missing");
  if (file != "config.json" && !fs::exists(where))
    error = input_error(where.parent_path().string(), fmt::format("has no {}, with {}", file, all));
  error.detail = std::move(use);
  for (const std::string& key : keys)
    if (const std::string text = help_for_left_out(key, config_); error.help.empty() && !text.empty())
      error.help = fmt::format("add {}, to {}", text, file);
  if (error.help.empty())
    error.help = fmt::format("take {} from the original model, or add \"{}\" to it", file, keys.front());
  return error;
}

}  // namespace ggufmill::huggingface
