#pragma once
// A tokenizer in the state that the `transformers` library gives it after loading a folder: tokenizer.json with the
// changes from tokenizer_config.json. It encodes and decodes text, from which the pre-tokenizer that llama.cpp must
// use for this vocabulary is determined.

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"
#include "stages/huggingface/tokenizer/text_steps.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"

namespace ggufmill::huggingface {

struct AddedToken {
  std::string content;
  bool special = false;
  bool normalized = false;   // matched against the normalized text
  bool single_word = false;  // only if not adjacent to a word character
  bool strip_left = false;   // absorbs the white space on that side
  bool strip_right = false;
};

// Immutable after loading, hence thread-safe.
class LoadedTokenizer {
 public:
  // Loads a tokenizer. `file` must outlive the result. `config` is tokenizer_config.json, or an empty object if that is
  // missing. Fails if the library would assign an added token the id of one of the model's, or a token with a role
  // another id than the file lists.
  static Result<LoadedTokenizer> load(GGUFMILL_OUTLIVES_RESULT const TokenizerJson& file,
                                      const boost::json::value& config);

  const std::map<std::uint32_t, AddedToken>& added() const { return added_; }
  // Returns the id of the added token with this text; null if there is none.
  const std::uint32_t* added_id(std::string_view text) const;
  // Texts of bos_token, eos_token and the other roles, and of additional_special_tokens.
  const std::set<std::string, std::less<>>& special() const { return special_; }
  // Added tokens that have another id than the file lists.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // These cover both the added tokens and the model's.
  std::optional<std::string_view> text_of(std::uint32_t id) const;
  std::optional<std::uint32_t> find(std::string_view text) const;
  std::uint32_t id_end() const;  // greatest id plus one
  std::size_t size() const;      // number of distinct texts

  // Returns the text that results from decoding this added token alone.
  Result<std::string> decoded(std::string_view added) const;
  // Encodes `text`, including the tokens that the post-processor adds. Supported models: BPE, WordPiece, WordLevel.
  Result<std::vector<std::uint32_t>> encode(std::string_view text) const;

 private:
  struct Renumbered {
    std::string content;
    std::int64_t listed;
    std::uint32_t assigned;
  };
  explicit LoadedTokenizer(const TokenizerJson& file) : file_(&file), document_(file.document) {}
  Status add_tokens(const boost::json::value& config);
  // Adds a token under an id, or replaces the one with this text. `listed`: its id in tokenizer.json.
  Status add_token(AddedToken token, std::uint32_t id, std::optional<std::int64_t> listed);
  Status check_renumbered();
  void change_document(const boost::json::value& config);
  Status put_template(bool bos, bool eos);

  const TokenizerJson* file_;
  boost::json::value document_;                           // the file's document, in its state after loading
  std::string class_;                                     // tokenizer_class without "Fast"
  std::map<std::string, AddedToken, std::less<>> roles_;  // "bos_token" -> its token
  std::map<std::uint32_t, AddedToken> added_;
  std::map<std::string, std::uint32_t, std::less<>> added_ids_;
  std::set<std::string, std::less<>> special_;
  std::vector<Renumbered> renumbered_;
  std::vector<std::string> warnings_;
  bool clean_up_ = false;  // clean_up_tokenization_spaces
  Decoder decoder_;
};

// Returns the SHA-256, in lowercase hex, of the ids of the reference's check text, formatted as "[1, 2, 3]".
Result<std::string> pre_tokenizer_hash(const LoadedTokenizer& tokenizer);
// Looks up a hash in configs/pre_tokenizers.tsv and returns the value for tokenizer.ggml.pre.
std::optional<std::string_view> pre_tokenizer_named(std::string_view hash);
// Returns the names that llama.cpp knows, sorted.
std::vector<std::string> pre_tokenizer_names();

}  // namespace ggufmill::huggingface
