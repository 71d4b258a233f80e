#pragma once
// Runs two modules on the same random inputs; every byte must be the same.

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"
#include "tests/conformance/kernel_run.h"

namespace ggufmill::conformance {

struct CompareOptions {
  std::uint64_t seed = 1;
  std::uint64_t rounds = 1;  // each covers all input kinds and several shapes
  std::string type;          // only this one; "": all
};

struct CompareResult {
  std::uint64_t kernels = 0;  // of the tested module
  std::uint64_t calls = 0;
  std::vector<std::string> differences;  // one per call that differs: kernel, input, shape, seed, first byte
};

// Describes the first difference of `tested` from the expected outcome of `kernel`; empty if there is none. In the
// output of a block decoder, all NaNs count as equal. The bytes of a call that failed are ignored.
std::string difference(const ggufmill_kernel& kernel, const Outcome& expected, const Outcome& tested);

// Runs every kernel of `tested` and its counterpart in `expected`; a missing counterpart counts as a difference.
// Encoders get finite values, with and without importance according to their flags; the float types get arbitrary bits.
// Searches run with every effort and all weights, in every fifth round.
// Decoders get arbitrary bytes, and all NaNs in their output count as equal: which NaN an invalid scale yields depends
// only on the order of the operands. If one kernel fails, both must fail with the same status; the bytes are then
// ignored.
CompareResult compare_modules(const ggufmill_module& expected, const ggufmill_module& tested,
                              const CompareOptions& options);

}  // namespace ggufmill::conformance
