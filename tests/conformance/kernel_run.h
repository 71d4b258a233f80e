#pragma once
// Finding and running kernels of a module between guard pages, where this machine can.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"
#include "tests/support/guarded_buffer.h"

namespace ggufmill::conformance {

using Bytes = std::vector<std::byte>;

std::span<const ggufmill_kernel> kernels_of(const ggufmill_module& module);
// Null when the module has none.
const ggufmill_kernel* find_kernel(const ggufmill_module& module, std::uint32_t operation, const std::string& type);
const ggufmill_kernel* find_kernel(const ggufmill_module& module, std::uint32_t operation, std::uint32_t type_id);

// "encode Q4_K"
std::string describe(const ggufmill_kernel& kernel);

// Bytes of one row of `cols` elements on the side of the type.
std::uint64_t packed_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);
// Of what it reads, of what it writes.
std::uint64_t source_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);
std::uint64_t target_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols);

// What a kernel is to do. `importance` is empty or has `cols` weights; it is not given to a kernel that does not take
// it.
struct Work {
  std::span<const std::byte> source;
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  std::span<const float> importance;
};

// What a kernel returned and wrote.
struct Outcome {
  std::int32_t status = GGUFMILL_OK;
  Bytes bytes;
  bool operator==(const Outcome&) const = default;
};

// Where the memory of a run lies.
struct Placement {
  GuardedBuffer::Side side = GuardedBuffer::Side::kEnd;
  // One element of source, target and importance each away from the guard page: aligned for the element, and whole
  // blocks for no vector.
  bool one_element_away = false;
};

// Runs with source, target and importance each against a guard page, the target filled with `filler` before.
Outcome try_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement = {},
                   std::byte filler = std::byte{0xa5});
// The bytes of the same; throws std::runtime_error when the kernel returns a failure.
Bytes run_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement = {},
                 std::byte filler = std::byte{0xa5});

// What ctest is told of as a test that was skipped.
inline constexpr int kSkipped = 77;

// The CPU features that the module's ISA or the module itself needs and this machine lacks, separated by spaces; empty
// when it can run.
std::string missing_here(const ggufmill_module& module);

}  // namespace ggufmill::conformance
