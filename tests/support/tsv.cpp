#include "tests/support/tsv.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace ggufmill {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t')
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

}  // namespace

Tsv read_tsv(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error(fmt::format("{}: cannot be read", path));
  Tsv table{split(line), {}};
  for (int number = 2; std::getline(file, line); ++number) {
    table.rows.push_back(split(line));
    if (table.rows.back().size() != table.names.size())
      throw std::runtime_error(
          fmt::format("{}:{}: {} fields instead of {}", path, number, table.rows.back().size(), table.names.size()));
  }
  if (table.rows.empty()) throw std::runtime_error(fmt::format("{}: no cases", path));
  return table;
}

}  // namespace ggufmill
