#pragma once
// Converts rows in memory, for programs that hold arrays and for inspecting the values of a model. Uses the same tile
// converter as a run, so the bytes are the same.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"
#include "pipeline/kernels/kernels.h"

namespace ggufmill {

// Most bytes that a call uses in addition to the caller's memory and each thread's scratch, unless one row needs more.
inline constexpr std::uint64_t kRowsMemory = 64 << 20;

struct RowsOptions {
  unsigned threads = 0;                     // 0: the number of CPUs available to this process
  const std::atomic<bool>* stop = nullptr;  // when set, the work ends with kInterrupted
};

// Whole rows of one type, and the memory for the converted rows of another; both in the host's byte order. The caller
// owns the memory, which must be aligned for elements as the kernels require (ggufmill_kernels.h) and must not overlap.
struct RowConversion {
  const TypeInfo* from = nullptr;
  std::span<const std::byte> values;
  const TypeInfo* to = nullptr;
  std::span<std::byte> into;  // undefined after an error
  std::uint64_t columns = 0;  // of each row
  // Weights of the columns, finite and not negative: one row of weights for all rows, or one for each of the equal
  // parts into which the rows are divided, such as the matrices of a tensor. Empty: none. Ignored by types that do not
  // use them.
  std::span<const float> importance{};
};

// Converts rows. Values that are not finite are an error when encoding; when decoding to F32 they are passed through.
// Fails with exit code 2 if sizes are inconsistent or importance is missing or invalid, 4 for values that are not
// finite or too large for the type, 5 if the kernel for a type is missing. Thread-safe.
Status convert_rows(const RowConversion& conversion, const Kernels& kernels, const RowsOptions& options = {});

// Encoded rows whose levels are to be chosen again, so that the squared error e H e^T of each row is small, where e is
// the difference between its values and its decoded encoding. Scales and minimums of blocks remain. Ownership and
// alignment as in RowConversion.
struct LevelChoice {
  const TypeInfo* type = nullptr;  // with levels: has_covariance()
  std::span<const float> values;
  std::span<std::byte> rows;           // undefined after an error
  std::uint64_t columns = 0;           // of each row
  std::span<const double> covariance;  // H, columns * columns: symmetric, positive definite
  std::uint32_t sweeps = 0;  // how often every level is reconsidered after the first pass, at most Encoder::kMaxSweeps
};

// Chooses levels, as a run does with the encoder `covariance`. The same bytes whatever the threads and the machine.
// Fails with exit code 2 if sizes are inconsistent or the type has no levels, 4 for values that are not finite or a
// covariance that is not positive definite. Thread-safe.
Status choose_levels(const LevelChoice& choice, const Kernels& kernels, const RowsOptions& options = {});

// read_rows() reads rows [first, first + rows) of a tensor as defined by its expression; `to` is its own type or F32.
// Fails with exit code 2 if the rows or sizes do not fit, 4 if a source has changed since the model was opened or is
// malformed, 5 if the kernel for a type is missing, 6 if reading fails. Thread-safe.
struct RowsOfTensor {
  const Tensor* tensor = nullptr;
  std::uint64_t first = 0, rows = 0;
  const TypeInfo* to = nullptr;
  std::span<std::byte> into;  // undefined after an error
};
Status read_rows(const RowsOfTensor& wanted, const Kernels& kernels, const RowsOptions& options = {});

}  // namespace ggufmill
