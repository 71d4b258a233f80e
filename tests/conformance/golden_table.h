#pragma once
// The table of golden figures: tests/golden/kernels.tsv (see the README beside it).

#include <cstdint>
#include <string>
#include <vector>

namespace ggufmill::conformance {

struct GoldenRow {
  std::string type;
  std::string distribution;
  bool importance = false;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t seed = 0;
  std::string input;        // the first 16 hex digits of the digest
  std::string quantized;    // 64 hex digits
  std::string dequantized;  // 64 hex digits
};

// "Q4_K normal 32x1024 seed 2024, with importance"
std::string describe(const GoldenRow& row);

// Throws std::runtime_error, with file and line, for a file that cannot be read or a line that is no case, and for a
// table without cases.
std::vector<GoldenRow> load_golden_table(const std::string& path);

}  // namespace ggufmill::conformance
