#include "pipeline/config/yaml_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

std::string without_parameters(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") out += '$';
    out += text[i];
  }
  return out;
}

// Invalid UTF-8 is left unchanged: YAML has no escape for it.
std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence(text));
    if (text[0] == '"' || text[0] == '\\')
      out += {'\\', text[0]};
    else if (is_utf8(text.substr(0, length)) && printable_sequence(text) == 0)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code_point(text.substr(0, length))));
    else
      out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out + "\"";
}

}  // namespace

std::string yaml_quoted(std::string_view raw) {
  const std::string text = without_parameters(raw);
  if (printable(text) != text) return double_quoted(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string regex_literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::vector<std::string> regex_literals(const std::vector<std::string>& texts) {
  std::vector<std::string> patterns;
  patterns.reserve(texts.size());
  for (const std::string& text : texts) patterns.push_back(regex_literal(text));
  return patterns;
}

}  // namespace ggufmill
