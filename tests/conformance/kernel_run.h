#pragma once
// Finds kernels of a module and runs them between guard pages, if this machine supports them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_search.h"
#include "tests/support/guarded_buffer.h"

namespace ggufmill::conformance {

using Bytes = std::vector<std::byte>;

std::span<const ggufmill_kernel> kernels_of(const ggufmill_module& module);
// Returns null if the module has no such kernel.
const ggufmill_kernel* find_kernel(const ggufmill_module& module, std::uint32_t operation, const std::string& type);
const ggufmill_kernel* find_kernel(const ggufmill_module& module, std::uint32_t operation, std::uint32_t type_id);

// Returns a description such as "encode Q4_K".
std::string describe(const ggufmill_kernel& kernel);

// Returns the bytes of one packed row of `cols` elements.
std::uint64_t packed_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);
// Return the bytes of one row of the source or of the target.
std::uint64_t source_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);
std::uint64_t target_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);

// The input of a kernel. `importance` is empty or has `cols` weights; kernels that do not take importance are called
// without it.
struct Work {
  std::span<const std::byte> source;
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  std::span<const float> importance;
};

// The status and the output of a kernel.
struct Outcome {
  std::int32_t status = GGUFMILL_OK;
  Bytes bytes;
  bool operator==(const Outcome&) const = default;
};

// Settings of a search.
struct SearchSettings {
  std::uint32_t effort = 2;
  std::uint32_t weights = GGUFMILL_WEIGHTS_PLAIN;
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
// Runs a search in the same way; `encoder` is any encoder of its type.
Outcome try_search(const ggufmill_search_kernel& search, const ggufmill_kernel& encoder, const Work& work,
                   const SearchSettings& settings);
// Runs a kernel in the same way and returns the output; throws std::runtime_error if the kernel fails.
Bytes run_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement = {},
                 std::byte filler = std::byte{0xa5});

// Returns the CPU features that the module or its ISA needs and that this machine does not have, separated by spaces;
// empty if the module can run.
std::string missing_here(const ggufmill_module& module);

}  // namespace ggufmill::conformance
