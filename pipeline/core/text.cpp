#include "pipeline/core/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

namespace ggufmill {
namespace {

// A row of table 3-7 of the Unicode standard: range of lead bytes, range of the second byte, and length.
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

// Edit costs. A replacement that keeps the kind of character is more likely intended: Q5_M means Q5_K rather than Q5_0.
// Separators count little: Q4KM is Q4_K_M.
constexpr std::size_t kEdit = 4;
constexpr std::size_t kReplaceKind = 5;
constexpr std::size_t kSeparator = 1;

bool separates_words(char c) { return c == '_' || c == '-' || c == ' '; }

// Cost of a character that occurs in only one of the two words.
std::size_t extra(char c) { return separates_words(c) ? kSeparator : kEdit; }

std::size_t replacement(char a, char b) {
  const auto x = static_cast<unsigned char>(a), y = static_cast<unsigned char>(b);
  if (std::tolower(x) == std::tolower(y)) return 0;
  if (separates_words(a) && separates_words(b)) return kSeparator;
  return !std::isdigit(x) == !std::isdigit(y) ? kEdit : kReplaceKind;
}

// Edit distance (insert, remove, replace, swap adjacent characters) between two words, ignoring letter case, in units
// of 1 / kEdit.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i != 0 ? d[i - 1][j] + extra(a[i - 1]) : j != 0 ? d[i][j - 1] + extra(b[j - 1]) : 0;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + extra(a[i - 1]), d[i][j - 1] + extra(b[j - 1]),
                          d[i - 1][j - 1] + replacement(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && replacement(a[i - 1], b[j - 2]) == 0 && replacement(a[i - 2], b[j - 1]) == 0)
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + kEdit);
    }
  }
  return d[a.size()][b.size()];
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr Unit kUnits[] = {
    {"", 1},
    {"B", 1},
    {"K", 1000},
    {"KB", 1000},
    {"KiB", 1ull << 10},
    {"M", 1000000},
    {"MB", 1000000},
    {"MiB", 1ull << 20},
    {"G", 1000000000},
    {"GB", 1000000000},
    {"GiB", 1ull << 30},
    {"T", 1000000000000},
    {"TB", 1000000000000},
    {"TiB", 1ull << 40},
};

constexpr const char* kSizeHelp = "write a number and a unit: 512MiB, 20G, 1.5GiB";

// Help for words that are booleans in YAML 1.1 but plain text in YAML 1.2.
std::string bool_help(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word == "yes" || word == "on" || word == "y" || word == "true") return "write true";
  if (word == "no" || word == "off" || word == "n" || word == "false") return "write false";
  return {};
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

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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

std::string list_some(const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 3;
  const auto shown = std::span(texts).first(std::min(texts.size(), kShown));
  return fmt::format("{}{}", fmt::join(shown, ", "), texts.size() > kShown ? ", ..." : "");
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > 64) return {};
  const std::size_t limit = kReplaceKind * std::max<std::size_t>(1, word.size() / 3);
  const auto common_beginning = [&](std::string_view other) {
    std::size_t length = 0;
    while (length < std::min(word.size(), other.size()) && replacement(word[length], other[length]) == 0) ++length;
    return length;
  };
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 2 * word.size() + 1) continue;
    const std::size_t edits = distance(word, candidate);
    // Q5_K_XL is as close to Q5_K_M as to Q3_K_L.
    const bool begins_likelier =
        edits == best_distance && edits <= limit && common_beginning(candidate) > common_beginning(best);
    if (edits < best_distance || begins_likelier) best = candidate, best_distance = edits;
  }
  return best;
}

std::string text_hash(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return usage_error(fmt::format("{} is not true or false", quoted_name(text)), bool_help(std::string(text)));
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr const char* kBinary[] = {"", "KiB", "MiB", "GiB", "TiB"};
  constexpr const char* kDecimal[] = {"", "K", "M", "G", "T"};
  const bool is_binary = bytes % 1024 == 0;
  const std::uint64_t step = is_binary ? 1024 : 1000;
  std::size_t unit = 0;
  while (bytes != 0 && bytes % step == 0 && unit < 4) bytes /= step, ++unit;
  return fmt::format("{}{}", bytes, (is_binary ? kBinary : kDecimal)[unit]);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  for (const Unit& known : kUnits) {
    if (error != std::errc() || known.name != unit || text[0] == '-' || !std::isfinite(number)) continue;
    std::uint64_t whole = 0;  // exact if there is no fraction
    if (std::from_chars(text.data(), stop, whole).ptr == stop) {
      if (!__builtin_mul_overflow(whole, known.factor, &whole)) return whole;
    } else if (number * static_cast<double>(known.factor) < 0x1p63) {
      return static_cast<std::uint64_t>(number * static_cast<double>(known.factor));
    }
    return usage_error(fmt::format("{} does not fit into 64 bits", quoted_name(text)));
  }
  return usage_error(fmt::format("{} is not a size", quoted_name(text)), kSizeHelp);
}

}  // namespace ggufmill
