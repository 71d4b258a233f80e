#pragma once
// What the ABI asks of every kernel, whatever it computes: plugins/abi/ggufmill_kernels.h, ggufmill_call.

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::conformance {

struct ContractResult {
  std::uint64_t checks = 0;
  std::vector<std::string> violations;
};

// The module's own figures, then each kernel on random input: one row at a time gives the bytes of all rows at once;
// the same again in a second call; every target byte is written; source, target and importance lie against guard pages
// at the front and at the end, so touching what lies beside them ends the program.
ContractResult check_contract(const ggufmill_module& module, std::uint64_t seed);

}  // namespace ggufmill::conformance
