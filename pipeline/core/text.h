#pragma once
// Text that came from outside: is it UTF-8, and how is it shown.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace ggufmill
