#include "stages/huggingface/map/metadata_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/json_values.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Returns the value as `type`, or nullopt if it has another type or is out of range. Numbers are infinite only if they
// `may_be_infinite`, never NaN.
std::optional<MetadataValue> as_type(MetadataType type, const json::value& value, bool may_be_infinite) {
  if (type == MetadataType::kString) {
    const auto text = json_text(value);
    if (!text) return {};
    return metadata_string(*text);
  }
  if (type == MetadataType::kBool) {
    if (value.is_bool()) return metadata_bool(value.get_bool());
    if (value.is_int64()) return metadata_bool(value.get_int64() != 0);
    return {};
  }
  if (type == MetadataType::kFloat32) {
    if (value.is_bool() || !value.is_number()) return {};
    const double number = value.to_number<double>();
    if (!std::isfinite(static_cast<float>(number)) && !(may_be_infinite && std::isinf(number))) return {};
    return metadata_float(type, number);
  }
  const auto whole = whole_number(value);
  if (!whole) return {};
  const std::int64_t number = *whole;
  const bool fits = type == MetadataType::kInt32    ? number >= INT32_MIN && number <= INT32_MAX
                    : type == MetadataType::kUint32 ? number >= 0 && number <= UINT32_MAX
                                                    : number >= 0;
  if (!fits) return {};
  return metadata_unsigned(type, static_cast<std::uint64_t>(number));
}

MetadataType element_type(const json::value& value) {
  if (value.is_bool()) return MetadataType::kBool;
  if (value.is_string()) return MetadataType::kString;
  if (value.is_double()) return MetadataType::kFloat32;
  return MetadataType::kInt32;
}

// The elements of a list have the type of the first, as in the reference, unless `type` is float32 (Python also writes
// 1.0 as 1) or uint64.
std::optional<MetadataValue> as_list(MetadataType type, const json::array& list, bool may_be_infinite) {
  const bool is_own = type == MetadataType::kFloat32 || type == MetadataType::kUint64;
  const MetadataType element = is_own ? type : element_type(list.front());
  std::vector<MetadataValue> items;
  for (const json::value& each : list) {
    if (!is_own && element_type(each) != element) return {};
    auto item = as_type(element, each, may_be_infinite);
    if (!item) return {};
    items.push_back(std::move(*item));
  }
  return metadata_array(element, items);
}

// Returns what a value of the type is, for a message about another value.
std::string_view expected(MetadataType type, const json::value& value) {
  const bool is_number = value.is_number();
  switch (type) {
    case MetadataType::kString:
      return "a string";
    case MetadataType::kBool:
      return "true or false";
    case MetadataType::kFloat32:
      return is_number ? "a number that float32 can represent" : "a number";
    case MetadataType::kInt32:
      return is_number ? "an integer from -2^31 to 2^31 - 1" : "an integer";
    case MetadataType::kUint32:
      return is_number ? "an integer from 0 to 2^32 - 1" : "an integer";
    default:
      return is_number ? "an integer from 0 to 2^63 - 1" : "an integer";
  }
}

Status set_entry(const MetadataRule& rule, const Architecture& architecture, const Facts& facts, Metadata& into) {
  std::vector<std::string> missing;
  BOOST_OUTCOME_TRY(const json::value value, facts.evaluate(rule.value, &missing));
  const std::string where = (facts.folder() / architecture.config).string(),
                    key = whole_key(rule.key, architecture.name);
  if (value.is_null()) {
    if (rule.optional) return ok();
    if (rule.type == MetadataType::kBool && facts.is_null_key(rule.value)) {  // Python treats null as false
      into.set(key, metadata_bool(false));
      return ok();
    }
    return facts.missing_values(std::move(missing), where, fmt::format("{} is made from it", key), rule.value.place);
  }
  const json::array* list = value.if_array();
  if (value.is_string() && value.get_string().empty()) return ok();
  if (list && list->empty()) {
    if (rule.optional) return ok();
    return facts.wrong_value(
        rule.value, value, "values",
        {where, fmt::format("{} is made from it", key), fmt::format("the list for {} is empty", key)});
  }
  const auto set = [&](const std::string& name, const json::value& one) -> Status {
    auto made = list ? as_list(rule.type, *list, rule.infinite) : as_type(rule.type, one, rule.infinite);
    if (!made)
      return facts.wrong_value(rule.value, one,
                               list ? "a list of values of one type, in its range" : expected(rule.type, one),
                               {where, fmt::format("{} is made from it", name),
                                fmt::format("{} is not a valid {} for {}", shown(one),
                                            list ? "list of a single type" : metadata_type_name(rule.type), name)});
    into.set(name, std::move(*made));
    return ok();
  };
  const json::object* const members = rule.by_member ? value.if_object() : nullptr;
  if (!members) return set(key, value);
  for (const auto& member : *members) {
    BOOST_OUTCOME_TRY(set(fmt::format("{}.{}", key, std::string_view(member.key())), member.value()));
  }
  return ok();
}

Status add_tokens(const std::vector<SpecialTokenData>& from, const Facts& facts, std::vector<SpecialTokenRule>& into) {
  for (const SpecialTokenData& token : from) {
    BOOST_OUTCOME_TRY(const bool wanted, facts.holds(token.when));
    if (wanted) into.push_back(token.rule);
  }
  return ok();
}

}  // namespace

std::string whole_key(const std::string& key, const std::string& architecture) {
  if (key.starts_with('.')) return key.substr(1);
  for (const char* group : {"general.", "tokenizer.", "xielu.", "diffusion."})
    if (key.starts_with(group)) return key;
  return architecture + "." + key;
}

Status set_metadata(const std::vector<MetadataRule>& rules, const Architecture& architecture, const Facts& facts,
                    Metadata& into) {
  for (const MetadataRule& rule : rules) {
    BOOST_OUTCOME_TRY(const bool wanted, facts.holds(rule.when));
    if (!wanted) continue;
    BOOST_OUTCOME_TRY(set_entry(rule, architecture, facts, into));
  }
  return ok();
}

Status choose_name(Architecture& architecture, const Facts& facts) {
  for (const OtherName& other : architecture.other_names) {
    BOOST_OUTCOME_TRY(const bool holds, facts.holds(other.when));
    if (!holds) continue;
    architecture.name = other.name;
    break;
  }
  return ok();
}

Result<TokenizerOptions> tokenizer_options(const TokenizerRules& rules, const Facts& facts) {
  TokenizerOptions options;
  for (const TokenizerRules::Reader& reader : rules.readers) {
    BOOST_OUTCOME_TRY(const bool wanted, facts.holds(reader.when));
    if (wanted) options.readers.push_back(reader.choice);
  }
  if (rules.vocabulary_size) {
    BOOST_OUTCOME_TRY(const json::value size, facts.evaluate(*rules.vocabulary_size));
    if (!size.is_null()) {
      BOOST_OUTCOME_TRY(options.vocabulary_size, facts.count(*rules.vocabulary_size, "the size of the vocabulary"));
    }
  }
  if (rules.token_types) {
    BOOST_OUTCOME_TRY(const std::uint64_t types, facts.count(*rules.token_types, "the number of token types"));
    if (types > UINT32_MAX)
      return input_error((facts.folder() / "config.json").string(),
                         fmt::format("the number of token types is {}", types),
                         fmt::format("required by the map at {}", rules.token_types->place));
    options.token_types = static_cast<std::uint32_t>(types);
  }
  options.chat_template = rules.chat_template;
  if (rules.space_prefix_of_config) {
    BOOST_OUTCOME_TRY(options.space_prefix_of_config, facts.holds(*rules.space_prefix_of_config));
  }
  options.omitted_roles = rules.omitted_roles;
  options.user_tokens = rules.user_tokens;
  options.control_tokens = rules.control_tokens;
  options.space_marks = rules.space_marks;
  BOOST_OUTCOME_TRY(add_tokens(rules.special_tokens, facts, options.special_tokens));
  BOOST_OUTCOME_TRY(const bool second, facts.holds(rules.second_when));
  if (second && !rules.second_roles.empty()) {
    options.second_pass.emplace();
    options.second_pass->roles = rules.second_roles;
    BOOST_OUTCOME_TRY(add_tokens(rules.second_tokens, facts, options.second_pass->rules));
  }
  return options;
}

}  // namespace ggufmill::huggingface
