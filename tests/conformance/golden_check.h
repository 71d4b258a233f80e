#pragma once
// A module against the golden figures.

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"
#include "tests/conformance/golden_table.h"

namespace ggufmill::conformance {

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
