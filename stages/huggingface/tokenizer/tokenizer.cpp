#include "stages/huggingface/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/tokenizer/special_tokens.h"
#include "stages/huggingface/tokenizer/text_steps.h"
#include "stages/huggingface/tokenizer/vocabulary.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
struct ReaderName {
  TokenizerReader reader;
  std::string_view name;
};
constexpr ReaderName kReaders[] = {
    {TokenizerReader::kTekken, "tekken"},
    {TokenizerReader::kBpe, "bpe"},
    {TokenizerReader::kBpeFlagged, "bpe-flagged"},
    {TokenizerReader::kWordPiece, "wordpiece"},
    {TokenizerReader::kWhitespace, "whitespace"},
    {TokenizerReader::kByteFallbackBpe, "byte-fallback-bpe"},
    {TokenizerReader::kSentencePiece, "sentencepiece"},
    {TokenizerReader::kSentencePieceListed, "sentencepiece-listed"},
    {TokenizerReader::kSentencePieceAppended, "sentencepiece-appended"},
    {TokenizerReader::kSentencePieceRedefined, "sentencepiece-redefined"},
    {TokenizerReader::kUnigram, "unigram"},
    {TokenizerReader::kUnigramFairseq, "unigram-fairseq"},
    {TokenizerReader::kRwkv, "rwkv"},
    {TokenizerReader::kPlamo, "plamo"},
    {TokenizerReader::kTiktoken, "tiktoken"},
    {TokenizerReader::kNone, "none"},
};

constexpr std::string_view kRwkvFile = "rwkv_vocab_v20230424.txt";

// Returns the mark of the beginning of a word, repeated `count` times.
std::string marks_of_words(std::size_t count) {
  std::string text;
  while (count-- > 0) text += "\u2581";
  return text;
}

// Appends the encoded elements of an array individually, so that a large array is in memory only once.
class ArrayMaker {
 public:
  ArrayMaker(MetadataType element, std::uint64_t count) {
    put(static_cast<std::uint32_t>(element));
    put(count);
  }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    bytes_ += text;
  }
  template <class T>
  void put(T number) requires std::is_unsigned_v<T> {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_ += static_cast<char>(number >> (8 * i));
  }
  MetadataValue done() { return {MetadataType::kArray, std::move(bytes_)}; }

 private:
  std::string bytes_;
};

class TokenizerMaker {
 public:
  TokenizerMaker(const TokenizerFiles& files, const TokenizerOptions& options) : files_(files), options_(options) {}

  Result<TokenizerMetadata> make() {
    if (options_.vocabulary_size && *options_.vocabulary_size > kMaxTokens) {
      return input_error(files_.folder / "config.json", fmt::format("a vocabulary of {} tokens; the limit is {}",
                                                                    *options_.vocabulary_size, kMaxTokens));
    }
    std::vector<std::string> missing;
    for (const TokenizerChoice& choice : options_.readers) {
      BOOST_OUTCOME_TRY(const bool readable, applies(choice, missing));
      if (!readable) continue;
      out_.reader = choice.reader;
      writes_scores_ = choice.scores;
      if (choice.reader == TokenizerReader::kTekken) {
        BOOST_OUTCOME_TRY(read_tekken(choice.own_format));
        return std::move(out_);
      }
      if (options_.space_prefix_of_config) {
        const json::value* prefix = json_member(files_.tokenizer_config, "add_prefix_space");
        if (prefix && prefix->is_bool()) set_flag("add_space_prefix", prefix->get_bool());
      }
      BOOST_OUTCOME_TRY(read(choice));
      if (options_.second_pass) {
        BOOST_OUTCOME_TRY(SpecialTokens special,
                          SpecialTokens::find(files_, options_.second_pass->roles, std::nullopt, out_.warnings));
        BOOST_OUTCOME_TRY(apply(options_.second_pass->rules, special));
        special.write(out_.metadata);
      }
      if (choice.add_space_prefix) set_flag("add_space_prefix", *choice.add_space_prefix);
      return std::move(out_);
    }
    if (options_.readers.empty())
      return input_error(files_.folder, "no tokenizer: the architecture's map names no reader for it",
                         "list `readers` under `tokenizer:` in the map, or extend a map that lists them");
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return input_error(files_.folder, fmt::format("no tokenizer: {}", fmt::join(missing, "; ")), help_for_missing());
  }

 private:
  fs::path file(std::string_view name) const { return files_.folder / name; }
  void set(std::string_view key, MetadataValue value) {
    out_.metadata.set("tokenizer.ggml." + std::string(key), std::move(value));
  }
  void set_flag(std::string_view key, bool value) { set(key, metadata_bool(value)); }
  void set_token_types() {
    if (options_.token_types) set("token_type_count", metadata_unsigned(MetadataType::kUint32, *options_.token_types));
  }

  // Returns true if the reader's input files exist; otherwise adds what is missing to `missing`.
  Result<bool> applies(const TokenizerChoice& choice, std::vector<std::string>& missing) const {
    const auto need = [&](bool there, std::string what) {
      if (!there) missing.push_back(std::move(what));
      return there;
    };
    if (!choice.tokenizer_class.empty()) {
      const auto name = json_string(files_.tokenizer_config, "tokenizer_class");
      if (!need(name && *name == choice.tokenizer_class,
                fmt::format("tokenizer_config.json is not of class {}", choice.tokenizer_class)))
        return false;
    }
    const auto need_file = [&](std::string_view name) { return need(is_file(file(name)), describe_missing(name)); };
    const auto need_tokenizer = [&] { return need(files_.tokenizer.has_value(), describe_missing("tokenizer.json")); };
    switch (choice.reader) {
      case TokenizerReader::kTekken:
        return need_file("tekken.json") && (choice.own_format || !files_.tokenizer);
      case TokenizerReader::kBpe:
      case TokenizerReader::kBpeFlagged:
      case TokenizerReader::kWordPiece:
      case TokenizerReader::kWhitespace:
        return need_tokenizer();
      case TokenizerReader::kByteFallbackBpe:
        return need_tokenizer() && need(has_byte_fallback(), "tokenizer.json has no BPE model with byte fallback");
      case TokenizerReader::kSentencePiece:
      case TokenizerReader::kSentencePieceListed:
      case TokenizerReader::kSentencePieceAppended:
      case TokenizerReader::kSentencePieceRedefined:
        return need_file("tokenizer.model");
      case TokenizerReader::kUnigram:
        return need(is_file(file("tokenizer.model")) || is_file(file("spiece.model")),
                    "tokenizer.model and spiece.model are missing");
      case TokenizerReader::kUnigramFairseq:
        return need(is_file(file("sentencepiece.bpe.model")) || files_.tokenizer,
                    "sentencepiece.bpe.model and tokenizer.json are missing");
      case TokenizerReader::kRwkv:
        return need_file(kRwkvFile);
      case TokenizerReader::kPlamo:
        return need_file("tokenizer.jsonl");
      case TokenizerReader::kTiktoken:
        return need_file(choice.file);
      case TokenizerReader::kNone:
        return true;
    }
    return true;
  }

  // Returns "tokenizer.json is missing", or what exists in place of the file.
  std::string describe_missing(std::string_view name) const {
    const std::string_view kind = kind_of_path(file(name).string());
    return kind.empty() ? fmt::format("{} is missing", name) : fmt::format("{} is {}, not a file", name, kind);
  }

  // Trainers often save tokenizer.json alone.
  std::string help_for_missing() const {
    const bool is_unigram = std::ranges::count(options_.readers, TokenizerReader::kUnigram, &TokenizerChoice::reader);
    if (!files_.tokenizer || !(is_unigram || can_read_sentencepiece(options_)))
      return "copy the checkpoint's tokenizer files into the folder";
    const std::string_view kind = vocabulary_kind(*files_.tokenizer);
    if (kind == "Unigram" && is_unigram)
      return "copy tokenizer.model or spiece.model, whichever the base model has, from it into the folder";
    if (kind == kSentencePieceBpe) return kCopySentencePiece;
    return fmt::format(
        "use the tokenizer of the base model: this architecture needs a SentencePiece vocabulary, and tokenizer.json "
        "is of the kind {}",
        kind);
  }

  bool has_byte_fallback() const {
    const json::value& document = files_.tokenizer->document;
    const json::value *decoder = json_member(document, "decoder"), *model = json_member(document, "model");
    const auto type = decoder ? json_string(*decoder, "type") : std::nullopt;
    return files_.tokenizer->model == "BPE" && model && json_flag(*model, "byte_fallback") && type &&
           *type == "Sequence";
  }

  Status read(const TokenizerChoice& choice) {
    const TokenizerReader reader = choice.reader;
    if (reader == TokenizerReader::kNone) {
      set("model", metadata_string("none"));
      return ok();
    }
    if (reader == TokenizerReader::kPlamo) return read_plamo();
    BOOST_OUTCOME_TRY(Vocabulary vocabulary, read_vocabulary(choice));
    out_.warnings.insert(out_.warnings.end(), vocabulary.warnings.begin(), vocabulary.warnings.end());
    added_ = vocabulary.added;
    if (!choice.model.empty()) {
      vocabulary.model = choice.model;
      vocabulary.pre.clear();
      vocabulary.merges = &files_.tokenizer->merges;
      vocabulary.special_beyond = true;
    }
    const bool marks_spaces = std::ranges::count(options_.space_marks, vocabulary.pre) > 0;
    for (Token& token : vocabulary.tokens) {
      if (marks_spaces && token.type == PieceType::kUserDefined && !token.text.empty() &&
          token.text.find_first_not_of(' ') == std::string::npos)
        token = {marks_of_words(token.text.size())};
      if (std::ranges::count(options_.user_tokens, token.text) > 0) token.type = PieceType::kUserDefined;
      if (std::ranges::count(options_.control_tokens, token.text) > 0) token.type = PieceType::kControl;
    }
    if (reader == TokenizerReader::kWordPiece) set_token_types();
    write(vocabulary);
    if (is_of_json(reader)) {
      const json::array* added = json_array(files_.tokenizer->document, "added_tokens");
      out_.entries = files_.tokenizer->vocabulary.size() + (added ? added->size() : 0);
    }
    const std::size_t tokens = vocabulary.tokens.size();
    std::vector<std::string> roles{"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
    std::erase_if(roles, [&](const std::string& role) {
      const json::value* id = json_member(files_.config, role + "_token_id");
      return std::ranges::count(options_.omitted_roles, role) > 0 && id && id->is_int64() && id->get_int64() < 0;
    });
    BOOST_OUTCOME_TRY(
        SpecialTokens special,
        SpecialTokens::find(files_, std::move(roles),
                            vocabulary.special_beyond ? std::nullopt : std::optional<std::uint64_t>(tokens),
                            out_.warnings));
    BOOST_OUTCOME_TRY(apply(options_.special_tokens, special));
    special.write(out_.metadata);
    if (reader == TokenizerReader::kBpe || reader == TokenizerReader::kBpeFlagged ||
        reader == TokenizerReader::kWhitespace)
      set_token_types();
    if (!options_.chat_template.empty() && !out_.metadata.find("tokenizer.chat_template"))
      out_.metadata.set("tokenizer.chat_template", metadata_string(options_.chat_template));
    return ok();
  }

  Result<Vocabulary> read_vocabulary(const TokenizerChoice& choice) const {
    const TokenizerReader reader = choice.reader;
    if (reader == TokenizerReader::kRwkv)
      return read_rwkv_vocabulary(file(kRwkvFile).string(), options_.vocabulary_size);
    if (reader == TokenizerReader::kTiktoken) {
      BOOST_OUTCOME_TRY(Vocabulary vocabulary,
                        read_tiktoken_vocabulary(file(choice.file).string(), choice, files_.tokenizer_config,
                                                 options_.vocabulary_size.value_or(0)));
      vocabulary.pre = options_.pre.empty() ? choice.pre : options_.pre;
      return vocabulary;
    }
    return is_of_json(reader) ? read_json_vocabulary(reader, files_, options_)
                              : read_sentencepiece_vocabulary(choice, files_, options_);
  }

  bool is_of_json(TokenizerReader reader) const {
    return reader == TokenizerReader::kBpe || reader == TokenizerReader::kBpeFlagged ||
           reader == TokenizerReader::kWordPiece || reader == TokenizerReader::kWhitespace ||
           reader == TokenizerReader::kByteFallbackBpe ||
           (reader == TokenizerReader::kUnigramFairseq && !is_file(file("sentencepiece.bpe.model")));
  }

  // Finds special tokens only by the texts in tokenizer_config.json; writes no chat template.
  Status read_plamo() {
    const std::string path = file("tokenizer.jsonl").string();
    BOOST_OUTCOME_TRY(const Vocabulary vocabulary, read_plamo_vocabulary(path, options_.vocabulary_size.value_or(0)));
    write(vocabulary);
    SpecialTokens special;
    for (const char* role : {"bos", "eos", "pad", "sep", "unk"}) {
      const auto text = json_string(files_.tokenizer_config, fmt::format("{}_token", role));
      if (!text) continue;
      const auto found = std::ranges::find(vocabulary.tokens, *text, &Token::text);
      if (found == vocabulary.tokens.end())
        return input_error(path, fmt::format("has no token {}, which tokenizer_config.json names as {}_token",
                                             quoted_name(*text), role));
      special.replace(role, static_cast<std::uint64_t>(found - vocabulary.tokens.begin()));
    }
    BOOST_OUTCOME_TRY(apply(options_.special_tokens, special));
    special.write(out_.metadata);
    return ok();
  }

  // Special tokens and the chat template depend only on the file and its version.
  Status read_tekken(bool own_format) {
    const std::string path = file("tekken.json").string();
    BOOST_OUTCOME_TRY(const TekkenVocabulary tekken, read_tekken_vocabulary(path));
    set("model", metadata_string(tekken.vocabulary.model));
    set("pre", metadata_string(options_.pre.empty() ? tekken.vocabulary.pre : options_.pre));
    write_merges(*tekken.vocabulary.own_merges);
    set("bos_token_id", metadata_unsigned(MetadataType::kUint32, tekken.bos));
    set("eos_token_id", metadata_unsigned(MetadataType::kUint32, tekken.eos));
    set("unknown_token_id", metadata_unsigned(MetadataType::kUint32, tekken.unknown));
    set("padding_token_id", metadata_unsigned(MetadataType::kUint32, tekken.padding));
    write_tokens(tekken.vocabulary.tokens, MetadataType::kInt32);
    out_.metadata.set("vocab_size", metadata_unsigned(MetadataType::kUint32, tekken.vocabulary.tokens.size()));
    set_flag("add_bos_token", true);
    set_flag("add_eos_token", false);
    BOOST_OUTCOME_TRY(const std::string chat_template, tekken_template(tekken.version, own_format));
    if (!chat_template.empty()) out_.metadata.set("tokenizer.chat_template", metadata_string(chat_template));
    return ok();
  }

  // llama.cpp has built-in names for the templates of old versions, and its own files for two later ones; the folder's
  // template is used instead of the latter.
  Result<std::string> tekken_template(std::string_view version, bool own_format) {
    const fs::path path = file("chat_template.jinja");
    const bool is_named = version == "v1" || version == "v3" || version == "v7";
    if (is_file(path) && (own_format || !is_named)) return read_text_file(path.string(), kMaxChatTemplate);
    if (version == "v1") return "mistral-v1";
    if (is_named) return fmt::format("mistral-{}-tekken", version);
    out_.warnings.push_back(fmt::format(
        "no chat template is written: chat_template.jinja is missing, and there is none for tekken.json version {}",
        version));
    return "";
  }

  void write(const Vocabulary& vocabulary) {
    set("model", metadata_string(vocabulary.model));
    if (!vocabulary.pre.empty()) set("pre", metadata_string(vocabulary.pre));
    write_tokens(vocabulary.tokens,
                 vocabulary.has_scores && writes_scores_ ? std::optional(MetadataType::kFloat32) : std::nullopt);
    if (vocabulary.own_merges)
      write_merges(*vocabulary.own_merges);
    else if (vocabulary.merges)
      write_merges(*vocabulary.merges);
    if (vocabulary.adds_prefix) set_flag("add_space_prefix", *vocabulary.adds_prefix);
    if (!vocabulary.removes_spaces) return;
    if (out_.reader == TokenizerReader::kUnigramFairseq) set_token_types();
    set_flag("remove_extra_whitespaces", *vocabulary.removes_spaces);
    if (vocabulary.charsmap.empty()) return;
    ArrayMaker bytes(MetadataType::kUint8, vocabulary.charsmap.size());
    for (const char byte : vocabulary.charsmap) bytes.put(static_cast<std::uint8_t>(byte));
    set("precompiled_charsmap", bytes.done());
  }

  // `scores`: type of the scores; nullopt: they are not written.
  void write_tokens(const std::vector<Token>& tokens, std::optional<MetadataType> scores) {
    out_.tokens = out_.entries = tokens.size();
    if (tokens.empty()) return;
    ArrayMaker texts(MetadataType::kString, tokens.size());
    for (const Token& token : tokens) texts.put(token.text);
    set("tokens", texts.done());
    if (scores) {
      ArrayMaker all(*scores, tokens.size());
      for (const Token& token : tokens)
        all.put(*scores == MetadataType::kInt32 ? static_cast<std::uint32_t>(static_cast<std::int32_t>(token.score))
                                                : std::bit_cast<std::uint32_t>(token.score));
      set("scores", all.done());
    }
    ArrayMaker types(MetadataType::kInt32, tokens.size());
    for (const Token& token : tokens) types.put(static_cast<std::uint32_t>(token.type));
    set("token_type", types.done());
  }

  // A space in a token of a pair is written as its byte-level character.
  void write_merges(const MergeList& merges) {
    if (merges.size() == 0) return;
    ArrayMaker all(MetadataType::kString, merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
      std::string left(merges.left(i)), right(merges.right(i));
      replace_all(left, " ", "\u0120");
      replace_all(right, " ", "\u0120");
      all.put(left + " " + right);
    }
    set("merges", all.done());
  }

  // Rules refer to added tokens by their text; the reader has collected the ids.
  Status apply(const std::vector<SpecialTokenRule>& rules, SpecialTokens& special) {
    for (const SpecialTokenRule& rule : rules) {
      std::optional<std::uint64_t> id = rule.id;
      if (!rule.text.empty()) {
        const auto found = added_.find(rule.text);
        if (found != added_.end()) id = found->second;
      }
      if (id && rule.replaces) {
        special.replace(rule.role, *id);
      } else if (id) {
        special.set(rule.role, *id, out_.warnings);
      } else if (rule.must_exist) {
        return input_error(files_.folder,
                           fmt::format("there is no added token {}, which is the {} token of this architecture",
                                       quoted_name(rule.text), rule.role));
      }
    }
    return ok();
  }

  const TokenizerFiles& files_;
  const TokenizerOptions& options_;
  TokenizerMetadata out_;
  bool writes_scores_ = true;
  std::map<std::string, std::uint64_t, std::less<>> added_;  // ids of added tokens by text
};

}  // namespace

std::string_view tokenizer_reader_name(TokenizerReader reader) {
  return std::find_if(std::begin(kReaders), std::end(kReaders),
                      [&](const ReaderName& row) { return row.reader == reader; })
      ->name;
}

std::optional<TokenizerReader> tokenizer_reader_named(std::string_view name) {
  for (const ReaderName& row : kReaders) {
    if (row.name == name) return row.reader;
  }
  return std::nullopt;
}

Result<TokenizerMetadata> make_tokenizer(const TokenizerFiles& files, const TokenizerOptions& options) {
  return TokenizerMaker(files, options).make();
}

Result<TokenizerMetadata> read_tokenizer(const fs::path& folder, const TokenizerOptions& options) {
  BOOST_OUTCOME_TRY(const TokenizerFiles files, TokenizerFiles::read(folder));
  return make_tokenizer(files, options);
}

}  // namespace ggufmill::huggingface
