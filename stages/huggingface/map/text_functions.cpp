// Named functions of value rules: strings.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/value_functions.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

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

Result<json::value> letters(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a string", shown(a[0])));
  json::array result;
  for (const char letter : *text) result.emplace_back(std::string(1, letter));
  return json::value(std::move(result));
}

Result<json::value> number_in(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a string", shown(a[0])));
  BOOST_OUTCOME_TRY(std::int64_t left, whole_of(a[1]));
  const char *at = text->data(), *const end = at + text->size();
  while (at < end) {
    std::int64_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error == std::errc() && left-- == 0) return json::value(number);
    at = std::max(after, at + 1);
  }
  return json::value();
}

Result<json::value> text(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  std::string result;
  for (const json::value& each : a) {
    const auto part = json_text(each);
    if (!part) return input_error({}, fmt::format("{} is not a string", shown(each)));
    result += *part;
  }
  return json::value(result);
}

constexpr ValueFunction kTextFunctions[] = {
    {"least_listed", 1, 1, "The smallest integer in a string such as \"3,4,5\".", least_listed},
    {"letters", 1, 1, "The letters of a string, each as a string.", letters},
    {"lower", 1, 1, "A string in lower case.", lower},
    {"number_in", 2, 2, "The integer in a string such as \"4/8\" at an index; null if there is none.", number_in},
    {"text", 1, kManyArguments, "These strings, joined.", text},
};

}  // namespace

std::span<const ValueFunction> text_functions() { return kTextFunctions; }

}  // namespace ggufmill::huggingface
