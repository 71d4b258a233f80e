#pragma once
// tokenizer.json, the file of the `tokenizers` library: the vocabulary and the merges as tables, the rest as values.

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

inline constexpr std::uint64_t kMaxTokenizerBytes = 256 << 20;  // of tokenizer.json; the largest in use have 40 MB
inline constexpr std::uint32_t kMaxTokens = 4 << 20;
inline constexpr std::size_t kMaxMerges = 8 << 20;

// Texts with ids, found by either. Texts of all tokens lie in one block. Ids are below kMaxTokens.
class TokenTable {
 public:
  // Adds a token. Where the text is there already, the later id is the one that find() gives.
  void add(std::string_view text, std::uint32_t id);
  // The same, but a text that is there only gets the new id.
  void set(std::string_view text, std::uint32_t id);
  std::optional<std::uint32_t> find(std::string_view text) const;
  // Nothing for an id that no token has. Of two tokens with one id the later.
  std::optional<std::string_view> text_of(std::uint32_t id) const;
  // Entries in the order they came.
  std::size_t size() const { return entries_.size(); }
  std::string_view text(std::size_t index) const;
  std::uint32_t id(std::size_t index) const { return entries_[index].id; }
  // One more than the greatest id, 0 when empty.
  std::uint32_t id_end() const { return static_cast<std::uint32_t>(by_id_.size()); }

 private:
  struct Entry {
    std::uint64_t start;
    std::uint32_t bytes;
    std::uint32_t id;
  };
  std::size_t slot_of(std::string_view text) const;  // the slot that holds it, or the free one for it
  void grow();
  void note_id(std::uint32_t id, std::size_t index);

  std::string texts_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // index of an entry plus one, 0 free; a power of two of them
  std::vector<std::uint32_t> by_id_;  // likewise
};

// Pairs of tokens, first merge first.
class MergeList {
 public:
  void add(std::string_view left, std::string_view right);
  std::size_t size() const { return entries_.size(); }
  std::string_view left(std::size_t index) const;
  std::string_view right(std::size_t index) const;

 private:
  struct Entry {
    std::uint64_t start;
    std::uint32_t left, right;  // bytes
  };
  std::string texts_;
  std::vector<Entry> entries_;
};

struct TokenizerJson {
  std::string path;
  boost::json::value document;  // without model.vocab and model.merges
  std::string model;            // "BPE", "WordPiece", "Unigram", "WordLevel"
  TokenTable vocabulary;        // Unigram: the id is the place in the list
  std::vector<double> scores;   // Unigram: of each entry of the vocabulary
  MergeList merges;
};

// A model without a type is BPE where it has merges.
Result<TokenizerJson> read_tokenizer_json(const std::string& path);
Result<TokenizerJson> parse_tokenizer_json(const std::string& path, std::string_view text);

}  // namespace ggufmill
