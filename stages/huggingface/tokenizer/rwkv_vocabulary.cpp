// Reads rwkv_vocab_v20230424.txt, the vocabulary of RWKV "World" models: one token per line, as "17 'text' 4" or "17
// b'\xff' 1": id, Python literal and number of bytes. Token 0 is not listed. Facts of the format: conversion/base.py
// of llama.cpp (MIT); for literals, the Python language reference.

#include <fmt/format.h>

#include <charconv>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "stages/huggingface/tokenizer/unicode.h"
#include "stages/huggingface/tokenizer/vocabulary.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::uint64_t kMaxVocabularyBytes = 64 << 20;  // maximum file size; the actual file has 1 MB

template <class Number>
std::optional<Number> number_of(std::string_view digits, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// Returns the bytes that a Python string or bytes literal denotes; nullopt if it is not a literal.
std::optional<std::string> literal(std::string_view text) {
  const bool bytes = text.starts_with('b');
  if (bytes) text.remove_prefix(1);
  if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') || text.back() != text.front()) return {};
  const char quote = text.front();
  text = text.substr(1, text.size() - 2);
  std::string result;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == quote || (bytes && static_cast<unsigned char>(c) > 127)) return {};
    if (c != '\\') {
      result += c;
      continue;
    }
    if (text.empty()) return {};
    const char kind = text.front();
    text.remove_prefix(1);
    constexpr std::string_view kLetters = "\\'\"nrt", kMeanings = "\\'\"\n\r\t";
    if (const std::size_t at = kLetters.find(kind); at != std::string_view::npos) {
      result += kMeanings[at];
      continue;
    }
    const std::size_t digits = kind == 'x' ? 2 : bytes ? 0 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    const auto code = text.size() < digits ? std::nullopt : number_of<std::uint32_t>(text.substr(0, digits), 16);
    if (!code || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000)) return {};
    text.remove_prefix(digits);
    if (bytes)
      result += static_cast<char>(*code);
    else
      append_utf8(result, *code);
  }
  return result;
}

// Formats bytes in Python's notation, which llama.cpp reads.
std::string python_bytes(std::string_view bytes) {
  const bool escapes_quote = bytes.find('\'') != std::string_view::npos && bytes.find('"') != std::string_view::npos;
  std::string result;
  for (const char c : bytes) {
    if (c == '\\' || (c == '\'' && escapes_quote))
      result += {'\\', c};
    else if (c == '\n' || c == '\r' || c == '\t')
      result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else if (c >= ' ' && c < 127)
      result += c;
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace

Result<Vocabulary> read_rwkv_vocabulary(const std::string& path, std::optional<std::uint64_t> vocabulary_size) {
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxVocabularyBytes));
  Vocabulary vocabulary;
  vocabulary.model = kRwkvVocabulary;
  vocabulary.special_beyond = true;
  vocabulary.tokens.push_back({"<s>", 0, PieceType::kControl});
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find(' '), last = line.rfind(' ');
    const auto bytes = first < last ? literal(line.substr(first + 1, last - first - 1)) : std::nullopt;
    const auto length = bytes ? number_of<std::uint64_t>(line.substr(last + 1)) : std::nullopt;
    if (!length || *length != bytes->size())
      return input_error(path,
                         fmt::format("line {} is not a token with its number of bytes: {}", vocabulary.tokens.size(),
                                     quoted_name(line)),
                         "expected a line such as 17 'text' 4");
    if (vocabulary.tokens.size() == kMaxTokens)
      return input_error(path, fmt::format("more than {} tokens", kMaxTokens));
    vocabulary.tokens.push_back({python_bytes(*bytes)});
  }
  const std::uint64_t wanted = vocabulary_size.value_or(65536);
  if (vocabulary.tokens.size() > wanted)
    return input_error(
        path, fmt::format("has {} tokens, but {} has {}", vocabulary.tokens.size(),
                          vocabulary_size ? "the vocabulary in config.json" : "the largest RWKV vocabulary", wanted));
  while (vocabulary.tokens.size() < wanted) vocabulary.tokens.push_back(padding_token(vocabulary.tokens.size()));
  return vocabulary;
}

}  // namespace ggufmill::huggingface
