#pragma once
// The rows of a tensor that a measurement reads.

#include <cstdint>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/model.h"

namespace ggufmill {

// One row of every `every` rows; 1: all rows.
struct RowSample {
  static constexpr std::uint64_t kMax = 1 << 20;
  std::uint64_t every = 16;

  bool is_all() const { return every == 1; }
  bool operator==(const RowSample&) const = default;
};

// Reads "all" or "1/N".
Form<RowSample> sample_form();

// Returns the tensor with the sampled rows only: the same number in each matrix, evenly spread, at least one in each
// and kMinSampledRows in the tensor as far as it has as many. Where they begin depends on the tensor's name alone. An
// even distance greater than 2 is reduced by 1, since heads and other parts of a tensor have numbers of rows that are
// multiples of powers of 2. Returns the tensor itself if the sample contains all of its rows.
inline constexpr std::uint64_t kMinSampledRows = 64;
Result<Tensor> sampled(const Tensor& tensor, RowSample sample);

}  // namespace ggufmill
