#pragma once
// Finds kernels of a module and runs them between guard pages, if this machine supports them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"
#include "tests/support/guarded_buffer.h"

namespace ggufmill::conformance {

using Bytes = std::vector<std::byte>;

std::span<const ggufmill_kernel> kernels_of(const ggufmill_module& module);
// Returns null if the module has no such kernel. `encoder` is empty for decoders and default encoders.
const ggufmill_kernel* find_kernel(const ggufmill_module& module, std::uint32_t operation, std::string_view type,
                                   std::string_view encoder = {});
// Returns the module's kernel for the same operation, type and encoder; null if it has none.
const ggufmill_kernel* find_counterpart(const ggufmill_module& module, const ggufmill_kernel& kernel);

// Returns true for encoders that receive an effort and weights.
bool is_search(const ggufmill_kernel& kernel);

// Returns a description such as "encode Q4_K" or "encode Q4_K (search)".
std::string describe(const ggufmill_kernel& kernel);

// Returns the bytes of one packed row of `cols` elements.
std::uint64_t packed_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);
// Return the bytes of one row of the source or of the target.
std::uint64_t source_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);
std::uint64_t target_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);

// The input of a kernel. `importance` is empty or has `cols` weights; kernels that do not take importance are called
// without it. Only searches receive the effort and the weights.
struct Work {
  std::span<const std::byte> source;
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  std::span<const float> importance;
  std::uint32_t effort = 2;
  std::uint32_t weights = GGUFMILL_WEIGHTS_PLAIN;
};

// The status and the output of a kernel.
struct Outcome {
  std::int32_t status = GGUFMILL_OK;
  Bytes bytes;
  bool operator==(const Outcome&) const = default;
};

// Location of the memory of a run.
struct Placement {
  GuardedBuffer::Side side = GuardedBuffer::Side::kEnd;
  // If true, one element is left free between the guard page and each of source, target and importance, so that they
  // are aligned for their elements but not for vectors.
  bool one_element_away = false;
};

// Runs a kernel with source, target and importance each against a guard page. The target is filled with `filler` first.
Outcome try_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement = {},
                   std::byte filler = std::byte{0xa5});
// Runs a kernel in the same way and returns the output; throws std::runtime_error if the kernel fails.
Bytes run_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement = {},
                 std::byte filler = std::byte{0xa5});

// Returns the CPU features that the module or its ISA needs and that this machine does not have, separated by spaces;
// empty if the module can run.
std::string missing_here(const ggufmill_module& module);

}  // namespace ggufmill::conformance
