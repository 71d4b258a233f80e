#pragma once
// The tables in configs/: lines of tab-separated columns, "-" for an empty column. Lines that begin with # are
// comments; the first other line contains the column names.

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace ggufmill {

// Returns all lines but comments, the column names first, as views into `table`. Pure.
inline std::vector<std::vector<std::string_view>> table_lines(std::string_view table) {
  std::vector<std::vector<std::string_view>> rows;
  while (!table.empty()) {
    std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(table.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string_view>& row = rows.emplace_back();
    for (std::size_t tab = 0; tab != line.npos; line.remove_prefix(std::min(line.size(), tab + 1))) {
      tab = line.find('\t');
      row.push_back(line.substr(0, tab));
      if (row.back() == "-") row.back() = {};
      if (tab == line.npos) break;
    }
  }
  return rows;
}

// Returns the rows without the column names.
inline std::vector<std::vector<std::string_view>> table_rows(std::string_view table) {
  std::vector<std::vector<std::string_view>> rows = table_lines(table);
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

}  // namespace ggufmill
