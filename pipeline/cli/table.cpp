#include "pipeline/cli/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

std::string render_row(const std::vector<Column>& columns, const std::vector<std::size_t>& widths, const Row& row) {
  std::string line;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) line += "  ";
    line += columns[c].align == Align::kLeft ? fmt::format("{:<{}}", row[c], widths[c])
                                             : fmt::format("{:>{}}", row[c], widths[c]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  Row titles;
  std::vector<std::size_t> widths;
  for (const Column& column : columns) {
    titles.push_back(column.title);
    widths.push_back(column.title.size());
  }
  for (const Row& row : rows)
    for (std::size_t c = 0; c < columns.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text = render_row(columns, widths, titles);
  for (const Row& row : rows) text += render_row(columns, widths, row);
  return text;
}

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace ggufmill
