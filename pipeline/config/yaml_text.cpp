#include "pipeline/config/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

bool is_allowed(std::string_view text, std::size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c == '\r') return at + 1 < text.size() && text[at + 1] == '\n';
  return c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f);
}

// Returns the offset of a directive before the document, if there is one.
std::optional<std::size_t> find_directive(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '%') return at;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t word = text.find_first_not_of(" \t\r", at);
    if (word < end && text[word] != '#') return {};
    at = end + 1;
  }
  return {};
}

bool is_quote(std::string_view text, std::size_t offset) {
  return offset < text.size() && (text[offset] == '"' || text[offset] == '\'');
}

// Returns the offset after the closing quote; npos if there is none.
std::size_t end_of_quoted(std::string_view text, std::size_t offset) {
  const char quote = text[offset];
  for (std::size_t at = offset + 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || at + 1 >= text.size() || text[at + 1] != quote) return at + 1;
      ++at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

Position position_of(std::string_view text, std::size_t offset, int length) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1, static_cast<int>(column) + 1, length};
}

std::optional<TextFault> find_text_fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence(text.substr(at));
    const unsigned byte = static_cast<unsigned char>(text[at]);
    if (length == 0) return TextFault{at, fmt::format("byte 0x{:02x} is not UTF-8", byte), "save the file as UTF-8"};
    if (length == 1 && !is_allowed(text, at))
      return TextFault{at, fmt::format("control character 0x{:02x}", byte), "write it as an escape in double quotes"};
    at += length;
  }
  if (const auto directive = find_directive(text))
    return TextFault{*directive, "directives (%) are not supported", "remove the line: files are read as YAML 1.2"};
  return {};
}

int scalar_length(std::string_view text, std::size_t offset, std::string_view value) {
  const std::string_view rest = text.substr(std::min(offset, text.size()));
  std::string_view written = value;
  if (is_quote(text, offset))
    written = rest.substr(0, end_of_quoted(rest, 0));
  else if (value.empty() || rest.substr(0, value.size()) != value)  // continues on further lines
    written = rest.substr(0, rest.find('\n'));
  written = written.substr(0, written.find('\n'));
  return static_cast<int>(std::max<std::size_t>(1, written.find_last_not_of(" \t\r") + 1));
}

bool is_unclosed_quote(std::string_view text, std::size_t offset) {
  return is_quote(text, offset) && end_of_quoted(text, offset) == std::string_view::npos;
}

}  // namespace ggufmill
