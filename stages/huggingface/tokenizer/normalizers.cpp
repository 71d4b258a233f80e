#include <algorithm>
#include <array>
#include <utility>

#include "stages/huggingface/tokenizer/step_maker.h"
#include "stages/huggingface/tokenizer/text_steps.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

std::string only(std::string_view text, const auto& keep) {
  std::string out;
  for (const Character& character : characters(text)) {
    if (keep(character.code)) out += text.substr(character.begin, character.bytes);
  }
  return out;
}

Normalizer pure(std::function<std::string(std::string_view)> function) {
  return [function = std::move(function)](std::string& text) -> Status {
    text = function(text);
    return ok();
  };
}

std::string stripped(std::string_view text, bool left, bool right) {
  const std::vector<Character> all = characters(text);
  std::size_t begin = 0, end = all.size();
  while (left && begin < end && is_space(all[begin].code)) ++begin;
  while (right && end > begin && is_space(all[end - 1].code)) --end;
  const std::size_t first = begin < all.size() ? all[begin].begin : text.size();
  const std::size_t last = end > begin ? all[end - 1].begin + all[end - 1].bytes : first;
  return std::string(text.substr(first, last - first));
}

bool is_chinese(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> kRanges{{{0x4E00, 0x9FFF},
                                                                  {0x3400, 0x4DBF},
                                                                  {0x20000, 0x2A6DF},
                                                                  {0x2A700, 0x2B73F},
                                                                  {0x2B740, 0x2B81F},
                                                                  {0x2B920, 0x2CEAF},
                                                                  {0xF900, 0xFAFF},
                                                                  {0x2F800, 0x2FA1F}}};
  return std::any_of(kRanges.begin(), kRanges.end(), [&](auto range) { return range.first <= c && c <= range.second; });
}

Normalizer bert_normalizer(const json::value& step) {
  const bool lower = json_flag(step, "lowercase", true);
  const bool clean = json_flag(step, "clean_text", true);
  const bool chinese = json_flag(step, "handle_chinese_chars", true);
  const bool strip = json_flag(step, "strip_accents", lower);
  return pure([=](std::string_view in) {
    std::string text;
    for (const Character& character : characters(in)) {
      const char32_t c = character.code;
      const bool blank = c == '\t' || c == '\n' || c == '\r';
      if (clean && (c == 0 || c == 0xFFFD || (!blank && is_other(c)))) continue;
      const char32_t kept = clean && (blank || is_space(c)) ? U' ' : c;
      if (chinese && is_chinese(kept)) {
        text += ' ';
        append_utf8(text, kept);
        text += ' ';
      } else {
        append_utf8(text, kept);
      }
    }
    if (strip) text = only(normal_form(text, NormalForm::kD), [](char32_t c) { return !is_nonspacing(c); });
    return lower ? lower_case(text) : text;
  });
}

std::string nmt(std::string_view in) {
  std::string out;
  for (const Character& character : characters(in)) {
    const char32_t c = character.code;
    if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) continue;
    const bool blank = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                       c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    append_utf8(out, blank ? U' ' : c);
  }
  return out;
}

class NormalizerMaker : public Maker<Normalizer, std::string> {
 public:
  explicit NormalizerMaker(const std::string& path) : Maker(path, "normalizer", "normalizers", size) {}

 private:
  static std::size_t size(const std::string& text) { return text.size(); }
  Result<Normalizer> of_type(const std::string& type, const json::value& step) override {
    constexpr std::pair<std::string_view, NormalForm> kForms[] = {
        {"NFC", NormalForm::kC}, {"NFD", NormalForm::kD}, {"NFKC", NormalForm::kKC}, {"NFKD", NormalForm::kKD}};
    for (const auto& [name, form] : kForms) {
      if (type == name) return pure([form = form](std::string_view text) { return normal_form(text, form); });
    }
    if (type == "Lowercase") return pure(lower_case);
    if (type == "Nmt") return pure(nmt);
    if (type == "BertNormalizer") return bert_normalizer(step);
    if (type == "ByteLevel") return pure(byte_level);
    if (type == "StripAccents") {
      return pure([](std::string_view text) { return only(text, [](char32_t c) { return !is_combining(c); }); });
    }
    if (type == "Strip") {
      return pure([left = json_flag(step, "strip_left", true), right = json_flag(step, "strip_right", true)](
                      std::string_view text) { return stripped(text, left, right); });
    }
    if (type == "Prepend") {
      return pure([prefix = step_text(step, "prepend", "")](std::string_view text) {
        return text.empty() ? std::string() : prefix + std::string(text);
      });
    }
    if (type == "Replace") {
      BOOST_OUTCOME_TRY(Regex regex, step_pattern(path_, step, budget_));
      return Normalizer(
          [regex = std::move(regex), content = step_text(step, "content", "")](std::string& text) -> Status {
            BOOST_OUTCOME_TRY(text, replaced(regex, content, text));
            return ok();
          });
    }
    return Normalizer();
  }
};

}  // namespace

Result<Normalizer> make_normalizer(const std::string& path, const json::value* step) {
  if (!step || step->is_null()) return Normalizer([](std::string&) { return ok(); });
  return NormalizerMaker(path).make(*step);
}

}  // namespace ggufmill::huggingface
