#include "pipeline/report/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"

namespace ggufmill {
// Non-ASCII bytes, and the control characters that the serializer does not escape, occur in strings only.
std::string to_json_text(const boost::json::value& value) {
  const std::string raw = written_json(value);
  std::string out;
  out.reserve(raw.size());
  for (std::string_view rest = raw; !rest.empty();) {
    const std::size_t length = utf8_sequence(rest);
    if (length == 0)
      out += fmt::format("\\\\x{:02x}", static_cast<unsigned char>(rest[0]));
    else if (printable_sequence(rest) == 0)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code_point(rest.substr(0, length))));
    else
      out += rest.substr(0, length);
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string script_text(std::string_view json) {
  std::string text;
  for (const char c : json)
    if (c == '<' || c == '>' || c == '&')
      text += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      text += c;
  return text;
}

std::string html_text(const std::string& text) {
  std::string out;
  for (const char letter : printable(text))
    out += letter == '&' ? "&amp;" : letter == '<' ? "&lt;" : letter == '"' ? "&quot;" : std::string(1, letter);
  return out;
}

boost::json::value json_number(double number) {
  return std::isfinite(number) ? boost::json::value(number) : boost::json::value();
}

}  // namespace ggufmill
