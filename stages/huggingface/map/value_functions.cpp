#include "stages/huggingface/map/value_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "stages/huggingface/checkpoint/json_values.h"

namespace ggufmill::huggingface {

namespace json = boost::json;

std::span<const ValueFunction> value_functions() {
  static const std::vector<ValueFunction> kFunctions = [] {
    std::vector<ValueFunction> all;
    for (const auto& kind : {number_functions(), condition_functions(), list_functions(), text_functions(),
                             object_functions(), checkpoint_functions()})
      all.insert(all.end(), kind.begin(), kind.end());
    std::ranges::sort(all, {}, &ValueFunction::name);
    return all;
  }();
  return kFunctions;
}

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

Result<std::int64_t> items_of(const json::value& count) {
  constexpr std::int64_t kMaxItems = 100'000;
  BOOST_OUTCOME_TRY(const std::int64_t items, whole_of(count));
  if (items < 0 || items > kMaxItems)
    return input_error({}, fmt::format("a list of {} items; expected 0 to {}", items, kMaxItems));
  return items;
}

std::size_t weight_of(const json::value& value) {  // NOLINT(misc-no-recursion): values are nested by functions
  std::size_t weight = 1;
  if (const auto text = json_text(value)) weight += text->size() / 16;
  if (const json::array* list = value.if_array())
    for (const json::value& each : *list) weight += weight_of(each);
  if (const json::object* object = value.if_object())
    for (const auto& each : *object) weight += 1 + each.key().size() / 16 + weight_of(each.value());
  return weight;
}

Status check_copies(std::size_t items, const json::value& value) {
  if (items <= kMaxWeight / weight_of(value)) return ok();
  return input_error({}, fmt::format("a list of {} copies of {} is too large", items, shown(value)));
}

bool any_missing(Arguments arguments) {
  return std::ranges::any_of(arguments, [](const json::value& each) { return each.is_null(); });
}

bool same(const json::value& a, const json::value& b) {
  const auto x = number_value(a), y = number_value(b);
  return x && y ? *x == *y : a == b;
}

}  // namespace ggufmill::huggingface
