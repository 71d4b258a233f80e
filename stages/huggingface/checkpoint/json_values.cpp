#include "stages/huggingface/checkpoint/json_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/serialize.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "pipeline/core/text.h"

namespace ggufmill::huggingface {

namespace json = boost::json;

std::optional<std::int64_t> whole_number(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64() && value.get_uint64() <= INT64_MAX) return static_cast<std::int64_t>(value.get_uint64());
  if (value.is_bool()) return value.get_bool() ? 1 : 0;
  return {};
}

std::optional<double> number_value(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (const auto integer = whole_number(value)) return static_cast<double>(*integer);
  return {};
}

// Numbers that JSON does not have are written as Python does; what json::serialize() writes depends on Boost's version.
static std::string text_of(const json::value& value) {
  if (value.is_double() && std::isnan(value.get_double())) return "NaN";
  if (value.is_double() && std::isinf(value.get_double())) return value.get_double() > 0 ? "Infinity" : "-Infinity";
  if (!value.is_array()) return json::serialize(value);
  std::vector<std::string> items;
  for (const json::value& item : value.get_array()) items.push_back(text_of(item));
  return fmt::format("[{}]", fmt::join(items, ","));
}

std::string shown(const json::value& value) { return quoted_name(text_of(value), 60); }

bool is_true(const json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (value.is_string()) return !value.get_string().empty();
  if (value.is_array()) return !value.get_array().empty();
  if (value.is_object()) return !value.get_object().empty();
  return number_value(value).value_or(0) != 0;
}

}  // namespace ggufmill::huggingface
