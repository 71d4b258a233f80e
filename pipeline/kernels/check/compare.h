#pragma once
// Runs kernels of two modules on the same random inputs; every byte must be the same.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/kernels/check/kernel_run.h"
#include "plugins/abi/ggufmill_kernels.h"

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

// Runs a kernel and the one that it is compared with. Encoders get finite values, with ordinary and extreme importance
// and without according to their flags; the float types get arbitrary bits. One pass has many rows and long ones.
// Searches run with every effort and all weights, in every fifth round. Decoders get arbitrary bytes, and all NaNs in
// their output count as equal: which NaN an invalid scale yields depends only on the order of the operands. If one
// kernel fails, both must fail with the same status; the bytes are then ignored. Adds to `result`, and stops after
// `most` differences in all.
void compare_kernels(const ggufmill_kernel& expected, const ggufmill_kernel& tested, const CompareOptions& options,
                     CompareResult& result, std::size_t most = SIZE_MAX);

// Compares every kernel of `tested` with its counterpart; a missing counterpart counts as a difference.
CompareResult compare_modules(KernelList expected, KernelList tested, const CompareOptions& options);

}  // namespace ggufmill::conformance
