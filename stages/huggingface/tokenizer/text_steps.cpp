#include "stages/huggingface/tokenizer/text_steps.h"

#include <array>
#include <cctype>
#include <charconv>

#include "stages/huggingface/tokenizer/step_maker.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

std::string escaped(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) out += '\\';
    out += c;
  }
  return out;
}

// Maps bytes to characters: printable Latin-1 bytes map to themselves, the others to characters from U+0100 on.
const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> characters_of_bytes = [] {
    std::array<char32_t, 256> table{};
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      table[byte] = itself ? byte : next++;
    }
    return table;
  }();
  return characters_of_bytes;
}

}  // namespace

std::string step_text(const json::value& step, std::string_view name, std::string_view otherwise) {
  const auto text = json_string(step, name);
  return std::string(text ? *text : otherwise);
}

Result<Regex> step_pattern(const std::string& path, const json::value& step, std::shared_ptr<MatchBudget> budget) {
  if (const json::value* pattern = json_member(step, "pattern")) {
    if (const auto regex = json_string(*pattern, "Regex")) return Regex::compile(path, *regex, std::move(budget));
    if (const auto text = json_string(*pattern, "String"))
      return Regex::compile(path, escaped(*text), std::move(budget));
  }
  return input_error(path, "a tokenizer step has a `pattern` that is neither Regex nor String");
}

Result<std::string> replaced(const Regex& regex, std::string_view content, std::string_view text) {
  BOOST_OUTCOME_TRY(const auto found, regex.find_all(text));
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, end] : found) {
    out += text.substr(at, begin - at);
    out += content;
    if (out.size() > kMaxText) break;
    at = end;
  }
  out += text.substr(at);
  return out;
}

std::optional<unsigned char> byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned char byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return byte;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string byte_level(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_utf8(out, byte_characters()[static_cast<unsigned char>(byte)]);
  return out;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  const auto& table = byte_characters();
  std::string out;
  for (const Character& character : characters(text)) {
    const auto at = std::find(table.begin(), table.end(), character.code);
    if (at == table.end()) return std::nullopt;
    out += static_cast<char>(at - table.begin());
  }
  return out;
}

}  // namespace ggufmill::huggingface
