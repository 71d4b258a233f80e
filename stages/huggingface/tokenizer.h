#pragma once
// The tokenizer of a checkpoint folder as the metadata `tokenizer.*` that convert_hf_to_gguf.py of llama.cpp writes:
// the same keys, in the same order, with the same values.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"

namespace ggufmill {

// Which files are read, and how a vocabulary becomes tokens, scores and types.
enum class TokenizerReader {
  kTekken,               // tekken.json, where there is no tokenizer.json; says its special tokens itself. model "gpt2"
  kBpe,                  // tokenizer.json: BPE or another model, with merges; `pre` by hash. model "gpt2"
  kBpeFlagged,           // the same; added tokens as the file writes them, control tokens where their flag says so
  kWordPiece,            // tokenizer.json: tokens with a mark where a word begins; `pre` by hash. model "bert"
  kWhitespace,           // tokenizer.json: model and pre "whitespace"
  kByteFallbackBpe,      // tokenizer.json: BPE with byte tokens. model "llama"
  kSentencePiece,        // tokenizer.model, then added_tokens.json and added_tokens_decoder. model "llama"
  kSentencePieceListed,  // the same, then added_tokens of tokenizer.json; added tokens have the type they say
  kSentencePieceAppended,   // the same, with the tokens of added_tokens.json after all pieces
  kSentencePieceRedefined,  // tokenizer.model, then added_tokens_decoder as it stands. model "llama"
  kUnigram,         // tokenizer.model or spiece.model with its normalizer. model "t5", or "llama" where it is BPE
  kUnigramFairseq,  // sentencepiece.bpe.model with fairseq's first four tokens, or tokenizer.json. model "t5"
  kRwkv,            // rwkv_vocab_v20230424.txt. model "rwkv"
  kPlamo,           // tokenizer.jsonl. model "plamo2"
  kNone,            // no vocabulary. model "none"
};
// "tekken", "bpe", "bpe-flagged", "wordpiece", "whitespace", "byte-fallback-bpe", "sentencepiece",
// "sentencepiece-listed", "sentencepiece-appended", "sentencepiece-redefined", "unigram", "unigram-fairseq", "rwkv",
// "plamo", "none".
std::string_view tokenizer_reader_name(TokenizerReader reader);
std::optional<TokenizerReader> tokenizer_reader_named(std::string_view name);

struct TokenizerChoice {
  TokenizerReader reader;
  std::string tokenizer_class{};           // only where tokenizer_config.json names this class
  std::optional<bool> add_space_prefix{};  // written after everything else where this reader read
  bool own_format = false;  // kTekken: beside a tokenizer.json, too, and chat_template.jinja before any other template
  std::string model{};      // of kByteFallbackBpe: tokenizer.ggml.model, with merges and without `pre`
  bool scores = true;       // whether those of the vocabulary are written
};

// A special token that an architecture sets.
struct SpecialTokenRule {
  std::string role;                   // "bos", "eos", "eot", ...
  std::string text{};                 // of an added token; or
  std::optional<std::uint32_t> id{};  // a fixed id
  bool replaces = false;              // also where the files name another one
  bool must_exist = true;             // no added token of that text is an error, else no rule
};

// Special tokens are looked for again, in other roles, and written after the first ones.
struct SpecialTokenPass {
  std::vector<std::string> roles;
  std::vector<SpecialTokenRule> rules;
};

struct TokenizerOptions {
  std::vector<TokenizerChoice> readers;            // the first whose files are there reads
  std::optional<std::uint64_t> vocabulary_size{};  // from config.json: padded to it
  std::optional<std::uint32_t> token_types{};      // type_vocab_size, for tokenizer.ggml.token_type_count
  std::string pre{};                               // tokenizer.ggml.pre; empty: found by the hash of the check text
  bool space_prefix_of_config = false;             // add_prefix_space of tokenizer_config.json comes first
  std::vector<std::string> user_tokens{};          // texts of tokens that are the user's, whatever the files say
  std::vector<std::string> control_tokens{};       // texts of control tokens, whatever the files say
  std::vector<SpecialTokenRule> special_tokens{};
  std::string chat_template{};  // where the files have none; a text, or the name of one that llama.cpp knows
  std::optional<SpecialTokenPass> second_pass{};
};

struct TokenizerMetadata {
  Metadata metadata;  // a key that does not begin with "tokenizer." is the architecture's
  TokenizerReader reader = TokenizerReader::kNone;
  std::uint64_t tokens = 0;
  std::uint64_t entries = 0;  // of tokenizer.json: its vocabulary and its added tokens; else as many as tokens
  std::vector<std::string> warnings;
};

// Errors are of code kBadInput and name the file; no partial result. Memory: about three times the tokenizer's files.
// Reads config.json too, for the ids of special tokens.
Result<TokenizerMetadata> read_tokenizer(const std::filesystem::path& folder, const TokenizerOptions& options);

}  // namespace ggufmill
