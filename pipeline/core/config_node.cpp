#include "pipeline/core/config_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace ggufmill {
namespace {

// Edits (insert, remove, replace, swap neighbours) between two words, letter case aside.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  auto same = [&](std::size_t i, std::size_t j) {
    return std::tolower(static_cast<unsigned char>(a[i])) == std::tolower(static_cast<unsigned char>(b[j]));
  };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
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
  error.where += fmt::format(":{}:{}", position.line, position.column);
  if (position.line <= static_cast<int>(text->lines.size())) {
    const std::string& line = text->lines[position.line - 1];
    const int marks = std::max(1, std::min(position.length, static_cast<int>(line.size()) - position.column + 1));
    error.detail = fmt::format("{:>4} | {}\n     | {}{}", position.line, line, std::string(position.column - 1, ' '),
                               std::string(marks, '^'));
  }
  return error;
}

Error error_at(const ConfigNode& node, std::string what, std::string help) {
  return error_at(node.text, node.position, std::move(what), std::move(help));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > 64) return {};
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(word, candidate);
    if (edits < best_distance) best = candidate, best_distance = edits;
  }
  return best;
}

}  // namespace ggufmill
