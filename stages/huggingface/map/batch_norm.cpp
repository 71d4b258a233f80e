#include "stages/huggingface/map/computed_tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {
namespace {

// Appends the values of a concatenation of small tensors.
Status append_values(const Expression& from, std::vector<float>& into) {
  if (from.operation == Operation::kConstant) {
    into.insert(into.end(), from.values.begin(), from.values.end());
  } else if (from.operation == Operation::kConcat || from.operation == Operation::kCast) {
    for (const ExpressionRef& input : from.inputs) {
      BOOST_OUTCOME_TRY(append_values(*input, into));
    }
  } else {
    BOOST_OUTCOME_TRY(const auto values, read_small_values(from));
    into.insert(into.end(), values.begin(), values.end());
  }
  return ok();
}

Result<std::vector<float>> values_of(const Expression& input, std::uint64_t parts) {
  if (input.shape.rank != 1 || input.shape.dims[0] % parts != 0)
    return input_error({}, fmt::format("{} is not {} tensors of one dimension", describe(input.shape), parts));
  std::vector<float> values;
  BOOST_OUTCOME_TRY(append_values(input, values));
  return values;
}

// The values at the beginning of `values`, which has the weights, then as many variances.
std::vector<float> scales(std::span<const float> values, std::size_t count) {
  std::vector<float> result;
  for (std::size_t i = 0; i < count; ++i) {
    const float weight = values[i], variance = values[count + i];
    result.push_back(showing_nonfinite(weight / std::sqrt(variance + 1e-5f), {weight, variance}));
  }
  return result;
}

Result<ExpressionRef> made(std::vector<float> values) {
  const Shape shape{1, {values.size(), 1, 1, 1}};
  return expressions::constant(shape, std::move(values));
}

}  // namespace

Result<ExpressionRef> batch_norm_scale(ExpressionRef input, std::span<const boost::json::value>) {
  BOOST_OUTCOME_TRY(const std::vector<float> values, values_of(*input, 2));
  return made(scales(values, values.size() / 2));
}

Result<ExpressionRef> batch_norm_shift(ExpressionRef input, std::span<const boost::json::value>) {
  BOOST_OUTCOME_TRY(const std::vector<float> values, values_of(*input, 4));
  const std::size_t count = values.size() / 4;
  std::vector<float> result = scales(values, count);
  for (std::size_t i = 0; i < count; ++i) {
    const float moved = values[3 * count + i] * result[i];
    result[i] = values[2 * count + i] - moved;
  }
  return made(std::move(result));
}

}  // namespace ggufmill::huggingface
