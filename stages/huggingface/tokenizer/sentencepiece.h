#pragma once
// Reads the model files of SentencePiece (tokenizer.model, spiece.model, sentencepiece.bpe.model). They are protocol
// buffers; only the fields that llama.cpp's vocabularies need are read.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"

namespace ggufmill::huggingface {

// The values are those in the file and in tokenizer.ggml.token_type.
enum class PieceType : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

class SentencePieceModel {
 public:
  struct Piece {
    std::string_view text;  // UTF-8, not empty
    float score = 0;
    PieceType type = PieceType::kNormal;
  };
  enum class Kind : std::uint64_t { kUnigram = 1, kBpe = 2, kWord = 3, kCharacter = 4 };

  // Read a model file, or its contents; `path` is for messages. Errors: not a SentencePiece file; a piece whose text is
  // empty or not UTF-8; not exactly one unknown piece.
  static Result<SentencePieceModel> read(const std::string& path);
  static Result<SentencePieceModel> parse(const std::string& path, std::string bytes);

  const std::vector<Piece>& pieces() const GGUFMILL_OUTLIVES_RESULT { return pieces_; }
  Kind kind() const { return kind_; }
  // normalizer_spec.precompiled_charsmap
  std::string_view charsmap() const GGUFMILL_OUTLIVES_RESULT { return charsmap_; }
  bool adds_prefix() const { return adds_prefix_; }        // add_dummy_prefix
  bool removes_spaces() const { return removes_spaces_; }  // remove_extra_whitespaces

  SentencePieceModel(SentencePieceModel&&) = default;
  SentencePieceModel& operator=(SentencePieceModel&&) = default;

 private:
  SentencePieceModel() = default;
  bool read_piece(std::string_view message);
  bool read_trainer(std::string_view message);
  bool read_normalizer(std::string_view message);

  std::vector<char> bytes_;  // The file's contents. A vector, so that the views remain valid when the model is moved.
  std::vector<Piece> pieces_;
  Kind kind_ = Kind::kUnigram;
  std::string_view charsmap_;
  bool adds_prefix_ = true;
  bool removes_spaces_ = true;
};

}  // namespace ggufmill::huggingface
