#pragma once
// The vocabulary of a checkpoint, as one of the readers of tokenizer.h makes it: what goes into the metadata besides
// special tokens and chat templates.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/sentencepiece.h"
#include "stages/huggingface/special_tokens.h"
#include "stages/huggingface/tokenizer.h"
#include "stages/huggingface/tokenizer_json.h"

namespace ggufmill {

struct Token {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct Vocabulary {
  std::string model, pre;  // no pre: empty
  std::vector<Token> tokens;
  bool has_scores = false;
  bool special_beyond = false;  // ids of special tokens may lie beyond the tokens
  // From tokenizer.json or merges.txt, which must outlive it, or none.
  std::optional<MergeList> own_merges{};
  const MergeList* merges = nullptr;
  // What SentencePiece does to a text.
  std::optional<bool> adds_prefix{}, removes_spaces{};
  std::string charsmap{};
  std::map<std::string, std::uint64_t, std::less<>> added{};  // ids of added tokens by text
  std::vector<std::string> warnings{};
};

// The score of added tokens, and that of padding.
inline constexpr float kAddedScore = -1000.0F, kPaddingScore = -10000.0F;
Token padding_token(std::uint64_t id);  // "[PAD17]"

// Tokens that their files do not call special, and that are: "<|...|>", "<pad>" and some more.
bool looks_special(std::string_view text);
// The mark of SentencePiece for a space, U+2581, as a space: what a user's token stands for.
std::string with_spaces(std::string_view text);

// Of kBpe, kWordPiece, kWhitespace, kByteFallbackBpe, and kUnigramFairseq where there is no model file; tokenizer.json
// is there. The files must outlive what is returned.
Result<Vocabulary> read_json_vocabulary(TokenizerReader reader, const TokenizerFiles& files,
                                        const TokenizerOptions& options);
// Of the readers of SentencePiece and Unigram; their file is there.
Result<Vocabulary> read_sentencepiece_vocabulary(TokenizerReader reader, const TokenizerFiles& files,
                                                 const TokenizerOptions& options);

// Of kTekken: tokens, merges, and the special tokens and the version that the file says itself.
struct TekkenVocabulary {
  Vocabulary vocabulary;
  std::uint64_t bos = 0, eos = 0, unknown = 0, padding = 0;
  std::string version;  // "v3"
};
Result<TekkenVocabulary> read_tekken_vocabulary(const std::string& path);

// Of kRwkv; its file is `path`. Padded to the size, or to 65536.
Result<Vocabulary> read_rwkv_vocabulary(const std::string& path, std::optional<std::uint64_t> vocabulary_size);

// Of kPlamo; its file is `path`. Padded to the size.
Result<Vocabulary> read_plamo_vocabulary(const std::string& path, std::uint64_t vocabulary_size);

// Bytes in base64, with or without padding; nothing where a character is none of it.
std::optional<std::string> from_base64(std::string_view text);

// What read_tokenizer() does, of files that are read.
Result<TokenizerMetadata> make_tokenizer(const TokenizerFiles& files, const TokenizerOptions& options);

}  // namespace ggufmill
