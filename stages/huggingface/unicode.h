#pragma once
// Characters, by ICU.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

struct Character {
  char32_t code;
  std::size_t begin;  // bytes in the text
  std::size_t bytes;
};

// Of well-formed UTF-8.
std::vector<Character> characters(std::string_view utf8);
void append_utf8(std::string& out, char32_t code);

enum class NormalForm { kC, kD, kKC, kKD };
std::string normal_form(std::string_view utf8, NormalForm form);
// Each character for itself, so that a sigma at the end of a word is none.
std::string lower_case(std::string_view utf8);
// Whether it has letters of the lower case, and none of another case.
bool is_lower_case(std::string_view utf8);
// The first letter of each run of letters that have a case in title case, the others in lower case.
std::string title_case(std::string_view utf8);

bool is_space(char32_t code);        // White_Space
bool is_punctuation(char32_t code);  // ASCII punctuation and symbols, and category P
bool is_letter(char32_t code);       // category L
bool is_numeric(char32_t code);      // category N
bool is_other(char32_t code);        // category C
bool is_nonspacing(char32_t code);   // category Mn
bool is_combining(char32_t code);    // category M
int script_of(char32_t code);        // ICU's number

}  // namespace ggufmill
