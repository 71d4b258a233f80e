#pragma once
// Handling of external text: UTF-8 validation, display, suggestions for misspelled words, and sizes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// Returns true if all of `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

// Length in bytes of the well-formed UTF-8 sequence at the start of `text`, 1 to 4; 0 if there is none.
std::size_t utf8_sequence(std::string_view text);

// Code point of a well-formed sequence.
char32_t code_point(std::string_view sequence);

// Length in bytes of the UTF-8 sequence at the start of `text` if a terminal displays it as a character without side
// effects. 0 for control characters (C0, DEL, C1), for characters that reorder text or end a line (bidirectional
// controls, U+2028, U+2029, a byte order mark) and for invalid UTF-8.
std::size_t printable_sequence(std::string_view text);

// Returns the text for display on a terminal: every byte that is not part of a printable character becomes \xNN. The
// characters in `keep` are left unescaped.
std::string printable(std::string_view text, std::string_view keep = {});

// Returns the text in single quotes for a one-line message: escaped by printable() and truncated after about `width`
// bytes, never inside a character.
std::string quoted_name(std::string_view text, std::size_t width = 80);

// Returns the word as shell syntax, quoted only if necessary.
std::string shell_word(std::string_view word);

// Formats a size for people: "1.50 GiB".
std::string human_bytes(std::uint64_t bytes);

// Joins the first three texts for a message: "a, b, c, ...".
std::string list_some(const std::vector<std::string>& texts);

// Formats a number of things: "1 tensor", "2 tensors".
std::string counted(std::uint64_t count, std::string_view noun);

// Returns the text without white space at its ends, as a view into it.
std::string_view trimmed(std::string_view text);

// Returns the text with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

// Returns true if two words are equal, ignoring letter case (ASCII).
bool same_word(std::string_view a, std::string_view b);

// Returns the candidate closest to `word` by edit distance if it is close enough to be a likely misspelling; otherwise
// an empty string. Letter case does not count, and separators count little. Among equally close candidates, prefers the
// one in which letters stay letters and digits stay digits, then the one with the longest common prefix, then the
// first.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// 128-bit XXH3 hash as 32 hexadecimal digits.
std::string text_hash(std::string_view text);

// Accepts only "true" and "false". Fails with exit code 2.
Result<bool> parse_bool(std::string_view text);

// Formats a size exactly, in the largest binary unit that divides it: "512MiB", "1000". parse_bytes() reads it back.
std::string format_bytes(std::uint64_t bytes);
// Parses a size such as "512MiB", "20G" or "1000000": decimal units K M G T (with an optional B), binary units KiB MiB
// GiB TiB. Fails with exit code 2.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace ggufmill
