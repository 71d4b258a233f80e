#pragma once
// Text that came from outside: is it UTF-8, how is it shown, which word and which size is meant.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// Whether all of `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

// Bytes of the well-formed UTF-8 sequence that `text` begins with, 1 to 4; 0 when there is none.
std::size_t utf8_sequence(std::string_view text);

// What a well-formed sequence stands for.
char32_t code_point(std::string_view sequence);

// Bytes of the UTF-8 sequence that `text` begins with, when a terminal shows it as a character and does nothing else;
// 0 for control characters (C0, DEL, C1), for those that reorder text or end a line (bidirectional controls, U+2028,
// U+2029, a byte order mark) and for what is not UTF-8.
std::size_t printable_sequence(std::string_view text);

// For a terminal: every byte that belongs to no printable character as \xNN, the rest as it is. The characters of
// `keep` stay.
std::string printable(std::string_view text, std::string_view keep = {});

// In single quotes for a one-line message: printable(), cut after about `width` bytes, never inside a character.
std::string quoted_name(std::string_view text, std::size_t width = 80);

// "1.50 GiB".
std::string human_bytes(std::uint64_t bytes);

// Whether two words are the same but for letter case (ASCII).
bool same_word(std::string_view a, std::string_view b);

// The candidate nearest to `word` by edit distance when it is near enough to be meant; else empty. Letter case does not
// count, separators hardly do. Of equally near ones that which keeps letters letters and digits digits, then the one
// with the longest common beginning, then the first.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// XXH3 of 128 bits as 32 hexadecimal digits.
std::string text_hash(std::string_view text);

// "true" and "false" alone. Exit code 2.
Result<bool> parse_bool(std::string_view text);

// "512MiB", "1000": the largest binary unit that divides it. What parse_bytes reads back.
std::string format_bytes(std::uint64_t bytes);
// "512MiB", "20G", "1000000": decimal K M G T, binary KiB MiB GiB TiB, a B behind or not. Exit code 2.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace ggufmill
