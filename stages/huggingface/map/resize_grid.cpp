#include "stages/huggingface/map/computed_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {
namespace {

// The two positions between which a position of the result lies, and their weights.
struct Between {
  std::uint64_t low = 0, high = 0;
  float low_weight = 0, high_weight = 0;
};

Between between(std::uint64_t at, std::uint64_t from, std::uint64_t to) {
  const float scale = to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0;
  const float place = scale * static_cast<float>(at);
  Between result;
  result.low = std::min(static_cast<std::uint64_t>(place), from - 1);
  result.high = std::min(result.low + 1, from - 1);
  result.high_weight = std::clamp(place - static_cast<float>(result.low), 0.0f, 1.0f);
  result.low_weight = 1 - result.high_weight;
  return result;
}

// Reads a row of a tensor in a file.
Result<std::vector<float>> row_of(const Expression& tensor, const Extent& whole, std::uint64_t row) {
  Extent part = whole;
  part.bytes = tensor.row_bytes();
  part.offset += row * part.bytes;
  BOOST_OUTCOME_TRY(const ExpressionRef one,
                    expressions::extent(*tensor.type, Shape{1, {tensor.shape.columns(), 1, 1, 1}}, std::move(part)));
  return read_small_values(*one);
}

}  // namespace

Result<ExpressionRef> resize_grid(ExpressionRef input, std::span<const boost::json::value> arguments) {
  constexpr std::int64_t kMaxSide = 4096;
  constexpr std::uint64_t kMaxValues = 1 << 24;
  const Shape shape = input->shape;
  const std::int64_t asked = whole_number(arguments[0]).value_or(0);
  const auto side = static_cast<std::uint64_t>(std::llround(std::sqrt(static_cast<double>(shape.rows()))));
  if (asked < 1 || asked > kMaxSide)
    return input_error({}, fmt::format("{} is not a side from 1 to {}", shown(arguments[0]), kMaxSide));
  const auto to = static_cast<std::uint64_t>(asked);
  if (side * side != shape.rows() || shape.rank < 2 || shape.dims[1] != shape.rows())
    return input_error({}, fmt::format("{} does not have the positions of a square", describe(shape)));
  if (side == to) return input;
  const std::uint64_t columns = shape.dims[0];
  if (to * to > kMaxValues / columns)
    return input_error({},
                       fmt::format("{} rows of {} values; expected at most {} values", to * to, columns, kMaxValues));
  const Extent* const whole = input->as_extent();
  if (!whole) return input_error({}, "other operations come before resize_grid, which reads a tensor in a file");
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(to * to * columns));
  for (std::uint64_t y = 0; y < to; ++y)
    for (std::uint64_t x = 0; x < to; ++x) {
      const Between v = between(y, side, to), h = between(x, side, to);
      BOOST_OUTCOME_TRY(const auto a, row_of(*input, *whole, v.low * side + h.low));
      BOOST_OUTCOME_TRY(const auto b, row_of(*input, *whole, v.low * side + h.high));
      BOOST_OUTCOME_TRY(const auto c, row_of(*input, *whole, v.high * side + h.low));
      BOOST_OUTCOME_TRY(const auto d, row_of(*input, *whole, v.high * side + h.high));
      const float of_a = v.low_weight * h.low_weight, of_b = v.low_weight * h.high_weight;
      const float of_c = v.high_weight * h.low_weight, of_d = v.high_weight * h.high_weight;
      for (std::size_t i = 0; i < a.size(); ++i)
        values.push_back(std::fmaf(of_a, a[i], std::fmaf(of_b, b[i], std::fmaf(of_d, d[i], of_c * c[i]))));
    }
  Shape resized = shape;
  resized.dims[1] = to * to;
  return expressions::constant(resized, std::move(values));
}

}  // namespace ggufmill::huggingface
