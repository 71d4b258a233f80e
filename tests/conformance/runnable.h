#pragma once
// Whether a module's kernels can run on this machine: a test of one that cannot is skipped.

#include <string>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::conformance {

// What ctest is told of as a test that was skipped.
inline constexpr int kSkipped = 77;

// The CPU features that the module's ISA or the module itself needs and this machine lacks, separated by spaces; empty
// when it can run.
std::string missing_here(const ggufmill_module& module);

}  // namespace ggufmill::conformance
