#pragma once
// What tokenizer.json says is done to a text: normalizers change it, pre-tokenizers cut it into pieces, and decoders
// make text of tokens. Each is made once from its JSON and is then a function.

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

inline constexpr std::size_t kMaxText = 1 << 16;  // bytes that a text may grow to

// A part of the text to be encoded.
struct Piece {
  std::string text;                 // UTF-8
  bool first = false;               // begins where the text began
  std::optional<std::uint32_t> id;  // it is this added token: nothing more is done to it
};

using Normalizer = std::function<Status(std::string& text)>;
using PreTokenizer = std::function<Status(std::vector<Piece>& pieces)>;
using Decoder = std::function<Status(std::vector<std::string>& tokens)>;

// `step` null does nothing (a decoder: tokens are joined by spaces). Errors name `path` and the type that is not known.
Result<Normalizer> make_normalizer(const std::string& path, const boost::json::value* step);
Result<PreTokenizer> make_pre_tokenizer(const std::string& path, const boost::json::value* step);
Result<Decoder> make_decoder(const std::string& path, const boost::json::value* step);

void replace_all(std::string& text, std::string_view from, std::string_view to);

// Bytes as the characters that byte-level vocabularies have for them, and back; nothing where a character stands for no
// byte.
std::string byte_level(std::string_view bytes);
std::optional<std::string> from_byte_level(std::string_view text);
// The byte that a token "<0x0A>" stands for.
std::optional<unsigned char> byte_token(std::string_view token);

}  // namespace ggufmill
