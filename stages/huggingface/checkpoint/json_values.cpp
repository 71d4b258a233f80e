#include "stages/huggingface/checkpoint/json_values.h"

#include <string>

#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"

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

std::string shown(const json::value& value) { return quoted_name(written_json(value), 60); }

bool is_true(const json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (value.is_string()) return !value.get_string().empty();
  if (value.is_array()) return !value.get_array().empty();
  if (value.is_object()) return !value.get_object().empty();
  return number_value(value).value_or(0) != 0;
}

}  // namespace ggufmill::huggingface
