#pragma once
// Rows converted in memory, outside of a run: for programs that hold arrays, and for looking at the values of a model.
// On all cores, with the kernels of a run and so with its bytes.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"
#include "pipeline/kernels/kernels.h"

namespace ggufmill {

struct RowsOptions {
  unsigned threads = 0;                     // 0: as many as the machine gives this process
  const std::atomic<bool>* stop = nullptr;  // once it is set the work ends with kInterrupted
};

// Whole rows of one type, and those of another to be made of them; both in the host's byte order. The memory is the
// caller's, aligned for elements as the kernels want it (ggufmill_kernels.h), and does not overlap.
struct RowConversion {
  const TypeInfo* from = nullptr;
  std::span<const std::byte> values;
  const TypeInfo* to = nullptr;
  std::span<std::byte> into;  // after an error it holds anything
  std::uint64_t columns = 0;  // of every row
  // Weights of the columns, finite and not negative: so many for each of the equal parts that the rows are cut into, a
  // part for each of a tensor's matrices. Empty: none. Not used by types that have no use for them.
  std::span<const float> importance{};
};

// Values that are not finite are an error where something is encoded, and are given as they are where F32 is wanted.
// Exit code 2 for sizes that do not fit together and for importance that lacks or is wrong, 4 for values that are not
// finite or too large for the type, 5 for a type without the kernel. Thread-safe.
Status convert_rows(const RowConversion& conversion, const Kernels& kernels, const RowsOptions& options = {});

// Rows [first, first + rows) of a tensor as its expression has them: `to` is its own type, or F32. Holds a few MiB for
// each thread, and what the expression reads for these. Exit code 2 for rows or sizes that do not fit, 4 where a source
// is not what it was when the model was opened or is malformed, 5 for a type without the kernel, 6 where the system
// does not read. Thread-safe.
struct RowsOfTensor {
  const Tensor* tensor = nullptr;
  std::uint64_t first = 0, rows = 0;
  const TypeInfo* to = nullptr;
  std::span<std::byte> into;  // as of a conversion
};
Status read_rows(const RowsOfTensor& wanted, const Kernels& kernels, const RowsOptions& options = {});

}  // namespace ggufmill
