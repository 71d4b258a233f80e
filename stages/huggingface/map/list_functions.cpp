// Named functions of value rules: lists.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/value_functions.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

Error unequal(std::size_t a, std::size_t b) {
  return input_error({}, fmt::format("lists have different lengths, {} and {}", a, b));
}

Result<json::value> length(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  if (const json::object* object = a[0].if_object()) return json::value(object->size());
  BOOST_OUTCOME_TRY(const json::array* list, array_of(a[0]));
  return json::value(list->size());
}

Result<json::value> list(Arguments a, const Facts&) { return json::value(json::array(a.begin(), a.end())); }

Result<json::value> alternating(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* first, array_of(a[0]));
  BOOST_OUTCOME_TRY(const json::array* second, array_of(a[1]));
  if (first->size() != second->size()) return unequal(first->size(), second->size());
  json::array result;
  for (std::size_t i = 0; i < first->size(); ++i) {
    result.push_back((*first)[i]);
    result.push_back((*second)[i]);
  }
  return json::value(std::move(result));
}

Result<json::value> joined(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  json::array result;
  for (const json::value& each : a) {
    BOOST_OUTCOME_TRY(const json::array* list, array_of(each));
    result.insert(result.end(), list->begin(), list->end());
  }
  return json::value(std::move(result));
}

Result<json::value> pad(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  json::array result = *from;
  result.resize(static_cast<std::size_t>(items), a[2]);
  return json::value(std::move(result));
}

Result<json::value> repeated(Arguments a, const Facts&) {
  if (any_missing(a) || a[0].is_array()) return a[0];
  BOOST_OUTCOME_TRY(const std::int64_t items, items_of(a[1]));
  json::array result;
  result.resize(static_cast<std::size_t>(items), a[0]);
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

Result<json::value> each_element(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t index, whole_of(a[1]));
  json::array result;
  for (const json::value& each : *from) {
    BOOST_OUTCOME_TRY(const json::array* inner, array_of(each));
    if (index < 0 || std::cmp_greater_equal(index, inner->size()))
      return input_error({}, fmt::format("{} has no element {}", shown(each), index));
    result.push_back((*inner)[static_cast<std::size_t>(index)]);
  }
  return json::value(std::move(result));
}

Result<json::value> element(Arguments a, const Facts&) {
  BOOST_OUTCOME_TRY(const std::int64_t index, whole_of(a[1]));
  const json::array* from = a[0].if_array();
  if (!from || index < 0 || static_cast<std::size_t>(index) >= from->size()) return json::value();
  return (*from)[static_cast<std::size_t>(index)];
}

Result<json::value> last(Arguments a, const Facts&) {
  const json::array* const list = a[0].if_array();
  if (!list) return a[0];
  return list->empty() ? json::value() : list->back();
}

Result<json::value> from_end(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t count, whole_of(a[1]));
  json::array result;
  for (const json::value& each : *from) {
    BOOST_OUTCOME_TRY(std::int64_t index, whole_of(each));
    if (index < 0 && __builtin_add_overflow(index, count, &index))
      return input_error({}, fmt::format("the sum of {} and {} is too large", shown(each), count));
    result.emplace_back(index);
  }
  return json::value(std::move(result));
}

Result<json::value> indices(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t count, items_of(a[0]));
  json::array result;
  for (std::int64_t i = 0; i < count; ++i) result.emplace_back(i);
  return json::value(std::move(result));
}

Result<json::value> sorted_by(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, array_of(a[0]));
  BOOST_OUTCOME_TRY(const json::array* keys, array_of(a[1]));
  if (from->size() != keys->size()) return unequal(from->size(), keys->size());
  std::vector<std::int64_t> numbers;
  for (const json::value& key : *keys) {
    BOOST_OUTCOME_TRY(numbers.emplace_back(), whole_of(key));
  }
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  json::array result;
  for (const std::size_t i : order) result.push_back((*from)[i]);
  return json::value(std::move(result));
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

constexpr ValueFunction kListFunctions[] = {
    {"alternating", 2, 2, "The elements of two lists in turn.", alternating},
    {"each_choose", 3, 3, "For every element of a list: the second if it is true, otherwise the third.", each_choose},
    {"each_element", 2, 2, "The element at an index of every list in a list.", each_element},
    {"each_first", 2, 2, "Every element of a list, or the second if it is null.", each_first},
    {"each_is", 2, kManyArguments, "For every element of a list: whether it is one of the others.", each_is},
    {"each_member", 2, 8, "A member of every element of a list: the names on the path to it.", each_member},
    {"each_not", 1, 1, "For every element of a list: whether it is not true.", each_not},
    {"each_true", 1, 1, "For every element of a list: whether it is true.", each_true},
    {"element", 2, 2, "The element of a list at an index; null if there is none.", element},
    {"every", 3, 3, "A list of this many flags: true where the index modulo the second is the third.", every},
    {"from_end", 2, 2, "The integers of a list; the second is added to negative ones.", from_end},
    {"from_index", 2, 2, "A list of this many flags: true from an index on.", from_index},
    {"indices", 1, 1, "A list of the numbers from 0 to this, exclusive.", indices},
    {"joined", 1, kManyArguments, "The elements of these lists, in one.", joined},
    {"last", 1, 1, "The last element of a list; any other value as is.", last},
    {"leading", 2, kManyArguments, "The number of elements at the beginning of a list that are one of the others.",
     leading},
    {"length", 1, 1, "The number of elements of a list, or of members of an object.", length},
    {"list", 1, kManyArguments, "A list of these.", list},
    {"listed", 3, 3,
     "A list of this many flags: true where the second, a list, has the number; the third is the first number.",
     listed},
    {"numbered", 2, 2, "A list of this many strings: the first followed by the index.", numbered},
    {"of_length", 2, 2, "A list, which must have this many elements.", of_length},
    {"pad", 3, 3, "A list padded to a length with the third value.", pad},
    {"repeated", 2, 2, "A list as is; any other value as a list of this many copies.", repeated},
    {"sorted_by", 2, 2, "The elements of a list in the order of the integers at their places in the second.",
     sorted_by},
    {"window_pattern", 2, 2, "Which of this many layers have a sliding window, given by letters or a period.",
     window_pattern},
};

}  // namespace

std::span<const ValueFunction> list_functions() { return kListFunctions; }

}  // namespace ggufmill::huggingface
