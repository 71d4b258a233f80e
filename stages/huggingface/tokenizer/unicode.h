#pragma once
// Unicode functions, implemented with ICU.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill::huggingface {

struct Character {
  char32_t code;
  std::size_t begin;  // byte offset in the text
  std::size_t bytes;
};

// `utf8` must be well-formed.
std::vector<Character> characters(std::string_view utf8);
void append_utf8(std::string& out, char32_t code);

enum class NormalForm { kC, kD, kKC, kKD };
std::string normal_form(std::string_view utf8, NormalForm form);
// Converts each character individually, so a sigma at the end of a word does not become a final sigma.
std::string lower_case(std::string_view utf8);
// Returns true if the text has lowercase letters and no letters of another case.
bool is_lower_case(std::string_view utf8);
// Converts the first letter of each run of cased letters to title case, the others to lower case.
std::string title_case(std::string_view utf8);

bool is_space(char32_t code);        // White_Space
bool is_punctuation(char32_t code);  // ASCII punctuation and symbols, and category P
bool is_letter(char32_t code);       // category L
bool is_numeric(char32_t code);      // category N
bool is_other(char32_t code);        // category C
bool is_nonspacing(char32_t code);   // category Mn
bool is_combining(char32_t code);    // category M
int script_of(char32_t code);        // ICU's script code

}  // namespace ggufmill::huggingface
