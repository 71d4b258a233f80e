#include "pipeline/core/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

// One row of table 3-7 of the Unicode standard: lead bytes, the range of the second byte, and the length.
struct Utf8Row {
  unsigned char first, last, second_least, second_most;
  std::size_t length;
};
constexpr Utf8Row kUtf8Rows[] = {
    {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

bool fits(const Utf8Row& row, std::string_view text) {
  if (text.size() < row.length) return false;
  for (std::size_t i = 1; i < row.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < (i == 1 ? row.second_least : 0x80) || byte > (i == 1 ? row.second_most : 0xbf)) return false;
  }
  return true;
}

}  // namespace

std::size_t utf8_sequence(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  for (const Utf8Row& row : kUtf8Rows)
    if (lead >= row.first && lead <= row.last) return fits(row, text) ? row.length : 0;
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

char32_t code_point(std::string_view sequence) {
  static constexpr unsigned kLeadBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t code = static_cast<unsigned char>(sequence[0]) & kLeadBits[sequence.size()];
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

std::size_t printable_sequence(std::string_view text) {
  struct Range {
    char32_t first, last;
  };
  static constexpr Range kSteering[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},  {0x200e, 0x200f},
                                        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
  const std::size_t length = utf8_sequence(text);
  if (length == 0) return 0;
  const char32_t code = code_point(text.substr(0, length));
  const bool steers = std::any_of(std::begin(kSteering), std::end(kSteering),
                                  [&](const Range& range) { return code >= range.first && code <= range.last; });
  return steers ? 0 : length;
}

std::string printable(std::string_view text, std::string_view keep) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = keep.find(text[0]) == std::string_view::npos ? printable_sequence(text) : 1;
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      length = std::max<std::size_t>(1, utf8_sequence(text));
      for (const char c : text.substr(0, length)) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string quoted_name(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  while (end < text.size() && end < width) end += std::max<std::size_t>(1, utf8_sequence(text.substr(end)));
  return "'" + printable(text.substr(0, end)) + (end < text.size() ? "'..." : "'");
}

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = next;
  }
  return fmt::format("{:.2f} {}", amount, unit);
}

}  // namespace ggufmill
