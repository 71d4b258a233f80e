#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/core/upstream.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/tokenizer/encoder.h"
#include "stages/huggingface/tokenizer/token_model.h"
#include "stages/huggingface/tokenizer/vocabulary.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kWordBegin = "\u2581";
constexpr const char* kNamePre =
    "set it in the pipeline file: `pre: NAME` next to the folder, with a name that llama.cpp knows, such as llama-bpe, "
    "qwen2, or gpt-2";

std::string how_to_name_hash() {
  return fmt::format("{}; or in a map that serves the model's class and that {} adds: `pre_tokenizers: {{HASH: NAME}}`",
                     kNamePre, option_reference("architectures"));
}

class JsonVocabulary {
 public:
  JsonVocabulary(const TokenizerFiles& files, const TokenizerOptions& options)
      : files_(files), file_(*files.tokenizer), options_(options) {}

  Result<Vocabulary> read(TokenizerReader reader) {
    json::value config = files_.tokenizer_config;
    if (!config.is_object()) config.emplace_object();
    BOOST_OUTCOME_TRY(const LoadedTokenizer tokenizer, LoadedTokenizer::load(file_, config));
    for (const auto& [id, token] : tokenizer.added()) out_.added[token.content] = id;
    out_.warnings = tokenizer.warnings();
    if (reader == TokenizerReader::kByteFallbackBpe) {
      BOOST_OUTCOME_TRY(read_byte_fallback(tokenizer));
    } else if (reader == TokenizerReader::kUnigramFairseq) {
      BOOST_OUTCOME_TRY(read_unigram(tokenizer));
    } else {
      BOOST_OUTCOME_TRY(read_all(reader, tokenizer));
    }
    return std::move(out_);
  }

 private:
  // Returns the name that llama.cpp has for the text processing of the tokenizer. The names of its own table are right
  // for any vocabulary; others only make sense for the kind of vocabulary that the reader handles.
  Result<std::string> pre_of(TokenizerReader reader, const LoadedTokenizer& tokenizer) {
    const bool is_given = !options_.pre.empty();
    if (is_given && file_.model == "BPE") {  // else the hash needs a model that works
      BOOST_OUTCOME_TRY(check_merges(file_));
    }
    Result<std::string> hash = is_given ? Result<std::string>(std::string()) : pre_tokenizer_hash(tokenizer);
    if (hash && !is_given)
      if (const auto name = pre_tokenizer_named(hash.value()); name && !options_.pre_tokenizers.contains(hash.value()))
        return std::string(*name);
    const Status kind = check_kind(reader);
    if (!hash && (kind || vocabulary_kind(file_) == "BPE")) {
      Error error = hash.error();
      if (!error.help.empty()) return error;
      error.what = "cannot identify the pre-tokenizer: " + error.what;
      error.help = kind ? kNamePre : kind.error().help;
      return error;
    }
    if (!kind) return kind.error();
    if (is_given) return known(options_.pre);
    if (const auto added = options_.pre_tokenizers.find(hash.value()); added != options_.pre_tokenizers.end())
      return known(added->second);
    return input_error(
        file_.path,
        fmt::format("unknown pre-tokenizer; llama.cpp does not know the hash of its check text, {}", hash.value()),
        how_to_name_hash());
  }

  // Warns of a name that llama.cpp does not know.
  std::string known(const std::string& name) {
    const std::vector<std::string> names = pre_tokenizer_names();
    if (std::ranges::find(names, name) != names.end()) return name;
    const std::string meant = did_you_mean(name, names);
    out_.warnings.push_back(fmt::format(
        "llama.cpp {} knows no pre-tokenizer {}{}; a version that does not know it does not load the model",
        upstream_version(), quoted_name(name), meant.empty() ? "" : fmt::format(", but {}", quoted_name(meant))));
    return name;
  }

  // Fails unless the vocabulary is of the kind that llama.cpp expects of such a model. With another one, it would
  // divide every text in a wrong way.
  Status check_kind(TokenizerReader reader) const {
    const std::string_view needed = reader == TokenizerReader::kWordPiece ? "WordPiece" : kByteLevelBpe;
    const std::string_view kind = vocabulary_kind(file_);
    if (kind == needed) return ok();
    return input_error(
        file_.path,
        fmt::format("{} {} is not supported; this architecture needs {}",
                    file_.model == "BPE" ? "a vocabulary of the kind" : "model type", quoted_name(kind), needed),
        kind == kSentencePieceBpe && can_read_sentencepiece(options_)
            ? kCopySentencePiece
            : fmt::format("use the tokenizer of the base model; llama.cpp cannot use {} with this architecture", kind));
  }

  // Returns the tokens of all ids up to the size of the vocabulary. Added tokens appear in decoded form, or verbatim
  // if `flags_alone` is set.
  Result<std::vector<Token>> all_tokens(const LoadedTokenizer& tokenizer, bool flags_alone) const {
    const std::uint64_t size = options_.vocabulary_size.value_or(tokenizer.size());
    if (tokenizer.id_end() > size) {
      const std::uint32_t last = tokenizer.id_end() - 1;
      const std::string token = quoted_name(tokenizer.text_of(last).value_or(""));
      if (options_.vocabulary_size) {
        return input_error(
            file_.path,
            fmt::format("token {} has id {}, but config.json has a vocabulary of {} tokens", token, last, size),
            "check that config.json and the tokenizer are of the same model");
      }
      return input_error(file_.path, fmt::format("token {} has id {}, but there are only {} tokens", token, last, size),
                         "set the number of tokens in config.json as `vocab_size`");
    }
    std::vector<Token> tokens;
    tokens.reserve(size);
    for (std::uint32_t id = 0; id < size; ++id) {
      const auto text = tokenizer.text_of(id);
      if (!text) {
        tokens.push_back(padding_token(id));
        continue;
      }
      const auto added = tokenizer.added().find(id);
      if (added == tokenizer.added().end()) {
        tokens.push_back({std::string(*text)});
        continue;
      }
      Token token{std::string(*text)};
      if (flags_alone) {
        token.type = added->second.special ? PieceType::kControl : PieceType::kUserDefined;
        tokens.push_back(std::move(token));
        continue;
      }
      if (!added->second.normalized) {
        BOOST_OUTCOME_TRY(token.text, tokenizer.decoded(token.text));
      }
      const bool control = added->second.special || looks_special(token.text);
      token.type = control ? PieceType::kControl : PieceType::kUserDefined;
      if (!control) token.text = with_spaces(token.text);
      tokens.push_back(std::move(token));
    }
    return tokens;
  }

  // Reads merges.txt, for a tokenizer.json without merges.
  Result<MergeList> merges_of_text() const {
    MergeList merges;
    const fs::path path = files_.folder / "merges.txt";
    if (!is_file(path)) return merges;
    BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxTokenizerBytes));
    bool first = true;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (std::exchange(first, false) && line.starts_with('#')) continue;
      const std::size_t space = line.find(' ');
      if (space == line.npos || line.find(' ', space + 1) != line.npos || space == 0 || space + 1 == line.size())
        continue;
      if (merges.size() == kMaxMerges) return input_error(path, fmt::format("more than {} merges", kMaxMerges));
      merges.add(line.substr(0, space), line.substr(space + 1));
    }
    return merges;
  }

  // Handles the readers whose pre-tokenization llama.cpp implements itself: BPE, WordPiece and whitespace.
  Status read_all(TokenizerReader reader, const LoadedTokenizer& tokenizer) {
    const bool words = reader == TokenizerReader::kWordPiece, whitespace = reader == TokenizerReader::kWhitespace;
    out_.model = words ? kWordPieceVocabulary : whitespace ? kWhitespaceVocabulary : kBytePairVocabulary;
    if (!words && file_.model == "BPE" && !file_.has_merges) {
      BOOST_OUTCOME_TRY(out_.own_merges, merges_of_text());
      if (out_.own_merges->size() == 0)
        return input_error(file_.path, "the vocabulary has no merges, and there is no merges.txt", kDamagedTokenizer);
    }
    BOOST_OUTCOME_TRY(out_.pre, whitespace ? Result<std::string>("whitespace") : pre_of(reader, tokenizer));
    BOOST_OUTCOME_TRY(out_.tokens, all_tokens(tokenizer, reader == TokenizerReader::kBpeFlagged));
    if (words) {
      mark_words();
      return ok();
    }
    out_.special_beyond = true;
    out_.merges = &file_.merges;
    if (file_.merges.size() > 0 || out_.own_merges) return ok();
    BOOST_OUTCOME_TRY(out_.own_merges, merges_of_text());
    return ok();
  }

  // "##" marks the continuation of a word; llama.cpp marks the beginning of one instead.
  void mark_words() {
    for (Token& token : out_.tokens) {
      if (token.type == PieceType::kControl) continue;
      token.text = token.text.starts_with("##") ? token.text.substr(2) : std::string(kWordBegin) + token.text;
    }
  }

  // Reads the model's tokens followed by the added ones; no padding.
  Status read_byte_fallback(const LoadedTokenizer& tokenizer) {
    const auto is_special = [&](std::string_view text) { return tokenizer.special().contains(text); };
    const auto base = static_cast<std::uint32_t>(file_.vocabulary.size());
    for (std::uint32_t id = 0; id < base; ++id) {
      const auto text = tokenizer.text_of(id);
      if (!text) return input_error(file_.path, fmt::format("no token has id {}", id));
      out_.tokens.push_back({std::string(*text), kAddedScore,
                             byte_token(*text)   ? PieceType::kByte
                             : is_special(*text) ? PieceType::kControl
                                                 : PieceType::kNormal});
    }
    for (auto added = tokenizer.added().lower_bound(base); added != tokenizer.added().end(); ++added) {
      const std::string& text = added->second.content;
      out_.tokens.push_back({text, kAddedScore, is_special(text) ? PieceType::kControl : PieceType::kUserDefined});
    }
    out_.model = kSentencePieceVocabulary;
    out_.pre = "default";
    out_.has_scores = true;
    return ok();
  }

  Status read_unigram(const LoadedTokenizer& tokenizer) {
    if (file_.model != "Unigram")
      return input_error(file_.path, fmt::format("model type {} is not supported; this architecture needs Unigram",
                                                 quoted_name(file_.model)));
    const json::value* normalizer = json_member(file_.document, "normalizer");
    const auto encoded = normalizer ? json_string(*normalizer, "precompiled_charsmap") : std::nullopt;
    if (!encoded) return input_error(file_.path, "the normalizer has no precompiled_charsmap");
    auto charsmap = from_base64(*encoded);
    if (!charsmap) return input_error(file_.path, "the precompiled_charsmap of the normalizer is not base64");
    out_.charsmap = std::move(*charsmap);

    const auto unknown = json_string(files_.tokenizer_config, "unk_token");
    const std::uint32_t* added = unknown ? tokenizer.added_id(*unknown) : nullptr;
    const json::value* listed = json_member(file_.document.at("model"), "unk_id");
    const std::int64_t unknown_id = added                          ? *added
                                    : listed && listed->is_int64() ? listed->get_int64()
                                    : listed                       ? -1
                                                                   : 3;
    const std::size_t pieces = file_.vocabulary.size();
    for (std::uint64_t id = 0; id < std::max<std::uint64_t>(options_.vocabulary_size.value_or(0), pieces); ++id) {
      const auto text = id < pieces ? tokenizer.text_of(static_cast<std::uint32_t>(id)) : std::nullopt;
      if (!text) {
        out_.tokens.push_back(padding_token(id));
        continue;
      }
      out_.tokens.push_back({std::string(*text), static_cast<float>(file_.scores[id]),
                             static_cast<std::int64_t>(id) == unknown_id                  ? PieceType::kUnknown
                             : tokenizer.special().contains(*text)                        ? PieceType::kControl
                             : tokenizer.added().contains(static_cast<std::uint32_t>(id)) ? PieceType::kUserDefined
                                                                                          : PieceType::kNormal});
    }
    out_.model = kUnigramVocabulary;
    out_.pre = "default";
    out_.has_scores = true;
    out_.adds_prefix = json_flag(files_.tokenizer_config, "add_prefix_space");
    out_.removes_spaces = json_flag(files_.tokenizer_config, "clean_up_tokenization_spaces");
    return ok();
  }

  const TokenizerFiles& files_;
  const TokenizerJson& file_;
  const TokenizerOptions& options_;
  Vocabulary out_;
};

}  // namespace

bool can_read_sentencepiece(const TokenizerOptions& options) {
  return std::ranges::any_of(options.readers, [](const TokenizerChoice& choice) {
    return choice.reader == TokenizerReader::kSentencePiece || choice.reader == TokenizerReader::kSentencePieceListed ||
           choice.reader == TokenizerReader::kSentencePieceAppended ||
           choice.reader == TokenizerReader::kSentencePieceRedefined;
  });
}

bool looks_special(std::string_view text) {
  return text == "<pad>" || text == "<mask>" || text == "<2mass>" || text == "[@BOS@]" ||
         (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\uFF5C") && text.ends_with("\uFF5C>")) ||
         (text.starts_with("<unused") && text.ends_with(">"));
}

std::string with_spaces(std::string_view text) {
  std::string out(text);
  replace_all(out, kWordBegin, " ");
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count);
  }
  return out;
}

Token padding_token(std::uint64_t id) { return {fmt::format("[PAD{}]", id), kPaddingScore, PieceType::kUnused}; }

Result<Vocabulary> read_json_vocabulary(TokenizerReader reader, const TokenizerFiles& files,
                                        const TokenizerOptions& options) {
  return JsonVocabulary(files, options).read(reader);
}

bool is_pre_tokenizer_hash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Result<std::string> pre_tokenizer_hash_of(const fs::path& folder) {
  BOOST_OUTCOME_TRY(const TokenizerFiles files, TokenizerFiles::read(folder));
  if (!files.tokenizer) return std::string();
  json::value config = files.tokenizer_config;
  if (!config.is_object()) config.emplace_object();
  BOOST_OUTCOME_TRY(const LoadedTokenizer tokenizer, LoadedTokenizer::load(*files.tokenizer, config));
  return pre_tokenizer_hash(tokenizer);
}

}  // namespace ggufmill::huggingface
