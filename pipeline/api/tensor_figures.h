#pragma once
// What the values of a tensor are like.

#include <atomic>
#include <cstdint>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

class Context;

struct TensorFigures {
  std::uint64_t count = 0, zeros = 0, not_finite = 0;  // count: of all values
  // Of the finite ones; 0 where there is none.
  double least = 0, largest = 0, mean = 0;
  double deviation = 0;                  // sqrt(mean (x - mean of all)^2)
  std::vector<std::uint64_t> histogram;  // in equal steps from `least` to `largest`
};

// Reads the tensor of a model of Context::inspect() twice, some rows at a time. Errors are those of read_rows().
Result<TensorFigures> tensor_figures(const Context& context, const Tensor& tensor, std::size_t bins,
                                     const std::atomic<bool>* stop = nullptr);

// The values of rows [first, first + rows), row after row. Exit code 2 where the tensor has fewer.
Result<std::vector<float>> tensor_values(const Context& context, const Tensor& tensor, std::uint64_t first,
                                         std::uint64_t rows);

}  // namespace ggufmill
