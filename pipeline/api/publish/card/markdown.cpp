#include "pipeline/api/publish/card/markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool has_meaning(std::string_view line, std::size_t at) {
  const char c = line[at];
  if (c == '_')
    return at == 0 || at + 1 == line.size() || !is_alphanumeric(line[at - 1]) || !is_alphanumeric(line[at + 1]);
  if (at == 0 && std::string_view("#-+=").find(c) != std::string_view::npos) return true;
  return std::string_view("\\`*[]<>|~&$").find(c) != std::string_view::npos;
}

std::string percent_encoded(std::string_view target) {
  std::string out;
  for (const char c : target) {
    if (is_alphanumeric(c) || std::string_view("-._~/:").find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

std::size_t longest_run(std::string_view text, char wanted) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == wanted ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

std::string markdown_text(std::string_view line) {
  std::string out;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (has_meaning(line, at)) out += '\\';
    out += line[at];
  }
  return out;
}

std::string markdown_link(std::string_view shown, std::string_view target) {
  return fmt::format("[{}]({})", markdown_text(shown), percent_encoded(target));
}

std::string markdown_code(std::string_view text, std::string_view language) {
  std::string lines(text);
  std::erase(lines, '\r');
  if (!lines.ends_with('\n')) lines += '\n';
  const std::string fence(std::max<std::size_t>(3, longest_run(lines, '`') + 1), '`');
  return fmt::format("{}{}\n{}{}", fence, language, printable(lines, "\n\t"), fence);
}

}  // namespace ggufmill
