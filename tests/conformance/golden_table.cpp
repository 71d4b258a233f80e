#include "tests/conformance/golden_table.h"

#include <fmt/format.h>

#include <stdexcept>

#include "tests/support/tsv.h"

namespace ggufmill::conformance {
namespace {

GoldenRow parse_row(const std::vector<std::string>& fields) {
  if (fields.size() != 9) throw std::runtime_error(fmt::format("{} fields instead of 9", fields.size()));
  if (fields[2] != "yes" && fields[2] != "no") throw std::runtime_error("importance is neither yes nor no");
  if (fields[6].size() != 16 || fields[7].size() != 64 || fields[8].size() != 64)
    throw std::runtime_error("a digest of the wrong length");
  return {
      fields[0], fields[1], fields[2] == "yes", std::stoull(fields[3]), std::stoull(fields[4]), std::stoull(fields[5]),
      fields[6], fields[7], fields[8]};
}

}  // namespace

std::string describe(const GoldenRow& row) {
  return fmt::format("{} {} {}x{} seed {}{}", row.type, row.distribution, row.rows, row.cols, row.seed,
                     row.importance ? ", with importance" : "");
}

std::vector<GoldenRow> load_golden_table(const std::string& path) {
  std::vector<GoldenRow> rows;
  for (const std::vector<std::string>& fields : read_tsv(path).rows) {
    try {
      rows.push_back(parse_row(fields));
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}:{}: {}", path, rows.size() + 2, error.what()));
    }
  }
  return rows;
}

}  // namespace ggufmill::conformance
