#pragma once
// The text processing steps in tokenizer.json: normalizers change a text, pre-tokenizers split it into pieces, and
// decoders turn tokens into text. Each is made once from its JSON and is then a function.

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill::huggingface {

inline constexpr std::size_t kMaxText = 1 << 16;  // maximum size in bytes to which a text may grow

// A part of the text to encode.
struct Piece {
  std::string text;                 // UTF-8
  bool first = false;               // at the start of the text
  std::optional<std::uint32_t> id;  // added token; such a piece is not processed further
};

using Normalizer = std::function<Status(std::string& text)>;
using PreTokenizer = std::function<Status(std::vector<Piece>& pieces)>;
using Decoder = std::function<Status(std::vector<std::string>& tokens)>;

// Make a processing step. A null `step` does nothing (a decoder joins the tokens with spaces). Errors name `path` and
// the unknown type.
Result<Normalizer> make_normalizer(const std::string& path, const boost::json::value* step);
Result<PreTokenizer> make_pre_tokenizer(const std::string& path, const boost::json::value* step);
Result<Decoder> make_decoder(const std::string& path, const boost::json::value* step);

void replace_all(std::string& text, std::string_view from, std::string_view to);

// Convert bytes to the characters that byte-level vocabularies use for them, and back; nullopt if a character does not
// represent a byte.
std::string byte_level(std::string_view bytes);
std::optional<std::string> from_byte_level(std::string_view text);
// Returns the byte that a token such as "<0x0A>" denotes.
std::optional<unsigned char> byte_token(std::string_view token);

}  // namespace ggufmill::huggingface
