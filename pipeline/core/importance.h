#pragma once
// Importance of a tensor's columns: which numbers of which source it is made of. Nothing is read here.

#include <cstdint>
#include <span>
#include <string>

#include "pipeline/core/expression.h"

namespace ggufmill {

// Sums of squared activations, one for each column of `matrices` matrices, and what to divide them by. The matrices of
// a tensor are counted by dims[2]; what dims[3] counts shares them.
struct Importance {
  std::string name;        // of the entry, for messages
  Extent sums;             // F32: columns * matrices numbers
  Extent counts;           // F32: tokens seen, one for each of so many equal parts of the sums; legacy files: no bytes
  std::int32_t calls = 0;  // legacy files: what all sums are divided by, where more than 0
  std::uint64_t columns = 0, matrices = 0;
  std::string fingerprint;  // hash of all weights: part of the identity of a plan

  // The numbers that the weights of matrix `matrix` (0 <= matrix < dims[2] * dims[3]) are made of. No bytes of
  // `counts`: none are needed.
  struct Ranges {
    Extent sums, counts;
  };
  Ranges ranges(std::uint64_t matrix) const;
  // Makes weights of the sums in place; `counts` are those of ranges(). Both in the host's byte order. Exit code 4 for
  // a count or weight that is not finite and for a negative weight.
  Status to_weights(std::uint64_t matrix, std::span<const float> counts, std::span<float> sums) const;
};

// The same for any run of an entry's numbers: `sums` from number `first` on, of `size` in all; `counts` of the parts
// that they lie in, of `parts` in all (0: legacy). The very float32 numbers that the reference computes (llama.cpp,
// tools/quantize/quantize.cpp, load_imatrix); a part that saw no token has weights of 1.
struct ImportanceRun {
  const std::string& path;  // for messages
  const std::string& name;
  std::uint64_t size, parts;
  std::int32_t calls;
};
Status to_weights(const ImportanceRun& run, std::uint64_t first, std::span<const float> counts, std::span<float> sums);

}  // namespace ggufmill
