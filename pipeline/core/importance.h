#pragma once
// Importance of a tensor's columns: the source ranges from which the weights are computed. Nothing is read here.

#include <cstdint>
#include <span>
#include <string>

#include "pipeline/core/expression.h"

namespace ggufmill {

// Sums of squared activations, one for each column of `matrices` matrices, and their divisors. Matrices are counted
// along dims[2] of the tensor; all slices along dims[3] share them.
struct Importance {
  std::string name;        // name of the entry, for messages
  Extent sums;             // F32: columns * matrices numbers
  Extent counts;           // F32: tokens seen, one per equal part of the sums; empty for legacy files
  std::int32_t calls = 0;  // legacy files: divisor of all sums, if greater than 0
  std::uint64_t columns = 0, matrices = 0;
  std::string fingerprint;  // hash of all weights; part of the identity of a plan

  // Returns the ranges from which the weights of matrix `matrix` (0 <= matrix < dims[2] * dims[3]) are computed. If
  // `counts` has no bytes, no counts are needed.
  struct Ranges {
    Extent sums, counts;
  };
  Ranges ranges(std::uint64_t matrix) const;
  // Converts the sums to weights in place; `counts` are those of ranges(). Both are in the host's byte order. Fails
  // with exit code 4 if a count or weight is not finite or a weight is negative.
  Status to_weights(std::uint64_t matrix, std::span<const float> counts, std::span<float> sums) const;
};

// The same for any contiguous run of an entry's numbers: `sums` starts at number `first` of `size` in total; `counts`
// covers the parts that contain them, out of `parts` in total (0: legacy). Computes exactly the float32 numbers of the
// reference (llama.cpp, tools/quantize/quantize.cpp, load_imatrix); a part that saw no tokens has weights of 1.
struct ImportanceRun {
  const std::string& path;  // for messages
  const std::string& name;
  std::uint64_t size, parts;
  std::int32_t calls;
};
Status to_weights(const ImportanceRun& run, std::uint64_t first, std::span<const float> counts, std::span<float> sums);

}  // namespace ggufmill
