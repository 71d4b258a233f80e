#include "pipeline/core/written_json.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cmath>
#include <string_view>

namespace ggufmill {
namespace {

namespace json = boost::json;

void append_number(double number, std::string& out) {
  if (std::isnan(number)) {
    out += "NaN";
  } else if (std::isinf(number)) {
    out += number > 0 ? "Infinity" : "-Infinity";
  } else {
    const std::string text = fmt::format("{}", number);
    out += text;
    if (text.find_first_of(".e") == std::string::npos) out += ".0";
  }
}

void append(const json::value& value, std::string& out) {  // NOLINT(misc-no-recursion): the depth is the document's
  if (value.is_double()) return append_number(value.get_double(), out);
  if (const json::array* const items = value.if_array()) {
    std::string_view separator;
    out += '[';
    for (const json::value& item : *items) {
      out += separator;
      append(item, out);
      separator = ",";
    }
    out += ']';
  } else if (const json::object* const members = value.if_object()) {
    std::string_view separator;
    out += '{';
    for (const auto& member : *members) {
      out += separator;
      out += json::serialize(json::string(member.key())) + ":";
      append(member.value(), out);
      separator = ",";
    }
    out += '}';
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string written_json(const json::value& value) {
  std::string out;
  append(value, out);
  return out;
}

}  // namespace ggufmill
