#pragma once
// Checks the rules of the ABI for every kernel, independent of what it computes: plugins/abi/ggufmill_kernels.h,
// ggufmill_call.

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::conformance {

struct ContractResult {
  std::uint64_t checks = 0;
  std::vector<std::string> violations;
};

// Checks the fields of the module and of its kernels, then runs each kernel on random input: converting row by row
// gives the same bytes as all rows in one call; a second call repeats them; every target byte is written. Source,
// target and importance are placed against guard pages at the front and at the end, so that an access outside them ends
// the program.
ContractResult check_contract(const ggufmill_module& module, std::uint64_t seed);

}  // namespace ggufmill::conformance
