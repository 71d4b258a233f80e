#include "stages/huggingface/tokenizer/unicode.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

namespace ggufmill::huggingface {

std::vector<Character> characters(std::string_view utf8) {
  std::vector<Character> out;
  for (std::int32_t at = 0, size = static_cast<std::int32_t>(utf8.size()); at < size;) {
    const std::int32_t begin = at;
    UChar32 code = 0;
    U8_NEXT_OR_FFFD(utf8.data(), at, size, code);
    out.push_back({static_cast<char32_t>(code), static_cast<std::size_t>(begin), static_cast<std::size_t>(at - begin)});
  }
  return out;
}

void append_utf8(std::string& out, char32_t code) {
  char bytes[4];
  std::int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, code);
  out.append(bytes, static_cast<std::size_t>(size));
}

std::string normal_form(std::string_view utf8, NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = form == NormalForm::kC    ? icu::Normalizer2::getNFCInstance(status)
                                       : form == NormalForm::kD  ? icu::Normalizer2::getNFDInstance(status)
                                       : form == NormalForm::kKC ? icu::Normalizer2::getNFKCInstance(status)
                                                                 : icu::Normalizer2::getNFKDInstance(status);
  const icu::UnicodeString in =
      icu::UnicodeString::fromUTF8(icu::StringPiece(utf8.data(), static_cast<std::int32_t>(utf8.size())));
  std::string out;
  normalizer->normalize(in, status).toUTF8String(out);
  return out;
}

std::string lower_case(std::string_view utf8) {
  std::string out;
  for (const Character& character : characters(utf8)) {
    icu::UnicodeString one(static_cast<UChar32>(character.code));
    one.toLower(icu::Locale::getRoot()).toUTF8String(out);
  }
  return out;
}

bool is_lower_case(std::string_view utf8) {
  bool found = false;
  for (const Character& character : characters(utf8)) {
    const auto code = static_cast<UChar32>(character.code);
    if (u_hasBinaryProperty(code, UCHAR_UPPERCASE) || u_istitle(code)) return false;
    found = found || u_hasBinaryProperty(code, UCHAR_LOWERCASE);
  }
  return found;
}

std::string title_case(std::string_view utf8) {
  std::string out;
  bool inside = false;
  for (const Character& character : characters(utf8)) {
    const auto code = static_cast<UChar32>(character.code);
    append_utf8(out, static_cast<char32_t>(inside ? u_tolower(code) : u_totitle(code)));
    inside = u_hasBinaryProperty(code, UCHAR_CASED);
  }
  return out;
}

namespace {
std::uint32_t category(char32_t code) { return U_GET_GC_MASK(static_cast<UChar32>(code)); }
}  // namespace

bool is_space(char32_t code) { return u_isUWhiteSpace(static_cast<UChar32>(code)); }
bool is_punctuation(char32_t code) {
  if (code < 128) return code > ' ' && code < 127 && !u_isalnum(static_cast<UChar32>(code));
  return category(code) & U_GC_P_MASK;
}
bool is_letter(char32_t code) { return category(code) & U_GC_L_MASK; }
bool is_numeric(char32_t code) { return category(code) & U_GC_N_MASK; }
bool is_other(char32_t code) { return category(code) & U_GC_C_MASK; }
bool is_nonspacing(char32_t code) { return category(code) & U_GC_MN_MASK; }
bool is_combining(char32_t code) { return category(code) & U_GC_M_MASK; }
int script_of(char32_t code) {
  UErrorCode status = U_ZERO_ERROR;
  return uscript_getScript(static_cast<UChar32>(code), &status);
}

}  // namespace ggufmill::huggingface
