#include "stages/huggingface/map/list_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>
#include <vector>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using Values = std::span<const json::value>;

bool lacks_any(Values values) {
  return std::ranges::any_of(values, [](const json::value& each) { return each.is_null(); });
}

Result<const json::array*> list_in(const json::value& value) {
  if (const json::array* found = value.if_array()) return found;
  return input_error({}, fmt::format("{} is not a list", shown(value)));
}

Result<std::int64_t> integer_in(const json::value& value) {
  if (const auto found = whole_number(value)) return *found;
  return input_error({}, fmt::format("{} is not an integer", shown(value)));
}

Error unequal(std::size_t a, std::size_t b) {
  return input_error({}, fmt::format("lists have different lengths, {} and {}", a, b));
}

}  // namespace

Result<json::value> alternating(Values a, const Facts&) {
  if (lacks_any(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* first, list_in(a[0]));
  BOOST_OUTCOME_TRY(const json::array* second, list_in(a[1]));
  if (first->size() != second->size()) return unequal(first->size(), second->size());
  json::array result;
  for (std::size_t i = 0; i < first->size(); ++i) {
    result.push_back((*first)[i]);
    result.push_back((*second)[i]);
  }
  return json::value(std::move(result));
}

Result<json::value> each_element(Values a, const Facts&) {
  if (lacks_any(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, list_in(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t index, integer_in(a[1]));
  json::array result;
  for (const json::value& each : *from) {
    BOOST_OUTCOME_TRY(const json::array* inner, list_in(each));
    if (index < 0 || std::cmp_greater_equal(index, inner->size()))
      return input_error({}, fmt::format("{} has no element {}", shown(each), index));
    result.push_back((*inner)[static_cast<std::size_t>(index)]);
  }
  return json::value(std::move(result));
}

Result<json::value> from_end(Values a, const Facts&) {
  if (lacks_any(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, list_in(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t count, integer_in(a[1]));
  json::array result;
  for (const json::value& each : *from) {
    BOOST_OUTCOME_TRY(std::int64_t index, integer_in(each));
    if (index < 0 && __builtin_add_overflow(index, count, &index))
      return input_error({}, fmt::format("the sum of {} and {} is too large", shown(each), count));
    result.emplace_back(index);
  }
  return json::value(std::move(result));
}

Result<json::value> indices(Values a, const Facts&) {
  constexpr std::int64_t kMost = 100'000;
  if (lacks_any(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t count, integer_in(a[0]));
  if (count < 0 || count > kMost)
    return input_error({}, fmt::format("a list of {} items; expected 0 to {}", count, kMost));
  json::array result;
  for (std::int64_t i = 0; i < count; ++i) result.emplace_back(i);
  return json::value(std::move(result));
}

Result<json::value> joined(Values a, const Facts&) {
  if (lacks_any(a)) return json::value();
  json::array result;
  for (const json::value& each : a) {
    BOOST_OUTCOME_TRY(const json::array* list, list_in(each));
    result.insert(result.end(), list->begin(), list->end());
  }
  return json::value(std::move(result));
}

Result<json::value> number_in(Values a, const Facts&) {
  if (lacks_any(a)) return json::value();
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a string", shown(a[0])));
  BOOST_OUTCOME_TRY(std::int64_t left, integer_in(a[1]));
  const char *at = text->data(), *const end = at + text->size();
  while (at < end) {
    std::int64_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error == std::errc() && left-- == 0) return json::value(number);
    at = std::max(after, at + 1);
  }
  return json::value();
}

Result<json::value> sorted_by(Values a, const Facts&) {
  if (lacks_any(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* from, list_in(a[0]));
  BOOST_OUTCOME_TRY(const json::array* keys, list_in(a[1]));
  if (from->size() != keys->size()) return unequal(from->size(), keys->size());
  std::vector<std::int64_t> numbers;
  for (const json::value& key : *keys) {
    BOOST_OUTCOME_TRY(numbers.emplace_back(), integer_in(key));
  }
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  json::array result;
  for (const std::size_t i : order) result.push_back((*from)[i]);
  return json::value(std::move(result));
}

}  // namespace ggufmill::huggingface
