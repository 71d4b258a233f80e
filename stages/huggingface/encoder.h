#pragma once
// A tokenizer as the library `transformers` has it after loading a folder: tokenizer.json with what
// tokenizer_config.json changes. It encodes and decodes, which tells how llama.cpp must cut text for this vocabulary.

#include <boost/json/value.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/text_steps.h"
#include "stages/huggingface/tokenizer_json.h"

namespace ggufmill {

struct AddedToken {
  std::string content;
  bool special = false;
  bool normalized = false;   // looked for in the normalized text
  bool single_word = false;  // only where no word character is beside it
  bool strip_left = false;   // takes the white space on that side
  bool strip_right = false;
};

// Not changed after loading; thread-safe then.
class LoadedTokenizer {
 public:
  // `file` must outlive it. `config` is tokenizer_config.json, an empty object where there is none. Fails where the
  // library would give added tokens other ids than the file does.
  static Result<LoadedTokenizer> load(const TokenizerJson& file, const boost::json::value& config);

  const std::map<std::uint32_t, AddedToken>& added() const { return added_; }
  // The added token of this text; null for none.
  const std::uint32_t* added_id(std::string_view text) const;
  // Texts of bos_token, eos_token and so on, and of additional_special_tokens.
  const std::set<std::string, std::less<>>& special() const { return special_; }

  // Of added tokens and the model's.
  std::optional<std::string_view> text_of(std::uint32_t id) const;
  std::optional<std::uint32_t> find(std::string_view text) const;
  std::uint32_t id_end() const;  // one more than the greatest id
  std::size_t size() const;      // how many different texts

  // The text that decoding this added token alone gives.
  Result<std::string> decoded(std::string_view added) const;
  // With the tokens that the post-processor adds. Models: BPE, WordPiece, WordLevel.
  Result<std::vector<std::uint32_t>> encode(std::string_view text) const;

 private:
  explicit LoadedTokenizer(const TokenizerJson& file) : file_(&file), document_(file.document) {}
  Status add_tokens(const boost::json::value& config);
  Status check_ids() const;
  void change_document(const boost::json::value& config);
  Status put_template(bool bos, bool eos);

  const TokenizerJson* file_;
  boost::json::value document_;                           // that of the file, as it is after loading
  std::string class_;                                     // tokenizer_class without "Fast"
  std::map<std::string, AddedToken, std::less<>> roles_;  // "bos_token" -> its token
  std::map<std::uint32_t, AddedToken> added_;
  std::map<std::string, std::uint32_t, std::less<>> added_ids_;
  std::set<std::string, std::less<>> special_;
  bool clean_up_ = false;  // clean_up_tokenization_spaces
  Decoder decoder_;
};

// SHA-256 of the ids of the reference's check text, written "[1, 2, 3]", in lower-case hex.
Result<std::string> pre_tokenizer_hash(const LoadedTokenizer& tokenizer);
// What configs/pre_tokenizers.tsv says of a hash: the name for tokenizer.ggml.pre.
std::optional<std::string_view> pre_tokenizer_named(std::string_view hash);

}  // namespace ggufmill
