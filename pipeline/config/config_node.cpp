#include "pipeline/config/config_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kWidestLine = 160;  // bytes of a source line to show

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Replaces tabs with spaces, and every byte that is not part of a printable character with a question mark. Replaces
// byte for byte, so that positions stay valid.
std::string plain_line(std::string line) {
  for (std::size_t at = 0; at < line.size();) {
    const std::string_view rest = std::string_view(line).substr(at);
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence(rest));
    if (printable_sequence(rest) == 0) line.replace(at, length, length, line[at] == '\t' ? ' ' : '?');
    at += length;
  }
  return line;
}

// A source line and the marks under it, truncated to the relevant part. One column per character.
struct Excerpt {
  std::string line;
  std::string marks;
};

Excerpt excerpt(const std::string& source, const Position& position) {
  const std::size_t mark = std::min<std::size_t>(std::max(position.column, 1) - 1, source.size());
  std::size_t begin = source.size() <= kWidestLine ? 0 : mark - std::min(mark, kWidestLine / 2);
  for (int i = 0; i < 3 && begin > 0 && is_continuation(source[begin]); ++i) --begin;
  std::size_t end = std::min(source.size(), begin + kWidestLine);
  for (int i = 0; i < 3 && end < source.size() && is_continuation(source[end]); ++i) ++end;
  const std::string line = plain_line(source.substr(begin, end - begin));
  Excerpt shown{begin > 0 ? "..." : "", begin > 0 ? "   " : ""};
  const std::size_t mark_end = mark + static_cast<std::size_t>(std::max(position.length, 1));
  for (std::size_t at = begin; at < end; ++at) {
    const char c = line[at - begin];
    shown.line += c;
    if (at < mark_end && !is_continuation(c)) shown.marks += at < mark ? ' ' : '^';
  }
  if (mark >= end) shown.marks += '^';
  if (end < source.size()) shown.line += "...";
  return shown;
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Origin origin_of(const ConfigText* text, Position position) {
  Origin origin{text ? text->name : "", ""};
  if (!text || position.line < 1) return origin;
  if (text->numbered) origin.where += fmt::format(":{}:{}", position.line, position.column);
  if (position.line <= static_cast<int>(text->lines.size())) {
    const Excerpt shown = excerpt(text->lines[position.line - 1], position);
    const std::string number = text->numbered ? fmt::format("{:>4}", position.line) : "    ";
    origin.excerpt = fmt::format("{} | {}\n{} | {}", number, shown.line, std::string(number.size(), ' '), shown.marks);
  }
  return origin;
}

Origin origin_of(const ConfigNode& node) { return origin_of(node.text, node.position); }

Error error_at(const ConfigText* text, Position position, std::string what, std::string help) {
  return error_at(origin_of(text, position), std::move(what), std::move(help));
}

Error error_at(const ConfigNode& node, std::string what, std::string help) {
  return error_at(origin_of(node), std::move(what), std::move(help));
}

}  // namespace ggufmill
