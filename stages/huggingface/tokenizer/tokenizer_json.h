#pragma once
// Reads tokenizer.json, the file of the `tokenizers` library: the vocabulary and the merges as tables, the rest as
// JSON values.

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"

namespace ggufmill::huggingface {

inline constexpr std::uint64_t kMaxTokenizerBytes = 256 << 20;  // of tokenizer.json; the largest in use have 40 MB
inline constexpr std::uint32_t kMaxTokens = 4 << 20;
inline constexpr std::size_t kMaxMerges = 8 << 20;

// Maps texts to ids and back. The texts of all tokens are in one block. Ids are below kMaxTokens.
class TokenTable {
 public:
  // Adds a token. If the text already exists, find() returns the later id.
  void add(std::string_view text, std::uint32_t id);
  // Like add(), but an existing text only gets the new id.
  void set(std::string_view text, std::uint32_t id);
  std::optional<std::uint32_t> find(std::string_view text) const;
  // Returns nullopt if no token has the id. If two tokens have the same id, the later one is returned.
  std::optional<std::string_view> text_of(std::uint32_t id) const GGUFMILL_OUTLIVES_RESULT;
  // Entries in order of insertion.
  std::size_t size() const { return entries_.size(); }
  std::string_view text(std::size_t index) const GGUFMILL_OUTLIVES_RESULT;
  std::uint32_t id(std::size_t index) const { return entries_[index].id; }
  // Returns the greatest id plus one; 0 if empty.
  std::uint32_t id_end() const { return static_cast<std::uint32_t>(by_id_.size()); }

 private:
  struct Entry {
    std::uint64_t start;
    std::uint32_t bytes;
    std::uint32_t id;
  };
  std::size_t slot_of(std::string_view text) const;  // the slot that contains it, or a free one for it
  void grow();
  void note_id(std::uint32_t id, std::size_t index);

  std::string texts_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // index of an entry plus one, 0 if free; the size is a power of two
  std::vector<std::uint32_t> by_id_;  // index of an entry plus one, 0 if none
};

// Pairs of tokens, in merge order.
class MergeList {
 public:
  void add(std::string_view left, std::string_view right);
  std::size_t size() const { return entries_.size(); }
  std::string_view left(std::size_t index) const GGUFMILL_OUTLIVES_RESULT;
  std::string_view right(std::size_t index) const GGUFMILL_OUTLIVES_RESULT;

 private:
  struct Entry {
    std::uint64_t start;
    std::uint32_t left, right;  // in bytes
  };
  std::string texts_;
  std::vector<Entry> entries_;
};

struct TokenizerJson {
  std::string path;
  boost::json::value document;  // without model.vocab and model.merges
  std::string model;            // "BPE", "WordPiece", "Unigram", "WordLevel"
  TokenTable vocabulary;        // Unigram: the id is the index in the list
  std::vector<double> scores;   // Unigram: one per entry of the vocabulary
  MergeList merges;
  bool has_merges = false;  // the model has a member of this name, which may be empty
};

// Help for a vocabulary that the library would not load.
inline constexpr const char* kDamagedTokenizer = "the file is damaged: take tokenizer.json from the original model";

// Returns the kind of a vocabulary: "byte-level BPE", whose tokens stand for bytes; "SentencePiece BPE", which marks
// spaces with U+2581; "BPE" of other characters; or the name of the model: "WordPiece", "Unigram", "WordLevel".
std::string_view vocabulary_kind(GGUFMILL_OUTLIVES_RESULT const TokenizerJson& file);
inline constexpr std::string_view kByteLevelBpe = "byte-level BPE", kSentencePieceBpe = "SentencePiece BPE";

// Read tokenizer.json from a file or from `text`. A model without a type is BPE if it has merges.
Result<TokenizerJson> read_tokenizer_json(const std::string& path);
Result<TokenizerJson> parse_tokenizer_json(const std::string& path, std::string_view text);

}  // namespace ggufmill::huggingface
