#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/tokenizer/vocabulary.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using Kind = SentencePieceModel::Kind;

Token token_of(const SentencePieceModel::Piece& piece) {
  // GGUF files store user-defined pieces as normal ones.
  const PieceType type = piece.type == PieceType::kUserDefined ? PieceType::kNormal : piece.type;
  return {std::string(piece.text), piece.score, type};
}

class SentencePieceVocabulary {
 public:
  SentencePieceVocabulary(const TokenizerFiles& files, const TokenizerOptions& options)
      : files_(files), options_(options) {}

  Result<Vocabulary> read(const TokenizerChoice& choice) {
    const TokenizerReader reader = choice.reader;
    out_.model = kSentencePieceVocabulary;
    out_.pre = "default";
    out_.has_scores = true;
    const bool fairseq = reader == TokenizerReader::kUnigramFairseq;
    const bool older = reader == TokenizerReader::kUnigram && !is_file(file("tokenizer.model"));
    const fs::path path = file(fairseq ? "sentencepiece.bpe.model" : older ? "spiece.model" : "tokenizer.model");
    BOOST_OUTCOME_TRY(const SentencePieceModel model, SentencePieceModel::read(path));
    if (reader == TokenizerReader::kSentencePieceListed) {
      BOOST_OUTCOME_TRY(read_listed(path, model));
    } else if (reader == TokenizerReader::kSentencePieceAppended) {
      BOOST_OUTCOME_TRY(read_appended(path, model));
    } else if (reader == TokenizerReader::kSentencePieceRedefined) {
      BOOST_OUTCOME_TRY(read_redefined(path, model));
    } else if (fairseq || (reader == TokenizerReader::kUnigram && (older || model.kind() != Kind::kBpe))) {
      BOOST_OUTCOME_TRY(read_unigram(path, model, fairseq));
      BOOST_OUTCOME_TRY(put_extra(path, choice.extra));
    } else {
      BOOST_OUTCOME_TRY(read_plain(model));
    }
    return std::move(out_);
  }

 private:
  fs::path file(std::string_view name) const { return files_.folder / name; }

  // Takes pieces up to `size`, and pads to it.
  void take_pieces(const SentencePieceModel& model, std::uint64_t size) {
    for (std::uint64_t id = 0; id < size; ++id)
      out_.tokens.push_back(id < model.pieces().size() ? token_of(model.pieces()[id]) : padding_token(id));
    if (model.pieces().size() > size) {
      out_.warnings.push_back(
          fmt::format("tokenizer.model has {} pieces; pieces from {} on are skipped, as config.json requires",
                      model.pieces().size(), size));
    }
  }

  // Returns the size of the vocabulary; an error if it is too small for the pieces.
  Result<std::uint64_t> size_for(const fs::path& path, const SentencePieceModel& model) const {
    const std::uint64_t size = options_.vocabulary_size.value_or(model.pieces().size());
    if (size >= model.pieces().size()) return size;
    return input_error(
        path, fmt::format("{} pieces, but config.json has a vocabulary of {} tokens", model.pieces().size(), size));
  }

  // Calls take(text, id) for each token of added_tokens.json.
  Status each_of_added_tokens_json(const auto& take) {
    const fs::path path = file("added_tokens.json");
    if (!is_file(path)) return ok();
    BOOST_OUTCOME_TRY(const json::value document, read_checkpoint_json(path));
    const json::object* object = document.if_object();
    if (!object) return input_error(path, "not an object of tokens and ids");
    for (const auto& [text, id] : *object) {
      if (!id.is_int64() || id.get_int64() < 0)
        return input_error(path, fmt::format("the token {} has no id", quoted_name({text.data(), text.size()})));
      take(std::string_view(text.data(), text.size()), static_cast<std::uint64_t>(id.get_int64()));
    }
    return ok();
  }

  Status put_added_tokens_json() {
    return each_of_added_tokens_json([&](std::string_view text, std::uint64_t id) {
      if (in_range(id)) out_.tokens[id] = {std::string(text), kAddedScore, PieceType::kUserDefined};
    });
  }

  bool in_range(std::uint64_t id) {
    const std::size_t size = out_.tokens.size();
    if (id >= size)
      out_.warnings.push_back(fmt::format("skipping the added token with id {}: there are only {} tokens", id, size));
    return id < size;
  }

  // Calls take(id, text, special) for each token of added_tokens_decoder, in the order of the file.
  Status each_of_decoder(const auto& take) {
    const json::value* decoder = json_member(files_.tokenizer_config, "added_tokens_decoder");
    if (!decoder || !decoder->is_object()) return ok();
    for (const auto& [key, value] : decoder->get_object()) {
      std::uint64_t id = 0;
      const char* end = key.data() + key.size();
      const auto text = json_string(value, "content");
      if (std::from_chars(key.data(), end, id) != std::from_chars_result{end, {}} || !text) {
        return input_error(file("tokenizer_config.json"),
                           fmt::format("entry {} of added_tokens_decoder is not an id with content",
                                       quoted_name({key.data(), key.size()})));
      }
      out_.added[std::string(*text)] = id;
      BOOST_OUTCOME_TRY(take(id, *text, json_flag(value, "special")));
    }
    return ok();
  }

  Status read_plain(const SentencePieceModel& model) {
    const std::uint64_t wanted = options_.vocabulary_size.value_or(0);
    take_pieces(model, wanted != 0 ? wanted : model.pieces().size());
    BOOST_OUTCOME_TRY(put_added_tokens_json());
    return each_of_decoder([&](std::uint64_t id, std::string_view text, bool special) -> Status {
      if (!in_range(id)) return ok();
      const bool control = special || looks_special(text);
      out_.tokens[id] = {control ? std::string(text) : with_spaces(text), kAddedScore,
                         control ? PieceType::kControl : PieceType::kUserDefined};
      return ok();
    });
  }

  // Sets the added tokens of tokenizer_config.json and tokenizer.json, with the text and type given there.
  Status put_listed() {
    const auto put = [&](std::uint64_t id, std::string_view text, bool special) -> Status {
      if (id >= out_.tokens.size()) {
        return input_error(files_.folder, fmt::format("the added token {} has id {}, but there are only {} tokens",
                                                      quoted_name(text), id, out_.tokens.size()));
      }
      out_.tokens[id] = {std::string(text), kAddedScore, special ? PieceType::kControl : PieceType::kUserDefined};
      return ok();
    };
    BOOST_OUTCOME_TRY(each_of_decoder(put));
    const json::array* listed = files_.tokenizer ? json_array(files_.tokenizer->document, "added_tokens") : nullptr;
    if (!listed) return ok();
    for (const json::value& item : *listed) {
      const json::value* id = json_member(item, "id");
      const auto text = json_string(item, "content");
      if (!id || !id->is_int64() || id->get_int64() < 0 || !text)
        return input_error(files_.tokenizer->path, "an entry of added_tokens does not have content and an id");
      out_.added[std::string(*text)] = static_cast<std::uint64_t>(id->get_int64());
      BOOST_OUTCOME_TRY(put(static_cast<std::uint64_t>(id->get_int64()), *text, json_flag(item, "special")));
    }
    return ok();
  }

  Status read_listed(const fs::path& path, const SentencePieceModel& model) {
    BOOST_OUTCOME_TRY(const std::uint64_t size, size_for(path, model));
    take_pieces(model, size);
    BOOST_OUTCOME_TRY(put_added_tokens_json());
    return put_listed();
  }

  Status read_appended(const fs::path& path, const SentencePieceModel& model) {
    const std::uint64_t size = options_.vocabulary_size.value_or(model.pieces().size());
    if (size > model.pieces().size()) {
      return input_error(
          path, fmt::format("{} pieces, but config.json has a vocabulary of {} tokens", model.pieces().size(), size));
    }
    take_pieces(model, size);
    for (Token& token : out_.tokens) {
      if (token.text == std::string_view("\0", 1)) token.text = "\U0001F409";  // as a C string, it would be empty
      if (token.text.starts_with("[UNUSED")) token.type = PieceType::kUnused;
    }
    BOOST_OUTCOME_TRY(each_of_added_tokens_json([&](std::string_view text, std::uint64_t) {
      out_.tokens.push_back({std::string(text), kAddedScore, PieceType::kUserDefined});
    }));
    out_.adds_prefix = model.adds_prefix();
    return put_listed();
  }

  // Reads the pieces, then replaces those that added_tokens_decoder redefines. Special tokens get score 0, others the
  // padding score.
  Status read_redefined(const fs::path& path, const SentencePieceModel& model) {
    BOOST_OUTCOME_TRY(const std::uint64_t size, size_for(path, model));
    take_pieces(model, size);
    const auto unknown = json_string(files_.tokenizer_config, "unk_token");
    return each_of_decoder([&](std::uint64_t id, std::string_view text, bool special) -> Status {
      if (!in_range(id)) return ok();
      const PieceType type = !special                      ? PieceType::kUserDefined
                             : unknown && *unknown == text ? PieceType::kUnknown
                                                           : PieceType::kControl;
      out_.tokens[id] = {std::string(text), special ? 0 : kPaddingScore, type};
      return ok();
    });
  }

  Status read_unigram(const fs::path& path, const SentencePieceModel& model, bool fairseq) {
    if (model.kind() != Kind::kUnigram) {
      return input_error(
          path, fmt::format("SentencePiece model type {} is not supported; this architecture needs Unigram (1)",
                            static_cast<std::uint64_t>(model.kind())));
    }
    out_.model = kUnigramVocabulary;
    out_.adds_prefix = model.adds_prefix();
    out_.removes_spaces = model.removes_spaces();
    out_.charsmap = model.charsmap();
    if (fairseq) {
      take_pieces(model, std::max<std::uint64_t>(options_.vocabulary_size.value_or(0), model.pieces().size()));
      renumber();
      return ok();
    }
    BOOST_OUTCOME_TRY(const std::uint64_t size, size_for(path, model));
    take_pieces(model, size);
    return put_added_tokens_json();
  }

  // fairseq puts its own four tokens before the pieces and omits the first three pieces. The reference keeps the
  // number of tokens, so the last piece is lost.
  void renumber() {
    std::vector<Token> tokens{{"<s>", 0, PieceType::kControl},
                              {"<pad>", 0, PieceType::kControl},
                              {"</s>", 0, PieceType::kControl},
                              {"<unk>", 0, PieceType::kUnknown}};
    for (std::size_t id = 3; id + 1 < out_.tokens.size(); ++id) tokens.push_back(std::move(out_.tokens[id]));
    out_.tokens = std::move(tokens);
  }

  Status put_extra(const fs::path& path, const std::vector<FixedToken>& extra) {
    for (const FixedToken& token : extra) {
      if (token.id >= out_.tokens.size())
        return input_error(path,
                           fmt::format("the token {} has id {}, but there are only {} tokens", quoted_name(token.text),
                                       token.id, out_.tokens.size()),
                           "set the number of tokens in config.json as `vocab_size`");
      out_.tokens[token.id] = {token.text, 0, PieceType::kControl};
    }
    return ok();
  }

  const TokenizerFiles& files_;
  const TokenizerOptions& options_;
  Vocabulary out_;
};

}  // namespace

Result<Vocabulary> read_sentencepiece_vocabulary(const TokenizerChoice& choice, const TokenizerFiles& files,
                                                 const TokenizerOptions& options) {
  return SentencePieceVocabulary(files, options).read(choice);
}

}  // namespace ggufmill::huggingface
