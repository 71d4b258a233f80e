#pragma once
// Reads the tokenizer of a checkpoint folder as the `tokenizer.*` metadata that llama.cpp's convert_hf_to_gguf.py
// writes: the same keys, in the same order, with the same values.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::huggingface {

// Selects the files to read, and how a vocabulary is converted to tokens, scores and types.
enum class TokenizerReader {
  kTekken,                  // tekken.json, if there is no tokenizer.json; defines its own special tokens. model "gpt2"
  kBpe,                     // tokenizer.json: BPE or another model, with merges; `pre` by hash. model "gpt2"
  kBpeFlagged,              // the same; added tokens verbatim, control tokens according to their flag
  kWordPiece,               // tokenizer.json: tokens with a mark at the start of a word; `pre` by hash. model "bert"
  kWhitespace,              // tokenizer.json: model and pre "whitespace"
  kByteFallbackBpe,         // tokenizer.json: BPE with byte tokens. model "llama"
  kSentencePiece,           // tokenizer.model, then added_tokens.json and added_tokens_decoder. model "llama"
  kSentencePieceListed,     // the same, then added_tokens of tokenizer.json; added tokens have the type given there
  kSentencePieceAppended,   // the same, with the tokens of added_tokens.json after all pieces
  kSentencePieceRedefined,  // tokenizer.model, then added_tokens_decoder verbatim. model "llama"
  kUnigram,                 // tokenizer.model or spiece.model with its normalizer. model "t5", or "llama" if it is BPE
  kUnigramFairseq,          // sentencepiece.bpe.model with fairseq's first four tokens, or tokenizer.json. model "t5"
  kRwkv,                    // rwkv_vocab_v20230424.txt. model "rwkv"
  kPlamo,                   // tokenizer.jsonl. model "plamo2"
  kTiktoken,                // the file of ranks that the choice names, then its special tokens. model "gpt2"
  kNone,                    // no vocabulary. model "none"
};
// Returns "tekken", "bpe", "bpe-flagged", "wordpiece", "whitespace", "byte-fallback-bpe", "sentencepiece",
// "sentencepiece-listed", "sentencepiece-appended", "sentencepiece-redefined", "unigram", "unigram-fairseq", "rwkv",
// "plamo", "tiktoken" or "none".
std::string_view tokenizer_reader_name(TokenizerReader reader);
std::optional<TokenizerReader> tokenizer_reader_named(std::string_view name);

// A control token with a fixed id.
struct FixedToken {
  std::uint32_t id = 0;
  std::string text{};
};

struct TokenizerChoice {
  TokenizerReader reader;
  std::string tokenizer_class{};           // applies only if tokenizer_config.json names this class
  std::optional<bool> add_space_prefix{};  // written last if this reader was used
  bool own_format = false;  // kTekken: also if there is a tokenizer.json; chat_template.jinja precedes other templates
  std::string model{};      // kByteFallbackBpe: tokenizer.ggml.model, with merges and without `pre`
  bool scores = true;       // write the vocabulary's scores
  // kTiktoken: the file's name, and the special tokens that follow the ranks, after which come <|extra_0|>,
  // <|extra_1|>, ... up to the given number, and then tokens that tokenizer_config.json names. `pre`:
  // tokenizer.ggml.pre, unless the options have another.
  std::string file{};
  std::vector<std::string> special{};
  std::optional<std::uint32_t> extra_tokens{}, reserved_tokens{};
  std::string pre{};
  // kUnigramFairseq: tokens that the model file does not have. tokenizer.json has them.
  std::vector<FixedToken> extra{};
};

// A special token that an architecture sets.
struct SpecialTokenRule {
  std::string role;                   // "bos", "eos", "eot", ...
  std::string text{};                 // text of an added token; or
  std::optional<std::uint32_t> id{};  // a fixed id
  bool replaces = false;              // overrides the token that the files name
  bool must_exist = true;             // it is an error if there is no such added token; otherwise the rule is skipped
};

// A second search for special tokens, in other roles; its results are written after the first ones.
struct SpecialTokenPass {
  std::vector<std::string> roles;
  std::vector<SpecialTokenRule> rules;
};

// Names of pre-tokenizers (tokenizer.ggml.pre) by the SHA-256 of the token ids of llama.cpp's check text.
using PreTokenizers = std::map<std::string, std::string, std::less<>>;
// Returns true for 64 lowercase hexadecimal digits.
bool is_pre_tokenizer_hash(std::string_view text);

struct TokenizerOptions {
  std::vector<TokenizerChoice> readers;            // the first one whose files exist is used
  std::optional<std::uint64_t> vocabulary_size{};  // from config.json; the vocabulary is padded to it
  std::optional<std::uint32_t> token_types{};      // type_vocab_size, for tokenizer.ggml.token_type_count
  std::string pre{};                    // tokenizer.ggml.pre; empty: determined by the hash of the check text
  PreTokenizers pre_tokenizers{};       // looked up before the built-in ones
  bool space_prefix_of_config = false;  // add_prefix_space of tokenizer_config.json is written first
  std::vector<std::string>
      omitted_roles{};                     // special tokens of these roles are ignored if config.json has a negative id
  std::vector<std::string> user_tokens{};  // texts of tokens that are user-defined, regardless of the files
  std::vector<std::string> control_tokens{};  // texts of control tokens, regardless of the files
  // Pre-tokenizers that never match a user-defined token of spaces alone: such a token becomes a normal one, with as
  // many marks of a word's beginning.
  std::vector<std::string> space_marks{};
  std::vector<SpecialTokenRule> special_tokens{};
  std::string chat_template{};  // used if the files have none; a text, or the name of a template that llama.cpp knows
  std::optional<SpecialTokenPass> second_pass{};
};

struct TokenizerMetadata {
  Metadata metadata;  // keys that do not begin with "tokenizer." are the architecture's
  TokenizerReader reader = TokenizerReader::kNone;
  std::uint64_t tokens = 0;
  std::uint64_t entries = 0;  // with tokenizer.json: size of its vocabulary plus its added tokens; otherwise `tokens`
  std::vector<std::string> warnings;
};

// Returns the hash by which the pre-tokenizer of the tokenizer.json in `folder` is recognized; empty without such a
// file. Errors have the code kBadInput and name the file.
Result<std::string> pre_tokenizer_hash_of(const fs::path& folder);

// Reads the tokenizer in `folder`. Errors have the code kBadInput and name the file; there is no partial result.
// Memory: about three times the size of the tokenizer's files. Also reads config.json, for the ids of special tokens.
Result<TokenizerMetadata> read_tokenizer(const fs::path& folder, const TokenizerOptions& options);

}  // namespace ggufmill::huggingface
