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

// Plain scalars that YAML 1.1 or 1.2 reads as a boolean or null.
constexpr std::string_view kReserved[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool can_be_plain(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  const auto harmless = [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || std::string_view("._/+-").find(c) != std::string_view::npos;
  };
  return std::all_of(text.begin(), text.end(), harmless) &&
         std::none_of(std::begin(kReserved), std::end(kReserved),
                      [&](std::string_view word) { return same_word(word, text); });
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out.append(c == '\'' ? 2 : 1, c);
  return out + "'";
}

std::string escape(unsigned code) {
  return code > 0xffff ? fmt::format("\\U{:08x}", code) : fmt::format("\\u{:04x}", code);
}

}  // namespace

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence(text));
    if (text[0] == '"' || text[0] == '\\')
      out += {'\\', text[0]};
    else if (is_utf8(text.substr(0, length)) && printable_sequence(text) == 0)
      out += escape(static_cast<unsigned>(code_point(text.substr(0, length))));
    else
      out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out + "\"";
}

std::string yaml_quoted(std::string_view raw) {
  const std::string text = without_parameters(raw);
  return printable(text) == text ? single_quoted(text) : double_quoted(text);
}

std::string yaml_quoted_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + yaml_quoted(text);
  return "[" + list + "]";
}

std::string yaml_scalar(std::string_view text) {
  if (can_be_plain(text)) return std::string(text);
  return printable(text) == text ? single_quoted(text) : double_quoted(text);
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
