// Metadata values as text for people.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/metadata.h"

namespace ggufmill {
namespace {

std::string quoted(std::string_view text, std::size_t width) {
  std::string out = "\"";
  for (const char c : text.substr(0, width)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + (text.size() > width ? "\"..." : "\"");
}

}  // namespace

std::string describe(const MetadataValue& value, std::size_t width) {
  if (const auto text = as_string(value)) return quoted(*text, width);
  if (const auto flag = as_bool(value)) return *flag ? "true" : "false";
  if (const auto whole = as_signed(value)) return std::to_string(*whole);
  if (const auto whole = as_unsigned(value)) return std::to_string(*whole);
  if (value.type == MetadataType::kFloat32)
    if (const auto number = as_number(value)) return fmt::format("{}", static_cast<float>(*number));
  if (const auto number = as_number(value)) return fmt::format("{}", *number);
  const auto array = as_array(value);
  if (!array) return "malformed";
  std::string out = fmt::format("array of {} {}", array->count, metadata_type_name(array->element));
  std::string separator = ": ";
  for (const MetadataValue& item : array_items(value, 8)) {
    const std::string text = describe(item, width / 4);
    if (out.size() + text.size() > width) return out + separator + "...";
    out += separator + text;
    separator = ", ";
  }
  return array->count > 8 ? out + ", ..." : out;
}

}  // namespace ggufmill
