// The named functions of value rules.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/list_functions.h"
#include "stages/huggingface/map/normal_quantile.h"
#include "stages/huggingface/map/values.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using Arguments = std::span<const json::value>;

Result<double> number_of(const json::value& value) {
  if (const auto found = number_value(value)) return *found;
  return input_error({}, fmt::format("{} is not a number", shown(value)));
}

Result<std::int64_t> whole_of(const json::value& value) {
  if (const auto found = whole_number(value)) return *found;
  return input_error({}, fmt::format("{} is not an integer", shown(value)));
}

Result<const json::array*> array_of(const json::value& value) {
  if (const json::array* found = value.if_array()) return found;
  return input_error({}, fmt::format("{} is not a list", shown(value)));
}

bool any_missing(Arguments arguments) {
  return std::ranges::any_of(arguments, [](const json::value& each) { return each.is_null(); });
}

bool same(const json::value& a, const json::value& b) {
  const auto x = number_value(a), y = number_value(b);
  return x && y ? *x == *y : a == b;
}

// Integer operands give an integer, as in Python; otherwise double precision. Evaluates from left to right.
template <class Whole, class Float>
Result<json::value> combine(Arguments arguments, Whole whole_step, Float float_step) {
  if (any_missing(arguments)) return json::value();
  json::value result = arguments[0];
  for (const json::value& next : arguments.subspan(1)) {
    const auto a = whole_number(result), b = whole_number(next);
    if (a && b) {
      std::int64_t into = 0;
      if (whole_step(*a, *b, &into))
        return input_error({}, fmt::format("the result of {} and {} is too large", *a, *b));
      result = into;
      continue;
    }
    BOOST_OUTCOME_TRY(const double x, number_of(result));
    BOOST_OUTCOME_TRY(const double y, number_of(next));
    result = float_step(x, y);
  }
  if (!number_value(result)) return input_error({}, fmt::format("{} is not a number", shown(result)));
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
  if (x < 0 || y <= 0) return input_error({}, fmt::format("{} cannot be divided by {}", x, y));
  return json::value(x / y);
}

Result<json::value> ratio(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  BOOST_OUTCOME_TRY(const double y, number_of(a[1]));
  if (y == 0) return input_error({}, fmt::format("{} cannot be divided by 0", x));
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
  if (x <= 0) return input_error({}, fmt::format("{} has no logarithm", x));
  return json::value(std::log(x));
}

Result<json::value> truncated(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  if (!(std::abs(x) < 9e15)) return input_error({}, fmt::format("{} is too large for an integer", x));
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

Result<json::value> largest_in(Arguments a, const Facts& facts) {
  if (a[0].is_null()) return json::value();
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
  if (!text || !part) return input_error({}, fmt::format("{} is neither a list nor a string", shown(a[0])));
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
  return input_error({}, fmt::format("{} is not one of {}", shown(a[0]), fmt::join(known, ", ")));
}

Result<json::value> lower(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a string", shown(a[0])));
  std::string result(*text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return json::value(result);
}

Result<json::value> least_listed(Arguments a, const Facts&) {
  const auto text = json_text(a[0]);
  std::optional<std::int64_t> least;
  for (std::size_t i = 0; text && i < text->size();) {
    std::int64_t number = 0;
    const char *begin = text->data() + i, *end = text->data() + text->size();
    const auto [after, error] = std::from_chars(begin, end, number);
    if (error == std::errc()) least = std::min(least.value_or(number), number);
    i += static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - begin, 1));
  }
  return least ? json::value(*least) : json::value();
}

Result<json::value> length(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  if (const json::object* object = a[0].if_object()) return json::value(object->size());
  BOOST_OUTCOME_TRY(const json::array* list, array_of(a[0]));
  return json::value(list->size());
}

Result<json::value> list(Arguments a, const Facts&) { return json::value(json::array(a.begin(), a.end())); }

constexpr std::int64_t kMaxItems = 100'000;

Result<std::int64_t> items_of(const json::value& count) {
  BOOST_OUTCOME_TRY(const std::int64_t items, whole_of(count));
  if (items < 0 || items > kMaxItems)
    return input_error({}, fmt::format("a list of {} items; expected 0 to {}", items, kMaxItems));
  return items;
}

Result<json::value> pad(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  json::array result = *from;
  result.resize(static_cast<std::size_t>(items), a[2]);
  return json::value(std::move(result));
}

Result<json::value> of_length(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t items, whole_of(a[1]));
  if (std::cmp_not_equal(from->size(), items))
    return input_error({}, fmt::format("{} has {} elements, expected {}", shown(a[0]), from->size(), items));
  return a[0];
}

// Applies `f` to every element of a list.
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

Result<json::value> each_first(Arguments a, const Facts&) {
  return each(a[0], [&](const json::value& element) { return element.is_null() ? a[1] : element; });
}

Result<json::value> each_member(Arguments a, const Facts&) {
  return each(a[0], [&](const json::value& element) {
    const json::value* at = &element;
    for (const json::value& member : a.subspan(1)) {
      at = json_member(*at, json_text(member).value_or(""));
      if (!at) return json::value();
    }
    return *at;
  });
}

Result<json::value> element(Arguments a, const Facts&) {
  BOOST_OUTCOME_TRY(const std::int64_t index, whole_of(a[1]));
  const json::array* from = a[0].if_array();
  if (!from || index < 0 || static_cast<std::size_t>(index) >= from->size()) return json::value();
  return (*from)[static_cast<std::size_t>(index)];
}

Result<json::value> member(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  const auto name = json_text(a[1]);
  if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[1])));
  const json::value* const found = json_member(a[0], *name);
  return found ? *found : json::value();
}

// Rounds layer sizes like Apple's CoreNet: to the nearest multiple, or to the next one if that would lose more than a
// tenth.
Result<json::value> divisible(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t divisor, whole_of(a[1]));
  if (!(x >= 0 && x < 9e15 && divisor > 0 && divisor < 1'000'000'000))
    return input_error({}, fmt::format("{} cannot be rounded to a multiple of {}", x, divisor));
  const auto near = static_cast<std::int64_t>(x + static_cast<double>(divisor) / 2) / divisor * divisor;
  const std::int64_t made = std::max(divisor, near);
  return json::value(static_cast<double>(made) < 0.9 * x ? made + divisor : made);
}

Result<json::value> leading(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  const auto end = std::ranges::find_if_not(*from, [&](const json::value& element) {
    return std::ranges::any_of(a.subspan(1), [&](const json::value& other) { return same(element, other); });
  });
  return json::value(end - from->begin());
}

Result<json::value> every(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t period, whole_of(a[1]));
  BOOST_OUTCOME_TRY(const std::int64_t place, whole_of(a[2]));
  if (period <= 0) return input_error({}, fmt::format("period {} is not positive", period));
  json::array result;
  for (std::int64_t i = 0; i < items; ++i) result.push_back(i % period == place);
  return json::value(std::move(result));
}

// Returns a list of booleans: element i is true if the list contains `first` + i.
Result<json::value> listed(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[0]));
  BOOST_OUTCOME_TRY(const json::array* numbers, array_of(a[1]));
  BOOST_OUTCOME_TRY(const std::int64_t first, items_of(a[2]));
  json::array result(static_cast<std::size_t>(items), json::value(false));
  for (const json::value& each : *numbers) {
    BOOST_OUTCOME_TRY(const std::int64_t number, whole_of(each));
    if (number >= first && number - first < items) result[static_cast<std::size_t>(number - first)] = true;
  }
  return json::value(std::move(result));
}

Result<json::value> from_index(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t first, whole_of(a[1]));
  json::array result;
  for (std::int64_t i = 0; i < items; ++i) result.push_back(i >= first);
  return json::value(std::move(result));
}

Result<json::value> numbered(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a string", shown(a[0])));
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  json::array result;
  for (std::int64_t i = 0; i < items; ++i) result.emplace_back(fmt::format("{}{}", *text, i));
  return json::value(std::move(result));
}

Result<json::value> letters(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a string", shown(a[0])));
  json::array result;
  for (const char letter : *text) result.emplace_back(std::string(1, letter));
  return json::value(std::move(result));
}

Result<const json::object*> object_of(const json::value& value) {
  if (const json::object* found = value.if_object()) return found;
  return input_error({}, fmt::format("{} is not an object", shown(value)));
}

Result<json::value> object(Arguments a, const Facts&) {
  json::object result;
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) {
    const auto name = json_text(a[i]);
    if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[i])));
    result[*name] = a[i + 1];
  }
  return json::value(std::move(result));
}

Result<json::value> member_instead(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::object* from, object_of(a[0]));
  const auto name = json_text(a[1]);
  if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[1])));
  json::object result = *from;
  if (json::value* member = result.if_contains(*name); member && same(*member, a[2])) *member = a[3];
  return json::value(std::move(result));
}

Result<json::value> as_rope_type(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::object* from, object_of(a[0]));
  json::object result = *from;
  if (const json::value* type = from->if_contains("type")) result["rope_type"] = *type;
  return json::value(std::move(result));
}

// The keys that a rope_scaling of each type must have in addition to `rope_type`.
struct RopeKeys {
  std::string_view type;
  std::array<std::string_view, 4> keys;
};
constexpr RopeKeys kRopeKeys[] = {
    {"default", {}},
    {"linear", {"factor"}},
    {"dynamic", {"factor"}},
    {"yarn", {"factor"}},
    {"longrope", {"short_factor", "long_factor"}},
    {"llama3", {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"}},
};

Result<json::value> lacks_rope_keys(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value(false);
  BOOST_OUTCOME_TRY(const json::object* rope, object_of(a[0]));
  const json::value* type = rope->if_contains("rope_type");
  if (!type) type = rope->if_contains("type");
  const json::value by_default("default");
  const auto name = json_text(type ? *type : by_default);
  const auto known = name ? std::ranges::find(kRopeKeys, *name, &RopeKeys::type) : std::end(kRopeKeys);
  if (known == std::end(kRopeKeys)) return json::value(false);
  const auto lacks = [&](std::string_view key) { return !key.empty() && !rope->contains(key); };
  return json::value(lacks("rope_type") || std::ranges::any_of(known->keys, lacks));
}

Result<json::value> values_by_number(Arguments a, const Facts&) {
  if (a[0].is_null() || a[0].is_array()) return a[0];
  BOOST_OUTCOME_TRY(const json::object* from, object_of(a[0]));
  std::map<std::int64_t, json::value> members;
  for (const auto& member : *from) {
    const std::string_view name = member.key();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size())
      return input_error({}, fmt::format("{} is not a number", shown(json::value(name))));
    members[number] = member.value();
  }
  json::array result;
  for (auto& [number, value] : members) result.push_back(std::move(value));
  return json::value(std::move(result));
}

Result<json::value> real(Arguments a, const Facts&) { return json::value(a[0].is_double()); }

Result<json::value> sorted_values(Arguments a, const Facts&) {
  if (a[0].is_null() || a[0].is_array()) return a[0];
  BOOST_OUTCOME_TRY(const json::object* object, object_of(a[0]));
  std::vector<std::pair<std::string, json::value>> members;
  for (const auto& member : *object) members.emplace_back(member.key(), member.value());
  std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
  json::array result;
  for (auto& member : members) result.push_back(std::move(member.second));
  return json::value(std::move(result));
}

Result<std::optional<std::filesystem::path>> file_in_folder(const json::value& value, const Facts& facts) {
  const auto name = json_text(value);
  if (!name || name->starts_with('/') || name->find("..") != std::string_view::npos)
    return input_error({}, fmt::format("{} is not a file name", shown(value)));
  return facts.file(*name);
}

// Returns a member of another JSON file in the folder.
Result<json::value> file_value(Arguments a, const Facts& facts) {
  BOOST_OUTCOME_TRY(const auto path, file_in_folder(a[0], facts));
  if (!path) return json::value();
  BOOST_OUTCOME_TRY(const json::value content, read_checkpoint_json(path->string()));
  const json::value* at = &content;
  for (const json::value& member : a.subspan(1)) {
    at = json_member(*at, json_text(member).value_or(""));
    if (!at) return json::value();
  }
  return *at;
}

Result<json::value> file_text(Arguments a, const Facts& facts) {
  constexpr std::uint64_t kMaxBytes = 1 << 20;
  BOOST_OUTCOME_TRY(const auto path, file_in_folder(a[0], facts));
  if (!path) return json::value();
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path->string(), kMaxBytes));
  return json::value(text);
}

// Returns true if the file contains the text, ignoring ASCII case. Reads a file of any size in pieces, each preceded
// by the end of the previous one.
Result<json::value> file_contains(Arguments a, const Facts& facts) {
  constexpr std::uint64_t kPiece = 1 << 20;
  const auto lower_case = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  BOOST_OUTCOME_TRY(const auto path, file_in_folder(a[0], facts));
  const auto wanted = json_text(a[1]);
  if (!wanted || wanted->empty() || wanted->size() > kPiece)
    return input_error({}, fmt::format("{} is not a string to search for", shown(a[1])));
  if (!path) return json::value(false);
  std::string text(*wanted), piece;
  std::ranges::transform(text, text.begin(), lower_case);
  BOOST_OUTCOME_TRY(const auto file, open_source(path->string()));
  for (std::uint64_t offset = 0; offset < file->bytes();) {
    piece.erase(0, piece.size() - std::min(piece.size(), text.size() - 1));
    const std::size_t kept = piece.size();
    piece.resize(kept + static_cast<std::size_t>(std::min(kPiece, file->bytes() - offset)));
    const auto into = std::span(piece).subspan(kept);
    BOOST_OUTCOME_TRY(file->read(offset, std::as_writable_bytes(into)));
    std::ranges::transform(into, into.begin(), lower_case);
    if (piece.find(text) != std::string::npos) return json::value(true);
    offset += into.size();
  }
  return json::value(false);
}

Result<json::value> token_id(Arguments a, const Facts& facts) {
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a token", shown(a[0])));
  const std::optional<std::uint64_t> id = facts.token(*text);
  if (!id) return input_error({}, fmt::format("the tokenizer has no token {}", quoted_name(*text)));
  return json::value(*id);
}

Result<json::value> has_tensor(Arguments a, const Facts& facts) {
  const auto name = json_text(a[0]);
  if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[0])));
  return json::value(std::ranges::find(facts.tensors(), *name) != facts.tensors().end());
}

constexpr std::string_view kLayer = "{layer}";

// Calls `visit` with the name of every tensor that the pattern stands for: the one of this name, or if it contains
// {layer}, those of all layers from 0 to the first without one.
Status for_each_tensor(const json::value& pattern, const Facts& facts, const auto& visit) {
  const auto text = json_text(pattern);
  if (!text) return input_error({}, fmt::format("{} is not a name", shown(pattern)));
  const std::size_t place = text->find(kLayer);
  const std::unordered_set<std::string_view> names(facts.tensors().begin(), facts.tensors().end());
  for (int layer = 0;; ++layer) {
    std::string name(*text);
    if (place != name.npos) name.replace(place, kLayer.size(), std::to_string(layer));
    if (!names.contains(name)) return ok();
    BOOST_OUTCOME_TRY(visit(name));
    if (place == name.npos) return ok();
  }
}

Result<json::value> tensor_rows(Arguments a, const Facts& facts) {
  json::array rows;
  BOOST_OUTCOME_TRY(for_each_tensor(a[0], facts, [&](const std::string& name) -> Status {
    rows.emplace_back(facts.rows_of_tensor(name));
    return ok();
  }));
  if (rows.empty()) return json::value();
  return json_text(a[0])->find(kLayer) == std::string_view::npos ? rows[0] : json::value(std::move(rows));
}

// Returns the numbers of the rows from the second argument on that consist of zeros.
Result<json::value> zero_rows(Arguments a, const Facts& facts) {
  BOOST_OUTCOME_TRY(const json::value is_there, has_tensor(a, facts));
  if (!is_there.get_bool() || a[1].is_null()) return json::value();
  const auto first = whole_number(a[1]);
  if (!first || *first < 0) return input_error({}, fmt::format("{} is not a number of rows", shown(a[1])));
  const std::string name(*json_text(a[0]));
  const std::uint64_t end = facts.rows_of_tensor(name);
  constexpr std::uint64_t kMax = 1 << 16;
  if (end > static_cast<std::uint64_t>(*first) + kMax)
    return input_error({}, fmt::format("{} has {} rows from {} on; the limit is {}", quoted_name(name),
                                       end - static_cast<std::uint64_t>(*first), *first, kMax));
  json::array rows;
  for (auto row = static_cast<std::uint64_t>(*first); row < end; ++row) {
    BOOST_OUTCOME_TRY(const std::vector<float> values, facts.values_of_tensor(name, row));
    if (std::ranges::all_of(values, [](float value) { return value == 0; })) rows.emplace_back(row);
  }
  return json::value(std::move(rows));
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

// Returns the values of a tensor; for a name with {layer}, concatenates those of all layers from 0 on.
Result<json::value> tensor_values(Arguments a, const Facts& facts) {
  constexpr std::size_t kMax = 1 << 20;
  json::array result;
  BOOST_OUTCOME_TRY(for_each_tensor(a[0], facts, [&](const std::string& name) -> Status {
    BOOST_OUTCOME_TRY(const std::vector<float> values, facts.values_of_tensor(name));
    if (result.size() + values.size() > kMax)
      return input_error({}, fmt::format("{} has more than {} values", quoted_name(*json_text(a[0])), kMax));
    for (const float value : values) result.emplace_back(static_cast<double>(value));
    return ok();
  }));
  return result.empty() ? json::value() : json::value(std::move(result));
}

// Returns the id of the token with this text among those that tokenizer_config.json or, failing that, tokenizer.json
// adds to the vocabulary.
Result<json::value> added_token(Arguments a, const Facts& facts) {
  const auto text = json_text(a[0]);
  if (!text) return json::value();
  if (const auto file = facts.file("tokenizer_config.json")) {
    BOOST_OUTCOME_TRY(const json::value content, read_checkpoint_json(file->string()));
    const json::value* const added = json_member(content, "added_tokens_decoder");
    if (added && added->is_object())
      for (const auto& [id, token] : added->get_object())
        if (json_string(token, "content") == *text) {
          std::int64_t number = 0;
          const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
          if (error != std::errc() || end != id.data() + id.size())
            return input_error(file->string(), fmt::format("{} is not the id of a token", quoted_name(id)));
          return json::value(number);
        }
  }
  if (const auto file = facts.file("tokenizer.json")) {
    BOOST_OUTCOME_TRY(const TokenizerJson content, read_tokenizer_json(file->string()));
    const json::value* const added = json_member(content.document, "added_tokens");
    if (added && added->is_array())
      for (const json::value& token : added->get_array())
        if (json_string(token, "content") == *text)
          if (const json::value* const id = json_member(token, "id")) return *id;
  }
  return json::value();
}

// Returns the quantile of the standard normal distribution for every probability of a list.
Result<json::value> each_normal_quantile(Arguments a, const Facts&) {
  const json::array* list = a[0].if_array();
  if (!list) return json::value();
  json::array result;
  for (const json::value& each : *list) {
    const auto number = number_value(each);
    if (!number || !(*number >= 0 && *number <= 1))
      return input_error({}, fmt::format("{} is not a probability", shown(each)));
    result.emplace_back(static_cast<double>(normal_quantile(static_cast<float>(*number))));
  }
  return json::value(std::move(result));
}

// Returns the pooling of sentence embeddings according to the file of the Pooling module: 1 mean, 2 CLS, 3 last.
Result<json::value> pooling_type(Arguments, const Facts& facts) {
  const auto modules = facts.file("modules.json");
  if (!modules) return json::value();
  BOOST_OUTCOME_TRY(const json::value content, read_checkpoint_json(modules->string()));
  const json::array* all_modules = content.if_array();
  std::optional<std::string> folder;
  if (all_modules)
    for (const json::value& module : *all_modules)
      if (json_string(module, "type").value_or("").ends_with("Pooling") && !folder)
        folder = std::string(json_string(module, "path").value_or(""));
  if (!folder) return json::value();
  if (folder->find("..") != std::string::npos || folder->starts_with('/'))
    return input_error({}, fmt::format("modules.json names the folder '{}', which is outside the checkpoint", *folder));
  const auto config = facts.file(*folder + "/config.json");
  if (!config)
    return input_error({}, fmt::format("modules.json names the folder '{}', which has no config.json", *folder));
  BOOST_OUTCOME_TRY(const json::value pooling, read_checkpoint_json(config->string()));
  const std::string_view mode = json_string(pooling, "pooling_mode").value_or("");
  if (json_flag(pooling, "pooling_mode_mean_tokens")) return json::value(1);
  if (json_flag(pooling, "pooling_mode_cls_token")) return json::value(2);
  if (json_flag(pooling, "pooling_mode_lasttoken")) return json::value(3);
  if (mode == "mean") return json::value(1);
  if (mode == "cls") return json::value(2);
  if (mode == "lasttoken") return json::value(3);
  return input_error({}, fmt::format("pooling in {}/config.json is not one of mean, cls, and lasttoken", *folder));
}

// Returns a flag per layer: true if it has a sliding window. The pattern is a repeated string in which L marks a
// window ("LLLG"), or a period whose last layer has none.
Result<json::value> window_pattern(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  const auto text = json_text(a[0]);
  const auto period = text ? static_cast<std::int64_t>(text->size()) : whole_number(a[0]).value_or(0);
  if (period <= 0) return input_error({}, fmt::format("{} is not a layer pattern", shown(a[0])));
  json::array result;
  for (std::int64_t i = 0; i < items; ++i)
    result.push_back(text ? (*text)[static_cast<std::size_t>(i % period)] == 'L' : (i + 1) % period != 0);
  return json::value(std::move(result));
}

constexpr std::size_t kMany = 64;
constexpr ValueFunction kFunctions[] = {
    {"above", 2, 2, "Whether the first number is greater than the second.", above},
    {"added_token", 1, 1, "The id of the token with this text among those that the tokenizer adds to the vocabulary.",
     added_token},
    {"all", 1, kMany, "Whether all are true.", all},
    {"alternating", 2, 2, "The elements of two lists in turn.", alternating},
    {"any", 1, kMany, "Whether any is true.", any},
    {"as_rope_type", 1, 1, "An object with a copy of its member `type` as `rope_type`.", as_rope_type},
    {"choice", 3, kMany, "Of a value and pairs: the counterpart of the value; any other value is an error.", choice},
    {"choose", 3, 3, "The second if the first is true, otherwise the third.", choose},
    {"contains", 2, 2, "Whether a list contains a value, or a string a substring.", contains},
    {"difference", 2, kMany, "The first minus the others; for lists by element.", difference, true},
    {"divisible", 2, 2,
     "The first rounded to a multiple of the second: the nearest that loses at most a tenth; for lists by element.",
     divisible, true},
    {"each_choose", 3, 3, "For every element of a list: the second if it is true, otherwise the third.", each_choose},
    {"each_element", 2, 2, "The element at an index of every list in a list.", each_element},
    {"each_first", 2, 2, "Every element of a list, or the second if it is null.", each_first},
    {"each_is", 2, kMany, "For every element of a list: whether it is one of the others.", each_is},
    {"each_member", 2, 8, "A member of every element of a list: the names on the path to it.", each_member},
    {"each_normal_quantile", 1, 1, "For every probability in a list: the quantile of the standard normal distribution.",
     each_normal_quantile},
    {"each_not", 1, 1, "For every element of a list: whether it is not true.", each_not},
    {"each_true", 1, 1, "For every element of a list: whether it is true.", each_true},
    {"element", 2, 2, "The element of a list at an index; null if there is none.", element},
    {"every", 3, 3, "A list of this many flags: true where the index modulo the second is the third.", every},
    {"file_contains", 2, 2,
     "Whether a file in the folder contains this text, ignoring case; false if the file is missing.", file_contains},
    {"file_text", 1, 1, "The text of a file in the folder.", file_text},
    {"file_value", 2, 8, "A member of another JSON file in the folder: its name, then the names on the path.",
     file_value},
    {"first", 1, kMany, "The first that exists and is not null.", first},
    {"first_true", 1, kMany, "The first that is true.", first_true},
    {"from_end", 2, 2, "The integers of a list; the second is added to negative ones.", from_end},
    {"from_index", 2, 2, "A list of this many flags: true from an index on.", from_index},
    {"has_tensor", 1, 1, "Whether the checkpoint has a tensor of this name.", has_tensor},
    {"indices", 1, 1, "A list of the numbers from 0 to this, exclusive.", indices},
    {"int", 1, 1, "The integer part; for lists by element.", truncated, true},
    {"is", 2, kMany, "Whether the first is one of the others.", is_one_of},
    {"joined", 1, kMany, "The elements of these lists, in one.", joined},
    {"lacks_rope_keys", 1, 1, "Whether a rope_scaling is missing a key that its type requires.", lacks_rope_keys},
    {"largest", 1, kMany, "The largest of those that exist; for lists by element.", largest, true},
    {"largest_in", 1, 1, "The largest number in a list.", largest_in},
    {"layers_of", 1, 1, "One more than the largest number after this text in the checkpoint's names.", layers_of},
    {"leading", 2, kMany, "The number of elements at the beginning of a list that are one of the others.", leading},
    {"least_listed", 1, 1, "The smallest integer in a string such as \"3,4,5\".", least_listed},
    {"length", 1, 1, "The number of elements of a list, or of members of an object.", length},
    {"letters", 1, 1, "The letters of a string, each as a string.", letters},
    {"list", 1, kMany, "A list of these.", list},
    {"listed", 3, 3,
     "A list of this many flags: true where the second, a list, has the number; the third is the first number.",
     listed},
    {"log", 1, 1, "The natural logarithm.", logarithm},
    {"lower", 1, 1, "A string in lower case.", lower},
    {"member", 2, 2, "The member of an object with a name; null if there is none.", member},
    {"member_instead", 4, 4, "An object in which the member named by the second is the fourth if it is the third.",
     member_instead},
    {"not", 1, 1, "Whether it is not true.", negation},
    {"number_in", 2, 2, "The integer in a string such as \"4/8\" at an index; null if there is none.", number_in},
    {"numbered", 2, 2, "A list of this many strings: the first followed by the index.", numbered},
    {"object", 2, kMany, "An object of alternating names and values.", object},
    {"of_length", 2, 2, "A list, which must have this many elements.", of_length},
    {"pad", 3, 3, "A list padded to a length with the third value.", pad},
    {"pooling_type", 0, 1, "How sentence embeddings are pooled, according to modules.json.", pooling_type},
    {"power", 2, 2, "The first to the power of the second.", power},
    {"present", 1, kMany, "Whether all exist and are not null.", present},
    {"product", 2, kMany, "The product; for lists by element.", product, true},
    {"quotient", 2, 2, "The integer quotient of two integers; for lists by element.", quotient, true},
    {"ratio", 2, 2, "The quotient of two numbers; for lists by element.", ratio, true},
    {"real", 1, 1, "Whether it is a number written with a decimal point or an exponent.", real},
    {"sorted_by", 2, 2, "The elements of a list in the order of the integers at their places in the second.",
     sorted_by},
    {"sorted_values", 1, 1, "The values of an object in the order of their names; a list as is.", sorted_values},
    {"sum", 2, kMany, "The sum; for lists by element.", sum, true},
    {"tensor_rows", 1, 1,
     "The number of rows of a tensor of this name; with {layer} in it, a list of those in all layers; null if there is "
     "none.",
     tensor_rows},
    {"tensor_values", 1, 1, "The values of a small tensor of this name; with {layer} in it, of those in all layers.",
     tensor_values},
    {"values_by_number", 1, 1, "The values of an object in numeric order of its names; a list as is.",
     values_by_number},
    {"token_id", 1, 1, "The id of the token with this text.", token_id},
    {"window_pattern", 2, 2, "Which of this many layers have a sliding window, given by letters or a period.",
     window_pattern},
    {"zero_rows", 2, 2, "The rows of a tensor, from the second on, that consist of zeros, as a list of their indices.",
     zero_rows},
};

}  // namespace

std::span<const ValueFunction> value_functions() { return kFunctions; }

}  // namespace ggufmill::huggingface
