#include "stages/huggingface/map/padding.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {
namespace {

// Returns zeros of the input's type and shape, except for `count` entries in the dimension `axis`.
Result<ExpressionRef> zeros_for(const Expression& input, std::uint32_t axis, std::uint64_t count) {
  constexpr std::uint64_t kMax = 1 << 24;
  Shape shape = input.shape;
  shape.dims[axis] = 1;
  if (const std::uint64_t entry = shape.elements(); entry == 0 || count > kMax / entry)
    return input_error({}, fmt::format("{} rows of zeros are missing in {}, which are more than {} values", count,
                                       describe(input.shape), kMax));
  shape.rank = std::max(shape.rank, axis + 1);
  shape.dims[axis] = count;
  BOOST_OUTCOME_TRY(ExpressionRef zeros, expressions::constant(shape, std::vector<float>(shape.elements())));
  return to_type(std::move(zeros), input.type->name);
}

}  // namespace

Result<ExpressionRef> pad_rows(ExpressionRef input, std::uint64_t rows) {
  const std::uint64_t have = input->shape.dims[1];
  if (have >= rows) return input;
  BOOST_OUTCOME_TRY(ExpressionRef zeros, zeros_for(*input, 1, rows - have));
  return expressions::concat({std::move(input), std::move(zeros)}, 1);
}

Result<ExpressionRef> extend_front(ExpressionRef input, std::uint64_t count) {
  const std::uint32_t axis = input->shape.rank - 1;
  BOOST_OUTCOME_TRY(ExpressionRef zeros, zeros_for(*input, axis, count));
  return expressions::concat({std::move(zeros), std::move(input)}, axis);
}

Result<ExpressionRef> repeat_rows(ExpressionRef input, std::uint64_t count) {
  constexpr std::uint64_t kMax = 1 << 16;
  if (count == 0 || count > kMax) return input_error({}, fmt::format("{} copies; expected 1 to {}", count, kMax));
  return expressions::concat(std::vector<ExpressionRef>(static_cast<std::size_t>(count), input), 1);
}

}  // namespace ggufmill::huggingface
