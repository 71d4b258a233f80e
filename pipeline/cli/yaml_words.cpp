#include "pipeline/cli/yaml_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string without_parameters(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") out += '$';
    out += text[i];
  }
  return out;
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (is_control(c))
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::string yaml_quoted(std::string_view raw) {
  const std::string text = without_parameters(raw);
  if (std::any_of(text.begin(), text.end(), is_control)) return double_quoted(text);
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
