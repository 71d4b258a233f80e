// Named functions of value rules: conditions, and choices that depend on them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pipeline/core/json.h"
#include "pipeline/core/written_json.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/value_functions.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

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
    known.push_back(written_json(a[i]));
  }
  return input_error({}, fmt::format("{} is not one of {}", shown(a[0]), fmt::join(known, ", ")));
}

constexpr ValueFunction kConditionFunctions[] = {
    {"above", 2, 2, "Whether the first number is greater than the second.", above},
    {"all", 1, kManyArguments, "Whether all are true.", all},
    {"any", 1, kManyArguments, "Whether any is true.", any},
    {"choice", 3, kManyArguments, "Of a value and pairs: the counterpart of the value; any other value is an error.",
     choice},
    {"choose", 3, 3, "The second if the first is true, otherwise the third.", choose},
    {"contains", 2, 2, "Whether a list contains a value, or a string a substring.", contains},
    {"first", 1, kManyArguments, "The first that exists and is not null.", first},
    {"first_true", 1, kManyArguments, "The first that is true.", first_true},
    {"is", 2, kManyArguments, "Whether the first is one of the others.", is_one_of},
    {"not", 1, 1, "Whether it is not true.", negation},
    {"present", 1, kManyArguments, "Whether all exist and are not null.", present},
};

}  // namespace

std::span<const ValueFunction> condition_functions() { return kConditionFunctions; }

}  // namespace ggufmill::huggingface
