#include <algorithm>
#include <utility>

#include "stages/huggingface/tokenizer/step_maker.h"
#include "stages/huggingface/tokenizer/text_steps.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kByteLevelPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kWordPattern =
    "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]+|[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}"
    "\\s]+";

struct Match {
  TextRange range;
  bool is_match;
};
using Matcher = std::function<Result<std::vector<Match>>(std::string_view)>;

// Splits the whole text into matches and the text between them.
Matcher by_regex(Regex regex, bool invert) {
  return [regex = std::move(regex), invert](std::string_view text) -> Result<std::vector<Match>> {
    BOOST_OUTCOME_TRY(const auto found, regex.find_all(text));
    std::vector<Match> out;
    std::size_t at = 0;
    for (const TextRange& range : found) {
      if (at != range.first) out.push_back({{at, range.first}, invert});
      out.push_back({range, !invert});
      at = range.second;
    }
    if (at != text.size()) out.push_back({{at, text.size()}, invert});
    return out;
  };
}

Matcher by_character(std::function<bool(char32_t)> is_match) {
  return [is_match = std::move(is_match)](std::string_view text) -> Result<std::vector<Match>> {
    std::vector<Match> out;
    std::size_t at = 0;
    for (const Character& character : characters(text)) {
      if (!is_match(character.code)) continue;
      const std::size_t end = character.begin + character.bytes;
      if (at != character.begin) out.push_back({{at, character.begin}, false});
      out.push_back({{character.begin, end}, true});
      at = end;
    }
    if (at != text.size()) out.push_back({{at, text.size()}, false});
    return out;
  };
}

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

std::vector<TextRange> cut(const std::vector<Match>& matches, Behavior behavior) {
  std::vector<TextRange> out;
  bool previous = false;
  if (behavior == Behavior::kMergedWithNext) {
    for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
      if (match->is_match && !previous && !out.empty())
        out.back().first = match->range.first;
      else
        out.push_back(match->range);
      previous = match->is_match;
    }
    std::reverse(out.begin(), out.end());
    return out;
  }
  for (const Match& match : matches) {
    const bool joins = behavior == Behavior::kContiguous           ? match.is_match == previous
                       : behavior == Behavior::kMergedWithPrevious ? match.is_match && !previous
                                                                   : false;
    if (behavior == Behavior::kRemoved && match.is_match) continue;
    if (joins && !out.empty())
      out.back().second = match.range.second;
    else
      out.push_back(match.range);
    previous = match.is_match;
  }
  return out;
}

Status split(std::vector<Piece>& pieces, const Matcher& matcher, Behavior behavior) {
  std::vector<Piece> out;
  for (Piece& piece : pieces) {
    if (piece.id) {
      out.push_back(std::move(piece));
      continue;
    }
    BOOST_OUTCOME_TRY(const auto matches, matcher(piece.text));
    for (const auto& [begin, end] : cut(matches, behavior)) {
      if (begin != end) out.push_back({piece.text.substr(begin, end - begin), piece.first && begin == 0, {}});
    }
  }
  pieces = std::move(out);
  return ok();
}

Result<Behavior> behavior_of(const std::string& path, const json::value& step, Behavior otherwise) {
  const std::string name = step_text(step, "behavior", "");
  if (name.empty()) return otherwise;
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  return input_error(path, fmt::format("unknown pre-tokenizer split behavior {}", quoted_name(name)));
}

void each(std::vector<Piece>& pieces, const auto& change) {
  for (Piece& piece : pieces) {
    if (!piece.id) change(piece);
  }
}

using Pieces = std::vector<Piece>;

class PreTokenizerMaker : public Maker<PreTokenizer, Pieces> {
 public:
  explicit PreTokenizerMaker(const std::string& path) : Maker(path, "pre-tokenizer", "pretokenizers", total) {}

 private:
  static std::size_t total(const Pieces& pieces) {
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.text.size();
    return bytes;
  }

  static PreTokenizer splitting(Matcher matcher, Behavior behavior) {
    return [matcher = std::move(matcher), behavior](Pieces& pieces) { return split(pieces, matcher, behavior); };
  }

  Result<PreTokenizer> of_type(const std::string& type, const json::value& step) override {
    if (type == "ByteLevel") return byte_level_step(step);
    if (type == "Metaspace") return metaspace(step);
    if (type == "Split") {
      BOOST_OUTCOME_TRY(Regex regex, step_pattern(path_, step, budget_));
      BOOST_OUTCOME_TRY(const Behavior behavior, behavior_of(path_, step, Behavior::kIsolated));
      return splitting(by_regex(std::move(regex), json_flag(step, "invert")), behavior);
    }
    if (type == "Punctuation") {
      BOOST_OUTCOME_TRY(const Behavior behavior, behavior_of(path_, step, Behavior::kIsolated));
      return splitting(by_character(is_punctuation), behavior);
    }
    if (type == "Digits") {
      const bool one_by_one = json_flag(step, "individual_digits");
      return splitting(by_character(is_numeric), one_by_one ? Behavior::kIsolated : Behavior::kContiguous);
    }
    if (type == "Whitespace") {
      BOOST_OUTCOME_TRY(Regex regex, Regex::compile(path_, kWordPattern, budget_));
      return splitting(by_regex(std::move(regex), true), Behavior::kRemoved);
    }
    if (type == "WhitespaceSplit") return splitting(by_character(is_space), Behavior::kRemoved);
    if (type == "CharDelimiterSplit") {
      const std::vector<Character> delimiter = characters(step_text(step, "delimiter", " "));
      const char32_t code = delimiter.empty() ? U' ' : delimiter.front().code;
      return splitting(by_character([code](char32_t c) { return c == code; }), Behavior::kRemoved);
    }
    if (type == "BertPreTokenizer") {
      return PreTokenizer([](Pieces& pieces) -> Status {
        BOOST_OUTCOME_TRY(split(pieces, by_character(is_space), Behavior::kRemoved));
        return split(pieces, by_character(is_punctuation), Behavior::kIsolated);
      });
    }
    if (type == "UnicodeScripts") return PreTokenizer(by_script);
    return PreTokenizer();
  }

  Result<PreTokenizer> byte_level_step(const json::value& step) const {
    BOOST_OUTCOME_TRY(Regex regex, Regex::compile(path_, kByteLevelPattern, budget_));
    return PreTokenizer([matcher = by_regex(std::move(regex), false), prefix = json_flag(step, "add_prefix_space"),
                         cuts = json_flag(step, "use_regex", true)](Pieces& pieces) -> Status {
      each(pieces, [&](Piece& piece) {
        if (prefix && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
      });
      if (cuts) {
        BOOST_OUTCOME_TRY(split(pieces, matcher, Behavior::kIsolated));
      }
      each(pieces, [](Piece& piece) { piece.text = byte_level(piece.text); });
      return ok();
    });
  }

  static PreTokenizer metaspace(const json::value& step) {
    const std::string scheme =
        json_flag(step, "add_prefix_space", true) ? step_text(step, "prepend_scheme", "always") : "never";
    const std::string replacement = step_text(step, "replacement", "\u2581");
    const std::vector<Character> codes = characters(replacement);
    const char32_t code = codes.empty() ? U' ' : codes.front().code;
    return [=, cuts = json_flag(step, "split", true)](Pieces& pieces) -> Status {
      each(pieces, [&](Piece& piece) {
        replace_all(piece.text, " ", replacement);
        const bool wanted = scheme == "always" || (scheme == "first" && piece.first);
        if (wanted && !piece.text.starts_with(replacement)) piece.text.insert(0, replacement);
      });
      if (!cuts) return ok();
      return split(pieces, by_character([code](char32_t c) { return c == code; }), Behavior::kMergedWithNext);
    };
  }

  // Splits where the script changes. Kana counts as Han; a space belongs to any script.
  static Status by_script(Pieces& pieces) {
    static const int han = script_of(U'\u4E00'), hiragana = script_of(U'\u3042'), katakana = script_of(U'\u30AB');
    constexpr int kAny = -2;
    const Matcher matcher = [](std::string_view text) -> Result<std::vector<Match>> {
      std::vector<Match> out;
      int last = -1;
      for (const Character& character : characters(text)) {
        int script = character.code == 0x30FC ? han : character.code == ' ' ? kAny : script_of(character.code);
        if (script == hiragana || script == katakana) script = han;
        if (out.empty() && script == kAny) continue;  // the library drops leading spaces
        if (script != kAny && script != last) out.push_back({{character.begin, character.begin}, false});
        out.back().range.second = character.begin + character.bytes;
        if (script != kAny) last = script;
      }
      return out;
    };
    return split(pieces, matcher, Behavior::kIsolated);
  }
};

}  // namespace

Result<PreTokenizer> make_pre_tokenizer(const std::string& path, const json::value* step) {
  if (!step || step->is_null()) return PreTokenizer([](Pieces&) { return ok(); });
  return PreTokenizerMaker(path).make(*step);
}

}  // namespace ggufmill::huggingface
