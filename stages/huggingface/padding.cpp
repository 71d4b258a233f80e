#include "stages/huggingface/padding.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "stages/huggingface/tensor_operations.h"

namespace ggufmill::huggingface {

Result<ExpressionRef> pad_rows(ExpressionRef input, std::uint64_t rows) {
  constexpr std::uint64_t kMax = 1 << 24;
  Shape shape = input->shape;
  const std::uint64_t have = shape.dims[1];
  if (have >= rows) return input;
  shape.dims[1] = 1;
  if (const std::uint64_t entry = shape.elements(); entry == 0 || rows - have > kMax / entry)
    return input_error({}, fmt::format("{} rows of zeros are missing in {}, which are more than {} values", rows - have,
                                       describe(input->shape), kMax));
  shape.rank = std::max(shape.rank, 2U);
  shape.dims[1] = rows - have;
  BOOST_OUTCOME_TRY(ExpressionRef zeros, expressions::constant(shape, std::vector<float>(shape.elements())));
  BOOST_OUTCOME_TRY(zeros, to_type(std::move(zeros), input->type->name));
  return expressions::concat({std::move(input), std::move(zeros)}, 1);
}

Result<ExpressionRef> repeat_rows(ExpressionRef input, std::uint64_t count) {
  constexpr std::uint64_t kMax = 1 << 16;
  if (count == 0 || count > kMax) return input_error({}, fmt::format("{} copies; expected 1 to {}", count, kMax));
  return expressions::concat(std::vector<ExpressionRef>(static_cast<std::size_t>(count), input), 1);
}

}  // namespace ggufmill::huggingface
