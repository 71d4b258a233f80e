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

// In single quotes for a one-line message: control characters and what is not UTF-8 as \xNN, cut after about `width`
// bytes, never inside a character.
std::string quoted_name(std::string_view text, std::size_t width = 80);

// "1.50 GiB".
std::string human_bytes(std::uint64_t bytes);

}  // namespace ggufmill
