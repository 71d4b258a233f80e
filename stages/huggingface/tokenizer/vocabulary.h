#pragma once
// The vocabulary of a checkpoint, as produced by one of the readers of tokenizer.h: everything in the metadata besides
// special tokens and chat templates.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/tokenizer/sentencepiece.h"
#include "stages/huggingface/tokenizer/special_tokens.h"
#include "stages/huggingface/tokenizer/tokenizer.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"

namespace ggufmill::huggingface {

struct Token {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

// Values of tokenizer.ggml.model, which names kinds of vocabularies after models that have them.
inline constexpr const char *kBytePairVocabulary = "gpt2", *kSentencePieceVocabulary = "llama",
                            *kWordPieceVocabulary = "bert", *kUnigramVocabulary = "t5",
                            *kWhitespaceVocabulary = "whitespace", *kPlamoVocabulary = "plamo2",
                            *kRwkvVocabulary = "rwkv";

struct Vocabulary {
  std::string model, pre;  // k...Vocabulary; `pre` is empty if there is none
  std::vector<Token> tokens;
  bool has_scores = false;
  bool special_beyond = false;  // ids of special tokens may exceed the number of tokens
  // Merges from tokenizer.json, which must outlive this, or from merges.txt (`own_merges`); null or empty if there are
  // none.
  std::optional<MergeList> own_merges{};
  const MergeList* merges = nullptr;
  // Settings of SentencePiece's normalizer.
  std::optional<bool> adds_prefix{}, removes_spaces{};
  std::string charsmap{};
  std::map<std::string, std::uint64_t, std::less<>> added{};  // ids of added tokens by text
  std::vector<std::string> warnings{};
};

// Returns true if one of the readers reads tokenizer.model as llama's vocabulary.
bool can_read_sentencepiece(const TokenizerOptions& options);
// Help for a checkpoint that has its SentencePiece vocabulary only as tokenizer.json.
inline constexpr const char* kCopySentencePiece =
    "copy tokenizer.model, the SentencePiece file of this vocabulary, from the base model into the folder";

// The scores of added tokens and of padding.
inline constexpr float kAddedScore = -1000.0F, kPaddingScore = -10000.0F;
Token padding_token(std::uint64_t id);  // "[PAD17]"

// Returns true for tokens that are special although their files do not mark them: "<|...|>", "<pad>" and some more.
bool looks_special(std::string_view text);
// Replaces SentencePiece's mark for a space, U+2581, with a space; user-defined tokens are stored that way.
std::string with_spaces(std::string_view text);

// Reads the vocabulary for kBpe, kBpeFlagged, kWordPiece, kWhitespace, kByteFallbackBpe, and for kUnigramFairseq
// without a model file. tokenizer.json must exist. The files must outlive the result.
Result<Vocabulary> read_json_vocabulary(TokenizerReader reader, const TokenizerFiles& files,
                                        const TokenizerOptions& options);
// Reads the vocabulary for the SentencePiece and Unigram readers; their file must exist.
Result<Vocabulary> read_sentencepiece_vocabulary(const TokenizerChoice& choice, const TokenizerFiles& files,
                                                 const TokenizerOptions& options);

// The vocabulary for kTekken: tokens, merges, and the special tokens and the version in the file.
struct TekkenVocabulary {
  Vocabulary vocabulary;
  std::uint64_t bos = 0, eos = 0, unknown = 0, padding = 0;
  std::string version;  // "v3"
};
Result<TekkenVocabulary> read_tekken_vocabulary(const std::string& path);

// Reads the vocabulary for kRwkv from the file `path`, padded to the given size, or to 65536.
Result<Vocabulary> read_rwkv_vocabulary(const std::string& path, std::optional<std::uint64_t> vocabulary_size);

// Reads the vocabulary for kPlamo from the file `path`, padded to the given size.
Result<Vocabulary> read_plamo_vocabulary(const std::string& path, std::uint64_t vocabulary_size);

// Reads the vocabulary for kTiktoken from the file `path`, padded to the given size. `config`: tokenizer_config.json.
Result<Vocabulary> read_tiktoken_vocabulary(const std::string& path, const TokenizerChoice& choice,
                                            const boost::json::value& config, std::uint64_t vocabulary_size);

// Decodes base64, with or without padding; nullopt if a character is not in the alphabet.
std::optional<std::string> from_base64(std::string_view text);

// Does the work of read_tokenizer(), given the files already read.
Result<TokenizerMetadata> make_tokenizer(const TokenizerFiles& files, const TokenizerOptions& options);

}  // namespace ggufmill::huggingface
