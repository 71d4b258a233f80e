#include "pipeline/core/config_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Costs of an edit. A replacement that keeps the kind of character is likelier meant: Q5_M for Q5_K, not for Q5_0.
constexpr std::size_t kEdit = 4;
constexpr std::size_t kReplaceKind = 5;

std::size_t replacement(char a, char b) {
  const auto x = static_cast<unsigned char>(a), y = static_cast<unsigned char>(b);
  if (std::tolower(x) == std::tolower(y)) return 0;
  return !std::isdigit(x) == !std::isdigit(y) ? kEdit : kReplaceKind;
}

// Edits (insert, remove, replace, swap neighbours) between two words, letter case aside, in units of 1 / kEdit.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = (i + j) * kEdit;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + kEdit, d[i][j - 1] + kEdit, d[i - 1][j - 1] + replacement(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && replacement(a[i - 1], b[j - 2]) == 0 && replacement(a[i - 2], b[j - 1]) == 0)
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + kEdit);
    }
  }
  return d[a.size()][b.size()];
}

constexpr std::size_t kWidestLine = 160;  // bytes of a source line that are shown

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Tabs as spaces, and every byte that no terminal should get as a question mark: byte for byte, so that places hold.
std::string printable(std::string line) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = utf8_sequence(std::string_view(line).substr(at));
    if (line[at] == '\t')
      line[at] = ' ';
    else if (length == 0 || is_control(line[at]))
      line[at] = '?';
    at += std::max<std::size_t>(length, 1);
  }
  return line;
}

// A source line and the marks under it, cut to what is worth showing. One column a character.
struct Excerpt {
  std::string line;
  std::string marks;
};

Excerpt excerpt(const std::string& source, const Position& position) {
  const std::string line = printable(source);
  const std::size_t mark = std::min<std::size_t>(std::max(position.column, 1) - 1, line.size());
  std::size_t begin = line.size() <= kWidestLine ? 0 : mark - std::min(mark, kWidestLine / 2);
  while (begin > 0 && is_continuation(line[begin])) --begin;
  std::size_t end = std::min(line.size(), begin + kWidestLine);
  while (end < line.size() && is_continuation(line[end])) ++end;
  Excerpt shown{begin > 0 ? "..." : "", begin > 0 ? "   " : ""};
  const std::size_t mark_end = mark + static_cast<std::size_t>(std::max(position.length, 1));
  for (std::size_t at = begin; at < end; ++at) {
    shown.line += line[at];
    if (at < mark_end && !is_continuation(line[at])) shown.marks += at < mark ? ' ' : '^';
  }
  if (mark >= end) shown.marks += '^';
  if (end < line.size()) shown.line += "...";
  return shown;
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Error error_at(const ConfigText* text, Position position, std::string what, std::string help) {
  Error error{ExitCode::kUsage, text ? text->name : "", std::move(what), "", std::move(help)};
  if (!text || position.line < 1) return error;
  if (text->numbered) error.where += fmt::format(":{}:{}", position.line, position.column);
  if (position.line <= static_cast<int>(text->lines.size())) {
    const Excerpt shown = excerpt(text->lines[position.line - 1], position);
    const std::string number = text->numbered ? fmt::format("{:>4}", position.line) : "    ";
    error.detail = fmt::format("{} | {}\n{} | {}", number, shown.line, std::string(number.size(), ' '), shown.marks);
  }
  return error;
}

Error error_at(const ConfigNode& node, std::string what, std::string help) {
  return error_at(node.text, node.position, std::move(what), std::move(help));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > 64) return {};
  const std::size_t limit = kReplaceKind * std::max<std::size_t>(1, word.size() / 3);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 2 * word.size() + 1) continue;
    const std::size_t edits = distance(word, candidate);
    if (edits < best_distance) best = candidate, best_distance = edits;
  }
  return best;
}

}  // namespace ggufmill
