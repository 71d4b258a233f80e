// Metadata values as text for people.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/metadata.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

std::string quoted(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  std::string escaped;
  while (end < text.size() && end < width) {
    const std::string_view rest = text.substr(end);
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence(rest));
    if (rest[0] == '"' || rest[0] == '\\') escaped += '\\';
    escaped += rest[0] == '\n' ? "\\n" : printable(rest.substr(0, length));
    end += length;
  }
  return "\"" + escaped + (end < text.size() ? "\"..." : "\"");
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
