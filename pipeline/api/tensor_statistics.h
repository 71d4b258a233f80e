#pragma once
// Statistics of the values of a tensor.

#include <atomic>
#include <cstdint>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

class Context;

struct TensorStatistics {
  std::uint64_t count = 0, zeros = 0, not_finite = 0;  // count: all values
  // Statistics of the finite values; 0 if there are none.
  double least = 0, largest = 0, mean = 0;
  double deviation = 0;                  // sqrt(mean (x - mean of all)^2)
  std::vector<std::uint64_t> histogram;  // equal bins from `least` to `largest`
};

// Computes the statistics of a tensor of a model opened by Context::inspect(). Reads it twice, some rows at a time.
// Returns the errors of read_rows().
Result<TensorStatistics> tensor_statistics(const Context& context, const Tensor& tensor, std::size_t bins,
                                           const std::atomic<bool>* stop = nullptr);

// Returns the values of rows [first, first + rows) in row-major order. Fails with exit code 2 if the tensor has fewer
// rows or the rows have too many values.
Result<std::vector<float>> tensor_values(const Context& context, const Tensor& tensor, std::uint64_t first,
                                         std::uint64_t rows);

}  // namespace ggufmill
