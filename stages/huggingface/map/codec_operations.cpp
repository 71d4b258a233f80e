// Named operations on the tensors of audio codecs: activations and codebooks. They read the values, which are F32 in
// files, and compute in single precision like torch.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "pipeline/core/rounded.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/operation_arguments.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::uint64_t kMaxCodecValues = 1 << 24;

// Appends the values of a concatenation of tensors, reading each in pieces.
Status append_f32(const Expression& from, std::vector<float>& into) {
  constexpr std::uint64_t kPiece = 1 << 18;
  if (from.operation == Operation::kConstant) {
    into.insert(into.end(), from.values.begin(), from.values.end());
    return ok();
  }
  if (from.operation == Operation::kConcat) {
    for (const ExpressionRef& input : from.inputs) {
      BOOST_OUTCOME_TRY(append_f32(*input, into));
    }
    return ok();
  }
  const std::uint64_t count = from.shape.elements();
  for (std::uint64_t first = 0; first < count; first += kPiece) {
    BOOST_OUTCOME_TRY(const auto values, read_small_values(from, first, std::min(kPiece, count - first)));
    into.insert(into.end(), values.begin(), values.end());
  }
  return ok();
}

Result<std::vector<float>> f32_values(const Expression& input) {
  if (!input.type->is_f32()) return input_error({}, fmt::format("is {}, not F32", input.type->name));
  if (input.shape.elements() > kMaxCodecValues)
    return input_error({}, fmt::format("{} has more than {} values", describe(input.shape), kMaxCodecValues));
  std::vector<float> values;
  BOOST_OUTCOME_TRY(append_f32(input, values));
  return values;
}

Result<ExpressionRef> each_value(const Expression& input, const auto& function) {
  BOOST_OUTCOME_TRY(std::vector<float> values, f32_values(input));
  for (float& value : values) value = showing_nonfinite(function(value), {value});
  return expressions::constant(input.shape, std::move(values));
}

// exp(x) of every value.
Result<ExpressionRef> exp_of(ExpressionRef input, Arguments) {
  return each_value(*input, [](float x) { return rounded::exp(x); });
}

// 1 / (exp(x) + a) of every value; the argument is a.
Result<ExpressionRef> reciprocal_exp(ExpressionRef input, Arguments arguments) {
  const auto added = static_cast<float>(number_value(arguments[0]).value_or(0));
  return each_value(*input, [&](float x) { return 1.0f / (rounded::exp(x) + added); });
}

// Divides rows by one number each. `input`: one dimension, all rows followed by their divisors. Arguments: the number
// of rows, and the least divisor, which replaces smaller ones. Returns {columns, rows}.
Result<ExpressionRef> divide_rows(ExpressionRef input, Arguments arguments) {
  const std::int64_t asked = whole_number(arguments[0]).value_or(0);
  const auto least = static_cast<float>(number_value(arguments[1]).value_or(0));
  const std::uint64_t count = input->shape.elements(), rows = asked > 0 ? static_cast<std::uint64_t>(asked) : 0;
  if (input->shape.rank != 1 || rows == 0 || count % rows != 0 || count / rows < 2)
    return input_error(
        {}, fmt::format("{} does not have {} rows and their divisors", describe(input->shape), shown(arguments[0])));
  BOOST_OUTCOME_TRY(std::vector<float> values, f32_values(*input));
  const std::uint64_t columns = count / rows - 1;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const float given = values[rows * columns + row], divisor = std::max(given, least);
    for (std::uint64_t i = 0; i < columns; ++i) {
      float& value = values[row * columns + i];
      value = showing_nonfinite(value / divisor, {given});
    }
  }
  values.resize(rows * columns);
  return expressions::constant(Shape{2, {columns, rows, 1, 1}}, std::move(values));
}

constexpr TensorOperation kCodecOperations[] = {
    {"divide_rows", 2, 2,
     "Of rows and then one divisor for each, concatenated in one dimension: the rows divided by them. Arguments: "
     "number of rows, least divisor.",
     divide_rows},
    {"exp", 0, 1, "exp of every value of a tensor of F32.", exp_of},
    {"reciprocal_exp", 1, 1, "1 / (exp(x) + a number) of every value x of a tensor of F32.", reciprocal_exp},
};

}  // namespace

std::span<const TensorOperation> codec_operations() { return kCodecOperations; }

}  // namespace ggufmill::huggingface
