// Named operations on tensors that change values.

#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "pipeline/core/json.h"
#include "pipeline/core/rounded.h"
#include "pipeline/core/sleef.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/ternary.h"
#include "stages/huggingface/map/computed_tensors.h"
#include "stages/huggingface/map/operation_arguments.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Computes as the reference does: in F32, but F16 tensors in F16, by rounding every result to F16.
Result<ExpressionRef> mapped(ExpressionRef input, std::string_view function, float parameter) {
  const bool half = input->type->name == "F16";
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(std::move(input), "F32"));
  BOOST_OUTCOME_TRY(ExpressionRef result, expressions::map(std::move(values), *find_map_function(function), parameter));
  return half ? to_type(std::move(result), "F16") : result;
}

Result<ExpressionRef> add(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const float amount, float_argument(a[0]));
  return amount == 0 ? Result<ExpressionRef>(std::move(input)) : mapped(std::move(input), "add", amount);
}

Result<ExpressionRef> multiply(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const float factor, float_argument(a[0]));
  return factor == 1 ? Result<ExpressionRef>(std::move(input)) : mapped(std::move(input), "multiply", factor);
}

Result<ExpressionRef> negate_exp(ExpressionRef input, Arguments) { return mapped(std::move(input), "negate_exp", 0); }

// For small tensors. torch computes groups of 32 values with the functions of SLEEF, in every build, and those that
// remain with the C library's, whose results are nearly always the nearest float. Above its threshold, it returns x.
Result<ExpressionRef> softplus(ExpressionRef input, Arguments) {
  constexpr std::size_t kGroup = 32;
  constexpr float kThreshold = 20;
  std::vector<float> values = input->values;
  if (input->operation != Operation::kConstant) {
    BOOST_OUTCOME_TRY(values, read_small_values(*input));
  }
  const std::size_t in_groups = values.size() / kGroup * kGroup;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (float& x = values[i]; x <= kThreshold)
      x = showing_nonfinite(i < in_groups ? sleef::log1p(sleef::exp(x)) : rounded::softplus(x), {x});
  return expressions::constant(input->shape, std::move(values));
}

// For small tensors. Uses double precision; torch adds in single precision, in an order that depends on the processor,
// so the last bit of the mean may differ.
Result<ExpressionRef> subtract_mean(ExpressionRef input, Arguments) {
  BOOST_OUTCOME_TRY(std::vector<float> values, read_small_values(*input));
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (float& value : values) value -= static_cast<float>(mean);
  return expressions::constant(input->shape, std::move(values));
}

// Negates the rows of every second group of the given size; exact.
Result<ExpressionRef> alternate_signs(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t group, whole_argument(a[0]));
  const Shape shape = input->shape;
  if (group == 0 || shape.rank != 2 || shape.dims[1] % (2 * group) != 0)
    return input_error({}, fmt::format("{} cannot be split into pairs of groups of {} rows", describe(shape), group));
  Shape groups{2, {1, shape.dims[1] / group, 1, 1}};
  std::vector<float> signs(groups.dims[1], 1.0f);
  for (std::size_t i = 1; i < signs.size(); i += 2) signs[i] = -1.0f;
  BOOST_OUTCOME_TRY(ExpressionRef factors, expressions::constant(groups, std::move(signs)));
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(std::move(input), "F32"));
  return expressions::scale_blocks(std::move(values), std::move(factors), shape.dims[0], group);
}

// Drafts with a vocabulary of their own store, for each of its tokens, the difference between the target's id and their
// own. Source: conversion/llama.py of llama.cpp (MIT), which writes the ids as well.
Result<ExpressionRef> absolute_ids(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t limit, whole_argument(a[0]));
  if (input->type->name != "I64" || limit > 1 << 24)  // up to there, F32 represents every id
    return input_error({}, fmt::format("cannot become ids below {}: is {}, not I64", limit, input->type->name));
  BOOST_OUTCOME_TRY(const std::vector<std::byte> bytes, read_small_tensor(*input));
  std::vector<float> ids(bytes.size() / sizeof(std::int64_t));
  std::vector<bool> used(limit);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int64_t difference = 0, id = 0;
    std::memcpy(&difference, &bytes[i * sizeof difference], sizeof difference);
    const bool fits = !__builtin_add_overflow(difference, static_cast<std::int64_t>(i), &id) && id >= 0 &&
                      static_cast<std::uint64_t>(id) < limit;
    if (!fits)
      return input_error({},
                         fmt::format("token {} stands for a token outside the target's vocabulary of {}", i, limit));
    if (used[static_cast<std::size_t>(id)])
      return input_error({}, fmt::format("two tokens stand for the target's token {}", id));
    used[static_cast<std::size_t>(id)] = true;
    ids[i] = static_cast<float>(id);
  }
  BOOST_OUTCOME_TRY(ExpressionRef values, expressions::constant(input->shape, std::move(ids)));
  return to_type(std::move(values), "I64");
}

// Multiplies the values of two tensors of one row each, concatenated along the rows.
Result<ExpressionRef> product_of_rows(ExpressionRef input, Arguments) {
  const Shape shape = input->shape;
  if (shape.rows() != 2) return input_error({}, fmt::format("{} is not two rows", describe(shape)));
  const Shape row{1, {shape.columns(), 1, 1, 1}};
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(std::move(input), "F32"));
  BOOST_OUTCOME_TRY(ExpressionRef factors, expressions::slice(values, 1, 1, 1));
  BOOST_OUTCOME_TRY(values, expressions::slice(std::move(values), 1, 0, 1));
  BOOST_OUTCOME_TRY(values, expressions::scale_blocks(std::move(values), std::move(factors), 1, 1));
  return expressions::reshape(std::move(values), row);
}

// Adds as torch does: in single precision, and for F16 tensors with one rounding to F16 at the end. The second half of
// a row, times the identity matrix, is the second term.
Result<ExpressionRef> add_halves(ExpressionRef input, Arguments) {
  Shape shape = input->shape;
  const std::uint64_t half = shape.dims[0] / 2;
  if (shape.dims[0] != 2 * half || half == 0 || half > expressions::kMaxLowRank)
    return input_error({}, fmt::format("rows of {} values do not have two halves of at most {}", shape.dims[0],
                                       expressions::kMaxLowRank));
  const bool is_half = input->type->name == "F16";
  const Shape rows{2, {shape.dims[0], shape.rows(), 1, 1}};
  std::vector<float> identity(half * half);
  for (std::uint64_t i = 0; i < half; ++i) identity[i * half + i] = 1;
  BOOST_OUTCOME_TRY(ExpressionRef one, expressions::constant(Shape{2, {half, half, 1, 1}}, std::move(identity)));
  BOOST_OUTCOME_TRY(const ExpressionRef all, expressions::reshape(std::move(input), rows));
  BOOST_OUTCOME_TRY(ExpressionRef first, expressions::slice(all, 0, 0, half));
  BOOST_OUTCOME_TRY(ExpressionRef second, expressions::slice(all, 0, half, half));
  BOOST_OUTCOME_TRY(ExpressionRef sum, expressions::low_rank(std::move(first), std::move(one), std::move(second), 1));
  shape.dims[0] = half;
  BOOST_OUTCOME_TRY(sum, expressions::reshape(std::move(sum), shape));
  return is_half ? to_type(std::move(sum), "F16") : sum;
}

// Makes a tensor that llama.cpp requires from a number in the checkpoint.
Result<ExpressionRef> fill(ExpressionRef, Arguments a) {
  constexpr std::uint64_t kMax = 1 << 20;
  BOOST_OUTCOME_TRY(const std::uint64_t count, whole_argument(a[0]));
  BOOST_OUTCOME_TRY(const float value, float_argument(a[1]));
  if (count == 0 || count > kMax)
    return input_error({}, fmt::format("a tensor of {} values; expected 1 to {}", count, kMax));
  return expressions::constant(Shape{1, {count, 1, 1, 1}}, std::vector<float>(count, value));
}

// Makes a tensor of numbers that the map computes, in the place of one that they are computed from.
Result<ExpressionRef> numbers_instead(ExpressionRef, Arguments a) {
  const boost::json::array* const list = a[0].if_array();
  if (!list || list->empty()) return input_error({}, fmt::format("{} is not a list of numbers", shown(a[0])));
  std::vector<float> values;
  for (const boost::json::value& each : *list) {
    BOOST_OUTCOME_TRY(values.emplace_back(), float_argument(each));
  }
  const Shape shape{1, {values.size(), 1, 1, 1}};
  return expressions::constant(shape, std::move(values));
}

// Replaces a row of a matrix by numbers, rounded to the matrix's type.
Result<ExpressionRef> replace_row(ExpressionRef input, Arguments a) {
  const Shape shape = input->shape;
  BOOST_OUTCOME_TRY(const std::uint64_t row, whole_argument(a[0]));
  if (shape.rank != 2 || row >= shape.dims[1])
    return input_error({}, fmt::format("{} has no row {}", describe(shape), row));
  BOOST_OUTCOME_TRY(ExpressionRef values, numbers_instead(nullptr, a.subspan(1)));
  if (values->shape.dims[0] != shape.dims[0])
    return input_error({}, fmt::format("{} values do not replace a row of {}", values->shape.dims[0], describe(shape)));
  BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{2, {shape.dims[0], 1, 1, 1}}));
  BOOST_OUTCOME_TRY(values, to_type(std::move(values), input->type->name));
  std::vector<ExpressionRef> parts;
  const auto keep = [&](std::uint64_t first, std::uint64_t count) -> Status {
    if (count == 0) return ok();
    BOOST_OUTCOME_TRY(parts.emplace_back(), expressions::slice(input, 1, first, count));
    return ok();
  };
  BOOST_OUTCOME_TRY(keep(0, row));
  parts.push_back(std::move(values));
  BOOST_OUTCOME_TRY(keep(row + 1, shape.dims[1] - row - 1));
  return expressions::concat(std::move(parts), 1);
}

constexpr TensorOperation kValueOperations[] = {
    {"absolute_ids", 1, 1,
     "Add its index to every value of a small I64 tensor, and keep that type: the results must be different and "
     "less than the argument.",
     absolute_ids},
    {"add", 1, 1, "Add a number to every value.", add},
    {"add_halves", 0, 1, "Add the second half of every row to the first.", add_halves},
    {"alternate_signs", 1, 1, "Negate every second group of this many rows.", alternate_signs},
    {"batch_norm_scale", 0, 0,
     "Of weight and variance of a batch normalization, concatenated: the weight with the variance in it.",
     batch_norm_scale},
    {"batch_norm_shift", 0, 0,
     "Of weight, variance, bias, and mean of a batch normalization, concatenated: the bias with the others in it.",
     batch_norm_shift},
    {"fill", 2, 2, "Replace it with a tensor of one dimension: this many values, all equal to the number.", fill},
    {"multiply", 1, 1, "Multiply every value by a number.", multiply},
    {"negate_exp", 0, 1, "-exp of every value.", negate_exp},
    {"numbers", 1, 1, "Replace it with a tensor of one dimension: the numbers of a list.", numbers_instead},
    {"product_of_rows", 0, 1, "The product of two rows, value by value, as a tensor of one dimension.",
     product_of_rows},
    {"replace_row", 2, 2, "Replace a row of a matrix: its index, and a list of numbers.", replace_row},
    {"resize_grid", 1, 1, "Resize a square of positions, one per row: the new side.", resize_grid},
    {"softplus", 0, 1, "log(1 + exp(x)) of every value of a small tensor.", softplus},
    {"subtract_mean", 0, 1, "Subtract the mean from every value of a small tensor.", subtract_mean},
    {"ternary", 0, 0, "Round every value to -1, 0, or 1 times the mean of the magnitudes in the whole tensor.",
     [](ExpressionRef input, Arguments) { return ternary(std::move(input)); }},
};

}  // namespace

std::span<const TensorOperation> value_operations() { return kValueOperations; }

}  // namespace ggufmill::huggingface
