#pragma once
// Loads the golden digests and checks a module against them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::conformance {

struct GoldenRow {
  std::string type;
  std::string distribution;
  std::string importance;  // "no", or a kind of synth::importance()
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t seed = 0;
  std::string input;        // the first 16 hex digits of the digest
  std::string quantized;    // 64 hex digits
  std::string dequantized;  // 64 hex digits
};

// Returns a description such as "Q4_K normal 32x1024 seed 2024, with importance".
std::string describe(const GoldenRow& row);

// Throws std::runtime_error, with file and line, if the file cannot be read, a line is not a valid case, or the table
// has no cases.
std::vector<GoldenRow> load_golden_table(const std::string& path);

// Cases of one direction. `wrong` describes each failed case with the actual result.
struct Tally {
  std::uint64_t cases = 0;
  std::uint64_t right = 0;
  std::uint64_t lacking = 0;  // not counted in `cases`: the module has no kernel for the type
  std::vector<std::string> wrong;
};

struct GoldenResult {
  Tally quantized;
  Tally dequantized;
};

// Runs every row with the module's encoders of a name; empty: the default ones. The input of the decoders comes from
// the module's own encoder or, if it has none, from that of `fallback`. Throws std::runtime_error if a kernel fails, or
// if an input does not match the table (then the kernels are not at fault).
GoldenResult check_golden(const ggufmill_module& module, const ggufmill_module& fallback,
                          const std::vector<GoldenRow>& rows, std::string_view encoder = {});

}  // namespace ggufmill::conformance
