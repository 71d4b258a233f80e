#pragma once
// The golden figures, and a module against them.

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"

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

// Cases of one direction. `wrong` names each case that did not come out, with what was found.
struct Tally {
  std::uint64_t cases = 0;
  std::uint64_t right = 0;
  std::uint64_t lacking = 0;  // not among `cases`: the module has no kernel for the type
  std::vector<std::string> wrong;
};

struct GoldenResult {
  Tally quantized;
  Tally dequantized;
};

// Runs every row. What the decoders get comes from the module's own encoder or, where it has none, from `fallback`'s.
// Throws std::runtime_error when a kernel fails, or when an input is not what the table says (then no kernel is to
// blame).
GoldenResult check_golden(const ggufmill_module& module, const ggufmill_module& fallback,
                          const std::vector<GoldenRow>& rows);

}  // namespace ggufmill::conformance
