// Reads tokenizer.jsonl, the vocabulary of PLaMo 2 and 3: one token per line, as ["text", score, "NORMAL", ...]. Facts
// of the format: conversion/base.py of llama.cpp (MIT).

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "stages/huggingface/tokenizer/vocabulary.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Returns nullopt if the line is not a token. The text may be half of a surrogate pair, which UTF-8 cannot represent.
std::optional<Token> token_of(const json::value& line) {
  const json::array* parts = line.if_array();
  if (!parts || parts->size() < 2 || !(*parts)[0].is_string() || !(*parts)[1].is_number()) return {};
  Token token{std::string(*json_text((*parts)[0])), static_cast<float>((*parts)[1].to_number<double>())};
  if (!is_utf8(token.text)) return {};
  const std::string_view type = parts->size() > 2 ? json_text((*parts)[2]).value_or("") : "";
  if (type == "UNKNOWN")
    token.type = PieceType::kUnknown;
  else if (type == "BYTE")
    token.type = PieceType::kByte;
  else if (type == "CONTROL" || (token.text.starts_with("<|plamo:") && token.text.ends_with("|>")))
    token.type = PieceType::kControl;
  return token;
}

}  // namespace

Result<Vocabulary> read_plamo_vocabulary(const std::string& path, std::uint64_t vocabulary_size) {
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxTokenizerBytes));
  Vocabulary vocabulary;
  vocabulary.model = kPlamoVocabulary;
  vocabulary.pre = "default";
  vocabulary.has_scores = true;
  std::uint64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const auto value = parse_checkpoint_json(path, line);
    auto token = value ? token_of(value.value()) : std::nullopt;
    if (!token)
      return input_error(path, fmt::format("line {} is not a token: {}", number, quoted_name(line, 60)),
                         "expected a line such as [\"text\", -1.5, \"NORMAL\"]");
    if (vocabulary.tokens.size() == kMaxTokens)
      return input_error(path, fmt::format("more than {} tokens", kMaxTokens));
    vocabulary.tokens.push_back(std::move(*token));
  }
  // Numbered from 1, unlike in other vocabularies.
  const std::uint64_t read = vocabulary.tokens.size();
  while (vocabulary.tokens.size() < vocabulary_size) {
    Token padding = padding_token(vocabulary.tokens.size() - read + 1);
    padding.score = kAddedScore;
    vocabulary.tokens.push_back(std::move(padding));
  }
  return vocabulary;
}

}  // namespace ggufmill::huggingface
