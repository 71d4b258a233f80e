#include "stages/huggingface/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using Arguments = std::span<const json::value>;

Error wrong(std::string what) { return {ExitCode::kBadInput, "", std::move(what), "", ""}; }

std::string shown(const json::value& value) { return quoted_name(json::serialize(value), 60); }

std::optional<std::int64_t> whole(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64() && value.get_uint64() <= INT64_MAX) return static_cast<std::int64_t>(value.get_uint64());
  if (value.is_bool()) return value.get_bool() ? 1 : 0;
  return {};
}

std::optional<double> number(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (const auto integer = whole(value)) return static_cast<double>(*integer);
  return {};
}

Result<double> number_of(const json::value& value) {
  if (const auto found = number(value)) return *found;
  return wrong(fmt::format("{} is no number", shown(value)));
}

Result<std::int64_t> whole_of(const json::value& value) {
  if (const auto found = whole(value)) return *found;
  return wrong(fmt::format("{} is no whole number", shown(value)));
}

Result<const json::array*> array_of(const json::value& value) {
  if (const json::array* found = value.if_array()) return found;
  return wrong(fmt::format("{} is no list", shown(value)));
}

bool any_missing(Arguments arguments) {
  return std::ranges::any_of(arguments, [](const json::value& each) { return each.is_null(); });
}

bool same(const json::value& a, const json::value& b) {
  const auto x = number(a), y = number(b);
  return x && y ? *x == *y : a == b;
}

// Of whole numbers a whole number, as in Python; else in double precision, from left to right.
template <class Whole, class Float>
Result<json::value> combine(Arguments arguments, Whole whole_step, Float float_step) {
  if (any_missing(arguments)) return json::value();
  json::value result = arguments[0];
  for (const json::value& next : arguments.subspan(1)) {
    const auto a = whole(result), b = whole(next);
    if (a && b) {
      std::int64_t into = 0;
      if (whole_step(*a, *b, &into)) return wrong(fmt::format("{} and {} give too large a number", *a, *b));
      result = into;
      continue;
    }
    BOOST_OUTCOME_TRY(const double x, number_of(result));
    BOOST_OUTCOME_TRY(const double y, number_of(next));
    result = float_step(x, y);
  }
  if (!number(result)) return wrong(fmt::format("{} is no number", shown(result)));
  return result;
}

Result<json::value> sum(Arguments a, const Facts&) {
  return combine(
      a, [](auto x, auto y, auto* into) { return __builtin_add_overflow(x, y, into); },
      [](double x, double y) { return x + y; });
}

Result<json::value> difference(Arguments a, const Facts&) {
  return combine(
      a, [](auto x, auto y, auto* into) { return __builtin_sub_overflow(x, y, into); },
      [](double x, double y) { return x - y; });
}

Result<json::value> product(Arguments a, const Facts&) {
  return combine(
      a, [](auto x, auto y, auto* into) { return __builtin_mul_overflow(x, y, into); },
      [](double x, double y) { return x * y; });
}

Result<json::value> quotient(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t x, whole_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t y, whole_of(a[1]));
  if (x < 0 || y <= 0) return wrong(fmt::format("{} cannot be divided by {}", x, y));
  return json::value(x / y);
}

Result<json::value> ratio(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  BOOST_OUTCOME_TRY(const double y, number_of(a[1]));
  if (y == 0) return wrong(fmt::format("{} cannot be divided by 0", x));
  return json::value(x / y);
}

Result<json::value> power(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  BOOST_OUTCOME_TRY(const double y, number_of(a[1]));
  return json::value(std::pow(x, y));
}

Result<json::value> logarithm(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  if (x <= 0) return wrong(fmt::format("{} has no logarithm", x));
  return json::value(std::log(x));
}

Result<json::value> truncated(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  if (!(std::abs(x) < 9e15)) return wrong(fmt::format("{} is too large for a whole number", x));
  return json::value(static_cast<std::int64_t>(x));
}

Result<json::value> largest(Arguments a, const Facts&) {
  json::value result;
  double most = -INFINITY;
  for (const json::value& each : a) {
    if (each.is_null()) continue;
    BOOST_OUTCOME_TRY(const double x, number_of(each));
    if (x > most) most = x, result = each;
  }
  return result;
}

Result<json::value> largest_of_list(Arguments a, const Facts& facts) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* list, array_of(a[0]));
  return largest({list->data(), list->size()}, facts);
}

Result<json::value> present(Arguments a, const Facts&) { return json::value(!any_missing(a)); }
Result<json::value> negation(Arguments a, const Facts&) { return json::value(!is_true(a[0])); }
Result<json::value> all(Arguments a, const Facts&) { return json::value(std::ranges::all_of(a, is_true)); }
Result<json::value> any(Arguments a, const Facts&) { return json::value(std::ranges::any_of(a, is_true)); }

Result<json::value> is_one_of(Arguments a, const Facts&) {
  return json::value(std::ranges::any_of(a.subspan(1), [&](const json::value& each) { return same(a[0], each); }));
}

Result<json::value> above(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value(false);
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  BOOST_OUTCOME_TRY(const double y, number_of(a[1]));
  return json::value(x > y);
}

Result<json::value> contains(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value(false);
  if (const json::array* list = a[0].if_array())
    return json::value(std::ranges::any_of(*list, [&](const json::value& each) { return same(each, a[1]); }));
  const auto text = json_text(a[0]), part = json_text(a[1]);
  if (!text || !part) return wrong(fmt::format("{} is neither a list nor a text", shown(a[0])));
  return json::value(text->find(*part) != std::string_view::npos);
}

Result<json::value> first(Arguments a, const Facts&) {
  for (const json::value& each : a)
    if (!each.is_null()) return each;
  return json::value();
}

Result<json::value> first_true(Arguments a, const Facts&) {
  for (const json::value& each : a)
    if (is_true(each)) return each;
  return json::value();
}

Result<json::value> choose(Arguments a, const Facts&) { return is_true(a[0]) ? a[1] : a[2]; }

Result<json::value> choice(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  std::vector<std::string> known;
  for (std::size_t i = 1; i + 1 < a.size(); i += 2) {
    if (same(a[0], a[i])) return a[i + 1];
    known.push_back(json::serialize(a[i]));
  }
  return wrong(fmt::format("{} is none of {}", shown(a[0]), fmt::join(known, ", ")));
}

Result<json::value> lower(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  const auto text = json_text(a[0]);
  if (!text) return wrong(fmt::format("{} is no text", shown(a[0])));
  std::string result(*text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return json::value(result);
}

Result<json::value> length(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  if (const json::object* object = a[0].if_object()) return json::value(object->size());
  BOOST_OUTCOME_TRY(const json::array* list, array_of(a[0]));
  return json::value(list->size());
}

Result<json::value> item(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* list, array_of(a[0]));
  BOOST_OUTCOME_TRY(std::int64_t at, whole_of(a[1]));
  if (at < 0) at += static_cast<std::int64_t>(list->size());
  if (at < 0 || at >= static_cast<std::int64_t>(list->size())) return json::value();
  return (*list)[static_cast<std::size_t>(at)];
}

Result<json::value> list(Arguments a, const Facts&) { return json::value(json::array(a.begin(), a.end())); }

constexpr std::int64_t kMostItems = 100'000;

Result<std::int64_t> items_of(const json::value& count) {
  BOOST_OUTCOME_TRY(const std::int64_t items, whole_of(count));
  if (items < 0 || items > kMostItems)
    return wrong(fmt::format("a list of {} items; from 0 to {} are possible", items, kMostItems));
  return items;
}

Result<json::value> repeat(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  return json::value(json::array(static_cast<std::size_t>(items), a[0]));
}

Result<json::value> pad(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  json::array result = *from;
  result.resize(static_cast<std::size_t>(items), a[2]);
  return json::value(std::move(result));
}

Result<json::value> slice(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t begin, items_of(a[1]));
  BOOST_OUTCOME_TRY(const std::int64_t count, items_of(a[2]));
  json::array result;
  for (std::int64_t i = begin; i < begin + count && i < static_cast<std::int64_t>(from->size()); ++i)
    result.push_back((*from)[static_cast<std::size_t>(i)]);
  return json::value(std::move(result));
}

// For every element of a list.
template <class F>
Result<json::value> each(const json::value& value, const F& f) {
  if (value.is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(value));
  json::array result;
  for (const json::value& element : *from) result.push_back(f(element));
  return json::value(std::move(result));
}

Result<json::value> each_is(Arguments a, const Facts&) {
  return each(a[0], [&](const json::value& element) {
    return json::value(
        std::ranges::any_of(a.subspan(1), [&](const json::value& other) { return same(element, other); }));
  });
}

Result<json::value> each_true(Arguments a, const Facts&) {
  return each(a[0], [](const json::value& element) { return json::value(is_true(element)); });
}

Result<json::value> each_not(Arguments a, const Facts&) {
  return each(a[0], [](const json::value& element) { return json::value(!is_true(element)); });
}

Result<json::value> each_choose(Arguments a, const Facts&) {
  return each(a[0], [&](const json::value& element) { return is_true(element) ? a[1] : a[2]; });
}

Result<json::value> each_choice(Arguments a, const Facts& facts) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  json::array result;
  for (const json::value& element : *from) {
    std::vector<json::value> one(a.begin(), a.end());
    one[0] = element;
    BOOST_OUTCOME_TRY(json::value chosen, choice(one, facts));
    result.push_back(std::move(chosen));
  }
  return json::value(std::move(result));
}

Result<json::value> every(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t period, whole_of(a[1]));
  BOOST_OUTCOME_TRY(const std::int64_t place, whole_of(a[2]));
  if (period <= 0) return wrong(fmt::format("a period of {}", period));
  json::array result;
  for (std::int64_t i = 0; i < items; ++i) result.push_back(i % period == place);
  return json::value(std::move(result));
}

Result<json::value> sorted_values(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  const json::object* object = a[0].if_object();
  if (!object) return wrong(fmt::format("{} is no object", shown(a[0])));
  std::vector<std::pair<std::string, json::value>> members;
  for (const auto& member : *object) members.emplace_back(member.key(), member.value());
  std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
  json::array result;
  for (auto& member : members) result.push_back(std::move(member.second));
  return json::value(std::move(result));
}

Result<json::value> file(Arguments a, const Facts& facts) {
  const auto name = json_text(a[0]);
  if (!name || name->starts_with('/') || name->find("..") != std::string_view::npos)
    return wrong(fmt::format("{} is no file name", shown(a[0])));
  return json::value(is_file(facts.folder() / *name));
}

// A member of another JSON file of the folder.
Result<json::value> file_value(Arguments a, const Facts& facts) {
  BOOST_OUTCOME_TRY(const json::value there, file(a.first(1), facts));
  if (!there.get_bool()) return json::value();
  BOOST_OUTCOME_TRY(const json::value content, read_json((facts.folder() / *json_text(a[0])).string()));
  const json::value* at = &content;
  for (const json::value& name : a.subspan(1)) {
    at = json_member(*at, json_text(name).value_or(""));
    if (!at) return json::value();
  }
  return *at;
}

Result<json::value> has_tensor(Arguments a, const Facts& facts) {
  const auto name = json_text(a[0]);
  if (!name) return wrong(fmt::format("{} is no name", shown(a[0])));
  return json::value(std::ranges::find(facts.tensors(), *name) != facts.tensors().end());
}

Result<json::value> layers_of(Arguments a, const Facts& facts) {
  const auto text = json_text(a[0]);
  std::int64_t layers = 0;
  for (const std::string& name : facts.tensors()) {
    if (!text || !name.starts_with(*text)) continue;
    std::int64_t number = -1;
    std::from_chars(name.data() + text->size(), name.data() + std::min(name.size(), text->size() + 6), number);
    layers = std::max(layers, number + 1);
  }
  return json::value(layers);
}

// Of sentence embeddings, as the file of the Pooling module says it: 1 mean, 2 CLS, 3 last.
Result<json::value> pooling_type(Arguments, const Facts& facts) {
  const std::filesystem::path modules = facts.folder() / "modules.json";
  if (!is_file(modules)) return json::value();
  BOOST_OUTCOME_TRY(const json::value content, read_json(modules.string()));
  const json::array* all_modules = content.if_array();
  std::optional<std::string> folder;
  if (all_modules)
    for (const json::value& module : *all_modules)
      if (json_string(module, "type").value_or("").ends_with("Pooling") && !folder)
        folder = std::string(json_string(module, "path").value_or(""));
  if (!folder) return json::value();
  if (folder->find("..") != std::string::npos || folder->starts_with('/'))
    return wrong(fmt::format("modules.json names the folder '{}', which is outside of the checkpoint", *folder));
  BOOST_OUTCOME_TRY(const json::value pooling, read_json((facts.folder() / *folder / "config.json").string()));
  const std::string_view mode = json_string(pooling, "pooling_mode").value_or("");
  if (json_flag(pooling, "pooling_mode_mean_tokens")) return json::value(1);
  if (json_flag(pooling, "pooling_mode_cls_token")) return json::value(2);
  if (json_flag(pooling, "pooling_mode_lasttoken")) return json::value(3);
  if (mode == "mean") return json::value(1);
  if (mode == "cls") return json::value(2);
  if (mode == "lasttoken") return json::value(3);
  return wrong(fmt::format("{}/config.json asks for a pooling that is none of mean, cls and lasttoken", *folder));
}

// Layers with a sliding window: letters in turn, of which L has one ("LLLG"), or a number, of which the last has none.
Result<json::value> window_pattern(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  const auto text = json_text(a[0]);
  const auto period = text ? static_cast<std::int64_t>(text->size()) : whole(a[0]).value_or(0);
  if (period <= 0) return wrong(fmt::format("{} is no pattern of layers", shown(a[0])));
  json::array result;
  for (std::int64_t i = 0; i < items; ++i)
    result.push_back(text ? (*text)[static_cast<std::size_t>(i % period)] == 'L' : (i + 1) % period != 0);
  return json::value(std::move(result));
}

constexpr std::size_t kMany = 64;
constexpr ValueFunction kFunctions[] = {
    {"above", 2, 2, "Whether the first number is greater than the second.", above},
    {"all", 1, kMany, "Whether all are true.", all},
    {"any", 1, kMany, "Whether one is true.", any},
    {"choice", 3, kMany, "Of a value and pairs: what stands beside the value; another value is an error.", choice},
    {"choose", 3, 3, "The second where the first is true, else the third.", choose},
    {"contains", 2, 2, "Whether a list has a value, or a text a part.", contains},
    {"difference", 2, kMany, "The first less the others.", difference},
    {"each_choice", 3, kMany, "`choice` for every element of a list.", each_choice},
    {"each_choose", 3, 3, "For every element of a list: the second where it is true, else the third.", each_choose},
    {"each_is", 2, kMany, "For every element of a list whether it is one of the others.", each_is},
    {"each_not", 1, 1, "For every element of a list whether it is not true.", each_not},
    {"each_true", 1, 1, "For every element of a list whether it is true.", each_true},
    {"every", 3, 3, "A list of so many flags: true where the index modulo the second is the third.", every},
    {"file", 1, 1, "Whether the folder has a file of that name.", file},
    {"file_value", 2, 8, "A member of another JSON file of the folder: its name, then the names on the way.",
     file_value},
    {"first", 1, kMany, "The first that is there and not null.", first},
    {"first_true", 1, kMany, "The first that is true.", first_true},
    {"has_tensor", 1, 1, "Whether the checkpoint has a tensor of that name.", has_tensor},
    {"int", 1, 1, "Without what follows the point.", truncated},
    {"is", 2, kMany, "Whether the first is one of the others.", is_one_of},
    {"item", 2, 2, "The element of a list at an index; a negative one counts from the end.", item},
    {"largest", 1, kMany, "The largest of those that are there.", largest},
    {"largest_of", 1, 1, "The largest element of a list.", largest_of_list},
    {"layers_of", 1, 1, "One more than the largest number that follows this text in the checkpoint's names.",
     layers_of},
    {"length", 1, 1, "The number of elements of a list, or of members of an object.", length},
    {"list", 1, kMany, "A list of these.", list},
    {"log", 1, 1, "The natural logarithm.", logarithm},
    {"lower", 1, 1, "A text in lower case.", lower},
    {"not", 1, 1, "Whether it is not true.", negation},
    {"pad", 3, 3, "A list of that length: the list's elements, then the third value.", pad},
    {"pooling_type", 0, 1, "How sentence embeddings are pooled, as modules.json says.", pooling_type},
    {"power", 2, 2, "The first to the power of the second.", power},
    {"present", 1, kMany, "Whether all are there and not null.", present},
    {"product", 2, kMany, "The product.", product},
    {"quotient", 2, 2, "The whole part of a quotient of whole numbers.", quotient},
    {"ratio", 2, 2, "The quotient of two numbers.", ratio},
    {"repeat", 2, 2, "A list of so many times the first.", repeat},
    {"slice", 3, 3, "Of a list, from an index on, so many elements.", slice},
    {"sorted_values", 1, 1, "The values of an object in the order of their names.", sorted_values},
    {"sum", 2, kMany, "The sum.", sum},
    {"window_pattern", 2, 2, "Which of so many layers have a sliding window, by letters or a period.", window_pattern},
};

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
  const auto found = std::ranges::find(kFunctions, name, &ValueFunction::name);
  if (found == std::end(kFunctions)) {
    std::vector<std::string> known;
    for (const ValueFunction& function : kFunctions) known.emplace_back(function.name);
    const std::string meant = did_you_mean(name, known);
    return error_at(
        node.text, node.entries[0].position, fmt::format("unknown function '{}'", name),
        meant.empty() ? "`ggufmill architectures --functions` lists them" : fmt::format("did you mean '{}'?", meant));
  }
  rule.function = found;
  const ConfigNode& given = node.entries[0].value;
  const std::span<const ConfigNode> arguments =
      given.is_list() ? std::span<const ConfigNode>(given.items) : std::span<const ConfigNode>(&given, 1);
  if (arguments.size() < found->least || arguments.size() > found->most)
    return error_at(given,
                    found->least == found->most
                        ? fmt::format("{} takes {} values, not {}", name, found->least, arguments.size())
                        : fmt::format("{} takes {} values or more, not {}", name, found->least, arguments.size()));
  for (const ConfigNode& argument : arguments) {
    BOOST_OUTCOME_TRY(rule.arguments.emplace_back(), read_rule(argument, depth + 1));
  }
  return rule;
}

Result<ValueRule> read_rule(const ConfigNode& node, int depth) {
  if (depth > kDeepestRule) return error_at(node, fmt::format("functions nested deeper than {}", kDeepestRule));
  ValueRule rule;
  if (node.is_map()) {
    BOOST_OUTCOME_TRY(rule, read_call(node, depth));
  } else if (node.is_list()) {
    rule.kind = ValueRule::Kind::kFirstKey;
    for (const ConfigNode& item : node.items) {
      if (!item.is_scalar() || item.quoted) return error_at(item, "a list holds names of config.json here");
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

// Members of `from` take the place of those of the same name.
void merge(json::object& into, const json::value& from) {
  if (const json::object* members = from.if_object())
    for (const auto& member : *members) into[member.key()] = member.value();
}

// Where the text model of a checkpoint of several models stands; the first name is what transformers calls it.
json::value text_config(const json::object& config) {
  json::value found;
  for (const std::string_view name : {"text_config", "llm_config", "lm_config"})
    if (const json::value* value = config.if_contains(name)) found = *value;
  if (const json::value* thinker = config.if_contains("thinker_config"))
    if (const json::value* text = json_member(*thinker, "text_config")) found = *text;
  for (const std::string_view name : {"language_config", "lfm"})
    if (const json::value* value = config.if_contains(name)) found = *value;
  return found;
}

const json::value* first_member(const json::object& config, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const json::value* value = config.if_contains(name)) return value;
  return nullptr;
}

// Rotary embedding in one form, whichever generation of config.json says it: all of it as `rope_parameters`.
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

// A map may be anybody's: neither the stack nor the time of a look-up grows with what its values ask of one another.
constexpr std::size_t kDeepestValues = 64, kMostSteps = 1'000'000;

}  // namespace

std::span<const ValueFunction> value_functions() { return kFunctions; }

Result<ValueRule> read_value_rule(const ConfigNode& node) { return read_rule(node, 0); }

bool is_true(const json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (value.is_string()) return !value.get_string().empty();
  if (value.is_array()) return !value.get_array().empty();
  if (value.is_object()) return !value.get_object().empty();
  return number(value).value_or(0) != 0;
}

std::string checkpoint_class(const json::object& config) {
  const auto first_of = [](const json::value* list) {
    const json::array* names = list ? list->if_array() : nullptr;
    return names && !names->empty() && names->front().is_string() ? std::string(names->front().get_string())
                                                                  : std::string();
  };
  const json::value text = text_config(config);
  if (std::string name = first_of(json_member(text, "architectures")); !name.empty()) return name;
  if (std::string name = first_of(config.if_contains("architectures")); !name.empty()) return name;
  if (const json::value* ssm = config.if_contains("ssm_cfg"))
    return std::string(json_string(*ssm, "layer").value_or("Mamba")) + "ForCausalLM";
  return {};
}

Facts::Facts(std::filesystem::path folder, json::object config, const std::map<std::string, ValueRule>& values)
    : folder_(std::move(folder)), config_(std::move(config)), values_(values) {
  set_["root"] = config_;
  merge(config_, text_config(config_));
  const json::object rope = rope_parameters(config_);
  const json::value* full = rope.if_contains("full_attention");
  set_["rope"] = full ? *full : json::value(rope);
  set_["rope_parameters"] = rope;
}

void Facts::set(std::string name, json::value value) { set_[std::move(name)] = std::move(value); }

void Facts::set_tensors(std::vector<std::string> names) { tensors_ = std::move(names); }

const json::value* Facts::find(std::string_view name) const {
  const std::string_view top = name.substr(0, name.find('.'));
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

Result<json::value> Facts::named(const std::string& name, Search& search) const {
  if (name == "layer" && search.layer) return json::value(*search.layer);
  const auto value = values_.find(name);
  if (value != values_.end() && !search.busy.contains(name)) {
    if (search.busy.size() == kDeepestValues)
      return input_error(
          value->second.place,
          fmt::format("values that ask for one another more than {} deep, down to '{}'", kDeepestValues, name));
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

Result<json::value> Facts::evaluate(const ValueRule& rule, Search& search) const {
  if (++search.steps > kMostSteps)
    return input_error(rule.place, fmt::format("a value that takes more than {} steps to find", kMostSteps));
  switch (rule.kind) {
    case ValueRule::Kind::kConstant:
      return rule.constant;
    case ValueRule::Kind::kName:
      return named(rule.names.front(), search);
    case ValueRule::Kind::kFirstKey:
      // A key that is there counts even where it holds null.
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
  }
  auto result = rule.function->apply(arguments, *this);
  if (!result && result.error().where.empty()) {
    Error error = std::move(result).error();
    error.where = (folder_ / "config.json").string();
    error.detail = fmt::format("{} at {} asks for it", rule.function->name, rule.place);
    return error;
  }
  return result;
}

Result<json::value> Facts::evaluate(const ValueRule& rule, std::vector<std::string>* missing,
                                    std::optional<std::uint32_t> layer) const {
  Search search{missing, layer, {}, 0};
  return evaluate(rule, search);
}

Result<bool> Facts::holds(const ValueRule& rule) const {
  BOOST_OUTCOME_TRY(const json::value value, evaluate(rule));
  return is_true(value);
}

Result<std::uint64_t> Facts::count(const ValueRule& rule, std::string_view what) const {
  std::vector<std::string> missing;
  BOOST_OUTCOME_TRY(const json::value value, evaluate(rule, &missing));
  const std::string where = (folder_ / "config.json").string();
  if (value.is_null())
    return input_error(where, fmt::format("{} is not there: '{}'", what, fmt::join(missing, "', '")),
                       fmt::format("the map asks for it at {}", rule.place));
  const auto found = whole(value);
  if (!found || *found < 0)
    return input_error(where, fmt::format("{} is {}, which is no whole number from 0 on", what, shown(value)),
                       fmt::format("the map asks for it at {}", rule.place));
  return static_cast<std::uint64_t>(*found);
}

}  // namespace ggufmill::huggingface
