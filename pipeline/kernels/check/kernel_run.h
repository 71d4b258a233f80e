#pragma once
// Finds kernels and runs them between guard pages.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/kernels/check/guarded_buffer.h"
#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::conformance {

using Bytes = std::vector<std::byte>;
// The kernels of a module. Those of a module in memory are an array only if it has this program's ABI version; other
// modules are copied by the plugin host (LoadedModule).
using KernelList = std::span<const ggufmill_kernel>;

KernelList kernels_of(const ggufmill_module& module);
// Returns null if there is no such kernel. `encoder` is empty for decoders and default encoders.
const ggufmill_kernel* find_kernel(KernelList kernels, std::uint32_t operation, std::string_view type,
                                   std::string_view encoder = {});
// Returns the kernel for the same operation, type and encoder; null if there is none.
const ggufmill_kernel* find_counterpart(KernelList kernels, const ggufmill_kernel& kernel);

// Returns the name of the encoder; empty for decoders and default encoders.
std::string_view encoder_of(const ggufmill_kernel& kernel);
// Returns true for encoders that receive an effort and weights.
bool is_search(const ggufmill_kernel& kernel);

// Returns "decode" or "encode".
const char* operation_of(const ggufmill_kernel& kernel);
// Returns a description such as "encode Q4_K" or "encode Q4_K (search)".
std::string describe(const ggufmill_kernel& kernel);

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
  std::uint32_t effort = 1;
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

struct Shape {
  std::uint64_t rows = 1;
  std::uint64_t blocks = 1;  // of a row
};
using Shapes = std::vector<Shape>;

// Numbers of rows that leave lanes of vectors free, fill them, and exceed them.
inline constexpr std::uint64_t kNumbersOfRows[] = {1, 2, 3, 7, 8, 16, 17, 33, 65};
// Returns rows of about that many columns.
Shape long_rows(const ggufmill_kernel& kernel, std::uint64_t rows, std::uint64_t about);
// Returns rows as long as those of large models, the longest with an odd number of blocks.
Shapes long_shapes(const ggufmill_kernel& kernel);

// Returns a description such as "3 rows of 64 columns, 48 bytes each, with importance"; the bytes are those of a row of
// the type, as the kernel describes it.
std::string describe_call(const ggufmill_kernel& kernel, const Work& work);

// A call with its memory: source, target and importance each against a guard page; source and importance are read-only.
// To be used by the thread that creates it.
class GuardedCall {
 public:
  GuardedCall(const ggufmill_kernel& kernel, const Work& work, Placement placement = {});

  // Fills the target with `filler`, then runs the kernel. Returns its status.
  std::int32_t run(std::byte filler = std::byte{0xa5});
  std::span<const std::byte> target() { return target_.bytes(); }

 private:
  const ggufmill_kernel& kernel_;
  GuardedBuffer source_, target_;
  std::optional<GuardedBuffer> importance_;
  ggufmill_call call_;
};

// Runs a kernel once.
Outcome try_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement = {},
                   std::byte filler = std::byte{0xa5});
// Runs a kernel in the same way and returns the output; throws std::runtime_error if the kernel fails.
Bytes run_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement = {},
                 std::byte filler = std::byte{0xa5});

}  // namespace ggufmill::conformance
