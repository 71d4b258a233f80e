#include "stages/huggingface/map/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/value_functions.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

json::value constant_of(const ConfigNode& node) {
  if (node.quoted) return json::value(node.scalar);
  if (node.scalar == "true") return json::value(true);
  if (node.scalar == "false") return json::value(false);
  const char *begin = node.scalar.data(), *end = begin + node.scalar.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(begin, end, integer); error == std::errc() && at == end) return integer;
  double real = 0;
  if (const auto [at, error] = std::from_chars(begin, end, real); error == std::errc() && at == end) return real;
  return nullptr;
}

constexpr int kDeepestRule = 16;

Result<ValueRule> read_rule(const ConfigNode& node, int depth);

Result<ValueRule> read_call(const ConfigNode& node, int depth) {
  ValueRule rule;
  rule.kind = ValueRule::Kind::kCall;
  if (node.entries.size() != 1) return error_at(node, "expected one function", "for example {first: [head_dim, 64]}");
  const std::string& name = node.entries[0].key;
  const auto found = std::ranges::find(value_functions(), name, &ValueFunction::name);
  if (found == value_functions().end()) {
    std::vector<std::string> known;
    for (const ValueFunction& function : value_functions()) known.emplace_back(function.name);
    const std::string meant = did_you_mean(name, known);
    return error_at(
        node.text, node.entries[0].position, fmt::format("unknown function '{}'", name),
        meant.empty() ? "`ggufmill architectures --functions` lists them" : fmt::format("did you mean '{}'?", meant));
  }
  rule.function = &*found;
  const ConfigNode& given = node.entries[0].value;
  const std::span<const ConfigNode> arguments =
      given.is_list() ? std::span<const ConfigNode>(given.items) : std::span<const ConfigNode>(&given, 1);
  const bool is_short = arguments.size() < found->least;
  if (is_short || arguments.size() > found->most) {
    const std::string_view bound = found->least == found->most ? "" : is_short ? "at least " : "at most ";
    return error_at(given, fmt::format("{} takes {}{}, not {}", name, bound,
                                       counted(is_short ? found->least : found->most, "value"), arguments.size()));
  }
  for (const ConfigNode& argument : arguments) {
    BOOST_OUTCOME_TRY(rule.arguments.emplace_back(), read_rule(argument, depth + 1));
  }
  return rule;
}

Result<ValueRule> read_rule(const ConfigNode& node, int depth) {
  if (depth > kDeepestRule) return error_at(node, fmt::format("functions are nested deeper than {}", kDeepestRule));
  ValueRule rule;
  if (node.is_map()) {
    BOOST_OUTCOME_TRY(rule, read_call(node, depth));
  } else if (node.is_list()) {
    rule.kind = ValueRule::Kind::kFirstKey;
    for (const ConfigNode& item : node.items) {
      if (!item.is_scalar() || item.quoted) return error_at(item, "expected a list of config.json names");
      rule.names.push_back(item.scalar);
    }
  } else if (node.is_scalar() && (node.quoted || node.scalar != "null")) {
    rule.constant = constant_of(node);
    if (rule.constant.is_null()) {
      rule.kind = ValueRule::Kind::kName;
      rule.names.push_back(node.scalar);
    }
  }
  rule.place = origin_of(node).where;
  return rule;
}

// Copies the members of `from` to `into`, replacing members of the same name.
void merge(json::object& into, const json::value& from) {
  if (const json::object* members = from.if_object())
    for (const auto& member : *members) into[member.key()] = member.value();
}

// The first name is the one that transformers uses.
constexpr std::string_view kTextKeys[] = {
    "text_config", "llm_config", "lm_config", "thinker_config", "language_config", "lfm", "transformer_layer_config"};

// Returns the text model's configuration in a checkpoint of several models: the value of the last of the names that
// exists.
json::value text_config(const json::object& config) {
  json::value found;
  for (const std::string_view name : kTextKeys) {
    const json::value* value = config.if_contains(name);
    if (value && name == "thinker_config") value = json_member(*value, "text_config");
    if (value) found = *value;
  }
  return found;
}

const json::value* first_member(const json::object& config, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const json::value* value = config.if_contains(name)) return value;
  return nullptr;
}

// Normalizes the rotary embedding settings of all generations of config.json to `rope_parameters`.
json::object rope_parameters(const json::object& config) {
  json::object rope;
  if (const json::value* given = first_member(config, {"rope_parameters", "rope_scaling"})) merge(rope, *given);
  if (rope.contains("full_attention") || rope.contains("sliding_attention")) return rope;
  const auto take = [&](std::string_view name, const json::value* value) {
    if (value && !value->is_null() && !rope.contains(name)) rope[name] = *value;
  };
  const json::value* local = first_member(
      config, {"local_rope_theta", "rope_local_theta", "rope_theta_local", "swa_rope_theta", "rope_local_base_freq"});
  if (local && !local->is_null()) rope["sliding_attention"] = json::object{{"rope_theta", *local}};
  take("rope_theta", first_member(config, {"global_rope_theta", "rope_global_theta", "rope_theta_global", "rope_theta",
                                           "rotary_emb_base"}));
  const json::value* type = rope.if_contains("type");
  const json::value kind = type ? *type : json::value();
  take("rope_type", &kind);
  take("partial_rotary_factor", first_member(config, {"partial_rotary_factor", "rope_pct", "rope_percent"}));
  take("original_max_position_embeddings", first_member(config, {"original_max_position_embeddings"}));
  return rope;
}

// A map may be untrusted: with kDeepestValues, which bounds the depth of the stack, this bounds the time of a lookup,
// however its values refer to each other.
constexpr std::size_t kMaxSteps = 1'000'000;

}  // namespace

Result<ValueRule> read_value_rule(const ConfigNode& node) { return read_rule(node, 0); }

std::span<const std::string_view> text_model_keys() { return kTextKeys; }

std::string whole_class(const json::object& config) {
  const json::value* const list = config.if_contains("architectures");
  const json::array* const names = list ? list->if_array() : nullptr;
  return names && !names->empty() && names->front().is_string() ? std::string(names->front().get_string())
                                                                : std::string();
}

std::string checkpoint_class(const json::object& config) {
  const json::value text = text_config(config);
  if (text.is_object())
    if (std::string name = whole_class(text.get_object()); !name.empty()) return name;
  if (std::string name = whole_class(config); !name.empty()) return name;
  if (const json::value* ssm = config.if_contains("ssm_cfg"))
    return std::string(json_string(*ssm, "layer").value_or("Mamba")) + "ForCausalLM";
  return {};
}

Facts::Facts(fs::path folder, json::object config, const std::map<std::string, ValueRule>& values)
    : folder_(std::move(folder)), config_(std::move(config)), values_(values) {
  set_["root"] = config_;
  merge(config_, text_config(config_));
  if (const json::value* const thinker = config_.if_contains("thinker_config"))
    for (const std::string_view name : {"vision_config", "audio_config"})
      if (const json::value* const found = json_member(*thinker, name); found && !config_.contains(name))
        config_[name] = json::value(*found);
  read_rope();
}

void Facts::read_rope() {
  const json::object rope = rope_parameters(config_);
  const json::value* full = rope.if_contains("full_attention");
  set_["rope"] = full ? *full : json::value(rope);
  set_["rope_parameters"] = rope;
}

void Facts::set(std::string name, json::value value) { set_[std::move(name)] = std::move(value); }

void Facts::set(std::string name, json::value value, fs::path file) {
  files_[name] = std::move(file);
  set(std::move(name), std::move(value));
}

const fs::path* Facts::find_file(const ValueRule& rule, Busy& seen) const {
  for (const std::string& name : rule.names) {
    if (const auto file = files_.find(name.substr(0, name.find('.'))); file != files_.end()) return &file->second;
    const auto value = values_.find(name);
    if (value == values_.end() || seen.size() == kDeepestValues || !seen.insert(name).second) continue;
    if (const fs::path* const found = find_file(value->second, seen)) return found;
  }
  for (const ValueRule& argument : rule.arguments)
    if (const fs::path* const found = find_file(argument, seen)) return found;
  return nullptr;
}

fs::path Facts::file_behind(const ValueRule& rule, fs::path config) const {
  Busy seen;
  const fs::path* const file = find_file(rule, seen);
  return file ? *file : std::move(config);
}

void Facts::add_to_config(std::string_view key, json::value value) {
  config_[key] = std::move(value);
  read_rope();
}

std::optional<fs::path> Facts::file(std::string_view name) const {
  const fs::path path = folder_ / name;
  if (!is_file(path)) return {};
  files_read_.insert(path);
  return path;
}

void Facts::set_tensors(std::vector<std::string> names, TensorReader read, RowCounter rows, RowCounter columns,
                        IntegerReader integers) {
  count_rows_ = std::move(rows);
  count_columns_ = std::move(columns);
  read_integers_ = std::move(integers);
  tensors_ = std::move(names);
  read_tensor_ = std::move(read);
}

const json::value* Facts::find(std::string_view name) const {
  const std::string_view top = name.substr(0, name.find('.'));
  if (!names_read_.contains(top)) names_read_.emplace(top);
  const auto known = set_.find(top);
  const json::value* at = known != set_.end() ? &known->second : config_.if_contains(top);
  for (std::size_t begin = top.size(); at && begin < name.size();) {
    const std::string_view rest = name.substr(begin + 1), part = rest.substr(0, rest.find('.'));
    begin += 1 + part.size();
    if (const json::array* list = at->if_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      at = error == std::errc() && end == part.data() + part.size() && index < list->size() ? &(*list)[index] : nullptr;
    } else {
      at = json_member(*at, part);
    }
  }
  return at;
}

bool Facts::was_read(const std::string& key) const {
  if (names_read_.contains(key)) return true;
  if (!names_read_.contains("rope") && !names_read_.contains("rope_parameters")) return false;
  json::object without = config_;
  without.erase(key);
  return rope_parameters(without) != rope_parameters(config_);
}

bool Facts::is_null_key(const ValueRule& rule) const {
  if (rule.kind != ValueRule::Kind::kName && rule.kind != ValueRule::Kind::kFirstKey) return false;
  for (const std::string& name : rule.names)
    if (const json::value* found = values_.contains(name) ? nullptr : find(name)) return found->is_null();
  return false;
}

Result<json::value> Facts::named(const std::string& name, Search& search) const {
  if (name == "layer" && search.layer) return json::value(*search.layer);
  const auto value = values_.find(name);
  if (value != values_.end() && !search.busy.contains(name)) {
    if (search.busy.size() == kDeepestValues)
      return input_error(
          value->second.place,
          fmt::format("values refer to one another more than {} levels deep, down to '{}'", kDeepestValues, name));
    search.busy.insert(name);
    auto result = evaluate(value->second, search);
    search.busy.erase(name);
    return result;
  }
  const json::value* found = find(name);
  if (found && !found->is_null()) return *found;
  if (search.missing) search.missing->push_back(name);
  return json::value();
}

Result<json::value> Facts::call(const ValueFunction& function, std::span<const json::value> arguments) const {
  const auto list = std::ranges::find_if(arguments, &json::value::is_array);
  if (!function.by_element || list == arguments.end()) return function.apply(arguments, *this);
  const std::size_t length = list->get_array().size();
  if (length == 0) return input_error({}, "a list is empty");
  for (const json::value& each : arguments)
    if (each.is_array() && each.get_array().size() != length)
      return input_error({}, fmt::format("lists have different lengths, {} and {}", length, each.get_array().size()));
  json::array result;
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<json::value> elements;
    for (const json::value& each : arguments) elements.push_back(each.is_array() ? each.get_array()[i] : each);
    BOOST_OUTCOME_TRY(json::value made, function.apply(elements, *this));
    result.push_back(std::move(made));
  }
  return json::value(std::move(result));
}

Result<json::value> Facts::evaluate(const ValueRule& rule, Search& search) const {
  if (++search.steps > kMaxSteps)
    return input_error(rule.place, fmt::format("computing the value takes more than {} steps", kMaxSteps));
  switch (rule.kind) {
    case ValueRule::Kind::kConstant:
      return rule.constant;
    case ValueRule::Kind::kName:
      return named(rule.names.front(), search);
    case ValueRule::Kind::kFirstKey:
      // An existing key counts even if it is null.
      for (const std::string& name : rule.names)
        if (values_.contains(name) || find(name)) return named(name, search);
      if (search.missing) search.missing->insert(search.missing->end(), rule.names.begin(), rule.names.end());
      return json::value();
    case ValueRule::Kind::kCall:
      break;
  }
  std::vector<json::value> arguments;
  for (const ValueRule& argument : rule.arguments) {
    BOOST_OUTCOME_TRY(arguments.emplace_back(), evaluate(argument, search));
    search.weight += weight_of(arguments.back());
    if (search.weight > kMaxWeight)
      return input_error(rule.place,
                         fmt::format("computing the value takes more than {} elements of lists", kMaxWeight));
  }
  auto result = call(*rule.function, arguments);
  if (!result && result.error().where.empty()) {
    if (auto wrong = wrong_argument(rule.arguments, arguments, result.error())) return std::move(*wrong);
    Error error = std::move(result).error();
    error.where = file_behind(rule, folder_ / "config.json").string();
    error.detail = fmt::format("required by {} at {}", rule.function->name, rule.place);
    return error;
  }
  return result;
}

Result<json::value> Facts::evaluate(const ValueRule& rule, std::vector<std::string>* missing,
                                    std::optional<std::uint32_t> layer) const {
  Search search{missing, layer, {}, 0, 0};
  return evaluate(rule, search);
}

Result<bool> Facts::holds(const ValueRule& rule) const {
  BOOST_OUTCOME_TRY(const json::value value, evaluate(rule));
  return is_true(value);
}

Result<bool> Facts::holds(const std::optional<ValueRule>& when) const {
  return when ? holds(*when) : Result<bool>(true);
}

Result<std::uint64_t> Facts::as_count(const json::value& value, const ValueRule& rule, std::string_view what) const {
  const auto found = whole_number(value);
  if (!found || *found < 0)
    return wrong_value(rule, value, "an integer from 0 to 2^63 - 1",
                       {folder_ / "config.json", fmt::format("it is {}", what),
                        fmt::format("{} is {}, not an integer from 0 to 2^63 - 1", what, shown(value))});
  return static_cast<std::uint64_t>(*found);
}

Result<std::uint64_t> Facts::count(const ValueRule& rule, std::string_view what) const {
  std::vector<std::string> missing;
  BOOST_OUTCOME_TRY(const json::value value, evaluate(rule, &missing));
  if (value.is_null())
    return input_error(
        (folder_ / "config.json").string(), fmt::format("{} is missing: '{}'", what, fmt::join(missing, "', '")),
        missing.empty()
            ? fmt::format("required by the map at {}", rule.place)
            : fmt::format("take config.json from the original model, or add \"{}\" to it", missing.front()));
  return as_count(value, rule, what);
}

Result<CountByLayer> Facts::count_by_layer(const ValueRule& rule, std::string_view what) const {
  BOOST_OUTCOME_TRY(const json::value value, evaluate(rule));
  CountByLayer result;
  const json::array* const list = value.if_array();
  if (!list) {
    BOOST_OUTCOME_TRY(result.counts[0], count(rule, what));
    return result;
  }
  result.counts.clear();
  for (const json::value& each : *list) {
    BOOST_OUTCOME_TRY(result.counts.emplace_back(), as_count(each, rule, what));
  }
  return result;
}

Result<std::vector<bool>> Facts::flags(const ValueRule& rule) const {
  BOOST_OUTCOME_TRY(const json::value value, evaluate(rule));
  std::vector<bool> flags;
  if (value.is_null()) return flags;
  const json::array* const list = value.if_array();
  if (!list)
    return wrong_value(
        rule, value, "a list of true and false",
        {folder_ / "config.json", "it says which layers have a tensor", shown(value) + " is not a list of flags"});
  for (const json::value& each : *list) flags.push_back(is_true(each));
  return flags;
}

}  // namespace ggufmill::huggingface
