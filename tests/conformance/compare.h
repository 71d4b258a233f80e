#pragma once
// Two modules on the same random inputs: every byte must be the same.

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"
#include "tests/conformance/kernel_run.h"

namespace ggufmill::conformance {

struct CompareOptions {
  std::uint64_t seed = 1;
  std::uint64_t rounds = 1;  // each goes over all input kinds and several shapes
  std::string type;          // only this one; "": all
};

struct CompareResult {
  std::uint64_t kernels = 0;  // of the tested module
  std::uint64_t calls = 0;
  std::vector<std::string> differences;  // one a call that differs: kernel, input, shape, seed, first byte
};

// How `tested` differs from what is expected of `kernel`, or nothing. In what a decoder of a block makes a NaN is as
// good as another; the bytes of a call that failed are of no interest.
std::string difference(const ggufmill_kernel& kernel, const Outcome& expected, const Outcome& tested);

// Runs every kernel of `tested` and its namesake of `expected`; one that `expected` lacks is a difference. Encoders get
// finite values, with and without importance as their flags say; the float types any bits. Decoders get any bytes, and
// there a NaN is as good as another: which one an invalid scale makes depends on the order of operands alone. Where a
// kernel fails both must, with the same status; the bytes are then of no interest.
CompareResult compare_modules(const ggufmill_module& expected, const ggufmill_module& tested,
                              const CompareOptions& options);

}  // namespace ggufmill::conformance
