#include "stages/huggingface/tokenizer/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "pipeline/core/text.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"

namespace ggufmill::huggingface {
namespace {

// One field of a protocol buffer message: a number (wire type 0, 1 or 5) or bytes (2). SentencePiece files contain no
// groups (3 and 4).
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
  unsigned wire = 0;
};

class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }

  // Returns false if the message is truncated or malformed.
  bool next(Field& field) {
    std::uint64_t tag = 0;
    if (!varint(tag)) return false;
    field = {tag >> 3, 0, {}, static_cast<unsigned>(tag & 7)};
    switch (field.wire) {
      case 0:
        return varint(field.value);
      case 1:
        return fixed(8, field.value);
      case 5:
        return fixed(4, field.value);
      case 2: {
        std::uint64_t size = 0;
        if (!varint(size) || size > bytes_.size()) return false;
        field.bytes = bytes_.substr(0, size);
        bytes_.remove_prefix(size);
        return true;
      }
      default:
        return false;
    }
  }

 private:
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool fixed(std::size_t bytes, std::uint64_t& value) {
    if (bytes_.size() < bytes) return false;
    value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
    bytes_.remove_prefix(bytes);
    return true;
  }

  std::string_view bytes_;
};

// Calls take(field) for each field. Returns false if the message is malformed or take() returns false.
bool read_fields(std::string_view bytes, const auto& take) {
  Message message(bytes);
  Field field;
  while (!message.at_end()) {
    if (!message.next(field) || !take(field)) return false;
  }
  return true;
}

}  // namespace

bool SentencePieceModel::read_piece(std::string_view message) {
  Piece& piece = pieces_.emplace_back();
  return read_fields(message, [&](const Field& field) {
    if (field.number == 1 && field.wire == 2) piece.text = field.bytes;
    if (field.number == 2 && field.wire == 5)
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
    if (field.number == 3 && field.wire == 0 && field.value >= 1 && field.value <= 6)
      piece.type = static_cast<PieceType>(field.value);
    return true;
  });
}

bool SentencePieceModel::read_trainer(std::string_view message) {
  return read_fields(message, [&](const Field& field) {
    if (field.number == 3 && field.wire == 0) kind_ = static_cast<Kind>(field.value);
    return true;
  });
}

bool SentencePieceModel::read_normalizer(std::string_view message) {
  return read_fields(message, [&](const Field& field) {
    if (field.number == 2 && field.wire == 2) charsmap_ = field.bytes;
    if (field.number == 3 && field.wire == 0) adds_prefix_ = field.value != 0;
    if (field.number == 4 && field.wire == 0) removes_spaces_ = field.value != 0;
    return true;
  });
}

Result<SentencePieceModel> SentencePieceModel::read(const std::string& path) {
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  if (file->bytes() > kMaxTokenizerBytes)
    return input_error(path,
                       fmt::format("{} bytes; the limit for a tokenizer is {}", file->bytes(), kMaxTokenizerBytes));
  std::string bytes(file->bytes(), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(bytes))));
  return parse(path, std::move(bytes));
}

Result<SentencePieceModel> SentencePieceModel::parse(const std::string& path, std::string bytes) {
  SentencePieceModel model;
  model.bytes_.assign(bytes.begin(), bytes.end());
  const bool valid = read_fields({model.bytes_.data(), model.bytes_.size()}, [&](const Field& field) {
    if (field.wire != 2) return true;
    if (field.number == 1) return model.pieces_.size() < kMaxTokens && model.read_piece(field.bytes);
    if (field.number == 2) return model.read_trainer(field.bytes);
    if (field.number == 3) return model.read_normalizer(field.bytes);
    return true;
  });
  if (!valid || model.pieces_.empty())
    return input_error(path, "this is not a SentencePiece model",
                       "check that it is not a Git LFS pointer or an incomplete download");
  std::size_t unknown = 0;
  for (std::size_t id = 0; id < model.pieces_.size(); ++id) {
    const Piece& piece = model.pieces_[id];
    if (piece.text.empty() || !is_utf8(piece.text))
      return input_error(path, fmt::format("piece {} is {}", id, piece.text.empty() ? "empty" : "not UTF-8"));
    unknown += piece.type == PieceType::kUnknown;
  }
  if (unknown != 1) return input_error(path, fmt::format("{} pieces have type UNKNOWN, expected one", unknown));
  return model;
}

}  // namespace ggufmill::huggingface
