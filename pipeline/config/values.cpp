#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "pipeline/config/fields.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

Error not_a(const ConfigNode& node, std::string_view kind) {
  return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar), kind));
}

template <class T>
Result<T> parse_whole(const ConfigNode& node, std::string_view kind) {
  T value{};
  const char* end = node.scalar.data() + node.scalar.size();
  const auto [stop, error] = std::from_chars(node.scalar.data(), end, value);
  if (node.is_scalar() && stop == end && error == std::errc::result_out_of_range)
    return error_at(node, fmt::format("{} does not fit into 64 bits", quoted_name(node.scalar)));
  if (!node.is_scalar() || error != std::errc() || stop != end) return not_a(node, kind);
  return value;
}

// Where the bytes of a scalar begin in its source line, when they are there as they are; else 0.
int column_of_text(const ConfigNode& node) {
  if (!node.text || node.position.line < 1 || node.position.line > static_cast<int>(node.text->lines.size())) return 0;
  const std::string& line = node.text->lines[node.position.line - 1];
  const std::size_t begin = node.position.column - 1 + (node.quoted ? 1 : 0);
  return begin <= line.size() && line.compare(begin, node.scalar.size(), node.scalar) == 0 ? static_cast<int>(begin) + 1
                                                                                           : 0;
}

}  // namespace

Result<bool> to_bool(const ConfigNode& node) {
  const Result<bool> value = parse_bool(node.scalar);
  if (value) return value;
  return error_at(node, value.error().what, value.error().help);
}

Result<std::int64_t> to_integer(const ConfigNode& node) { return parse_whole<std::int64_t>(node, "a whole number"); }

Result<double> to_number(const ConfigNode& node) {
  Result<double> value = parse_whole<double>(node, "a number");
  if (value && !std::isfinite(value.value())) return not_a(node, "a number");
  return value;
}

Result<std::uint64_t> to_bytes(const ConfigNode& node) {
  Result<std::uint64_t> bytes = parse_bytes(node.scalar);
  if (bytes) return bytes;
  return error_at(node, bytes.error().what, bytes.error().help);
}

Result<Pattern> to_pattern(const ConfigNode& node) {
  std::size_t fault_at = 0;
  Result<Pattern> pattern = Pattern::compile(node.scalar, &fault_at);
  if (pattern) return pattern;
  const Error& error = pattern.error();
  const int column = column_of_text(node);
  if (column == 0) return error_at(node, fmt::format("{} {}", error.what, error.detail));
  if (fault_at == 0) return error_at(node, error.what);
  return error_at(node.text, {node.position.line, column + static_cast<int>(fault_at), 1}, error.what);
}

}  // namespace ggufmill
