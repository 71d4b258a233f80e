#include "stages/huggingface/map/tensor_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/ternary.h"
#include "stages/huggingface/map/batch_norm.h"
#include "stages/huggingface/map/codec_values.h"
#include "stages/huggingface/map/padding.h"
#include "stages/huggingface/map/resize_grid.h"
#include "stages/huggingface/map/sinusoids.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using Arguments = std::span<const json::value>;

Result<std::uint64_t> whole(const json::value& value) {
  const auto number = whole_number(value);
  if (!number || *number < 0) return input_error({}, shown(value) + " is not an integer from 0 to 2^63 - 1");
  return static_cast<std::uint64_t>(*number);
}

Result<float> real(const json::value& value) {
  const auto number = number_value(value);
  if (!number) return input_error({}, "expected a number");
  if (!std::isfinite(static_cast<float>(*number)))
    return input_error({}, fmt::format("{} is too large for F32", *number));
  return static_cast<float>(*number);
}

// Computes as the reference does: in F32, but F16 tensors in F16, by rounding every result to F16.
Result<ExpressionRef> mapped(ExpressionRef input, std::string_view function, float parameter) {
  const bool half = input->type->name == "F16";
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(std::move(input), "F32"));
  BOOST_OUTCOME_TRY(ExpressionRef result, expressions::map(std::move(values), *find_map_function(function), parameter));
  return half ? to_type(std::move(result), "F16") : result;
}

Result<ExpressionRef> add(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const float amount, real(a[0]));
  return amount == 0 ? Result<ExpressionRef>(std::move(input)) : mapped(std::move(input), "add", amount);
}

Result<ExpressionRef> multiply(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const float factor, real(a[0]));
  return factor == 1 ? Result<ExpressionRef>(std::move(input)) : mapped(std::move(input), "multiply", factor);
}

Result<ExpressionRef> negate_exp(ExpressionRef input, Arguments) { return mapped(std::move(input), "negate_exp", 0); }

Result<ExpressionRef> softplus(ExpressionRef input, Arguments) { return mapped(std::move(input), "softplus", 0); }

// Applies an operation on rows to the elements of a one-dimensional tensor: {n} as {1, n}.
Result<ExpressionRef> with_rows(ExpressionRef input, const auto& operation) {
  const Shape shape = input->shape;
  if (shape.rank > 1) return operation(std::move(input));
  Shape column;
  column.rank = 2;
  column.dims[1] = shape.dims[0];
  BOOST_OUTCOME_TRY(ExpressionRef rows, expressions::reshape(std::move(input), column));
  BOOST_OUTCOME_TRY(ExpressionRef result, operation(std::move(rows)));
  return expressions::reshape(std::move(result), shape);
}

// Interleaves the rows of each head: (first half, second half) becomes pairs, as llama.cpp's rotary embedding expects.
// With a second argument, only the first rows consist of heads.
Result<ExpressionRef> pair_halves(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t heads, whole(a[0]));
  std::optional<std::uint64_t> first_rows;
  if (a.size() > 1) {
    BOOST_OUTCOME_TRY(first_rows, whole(a[1]));
  }
  return with_rows(std::move(input), [&](ExpressionRef rows) -> Result<ExpressionRef> {
    const std::uint64_t all = rows->shape.dims[1], count = std::min(first_rows.value_or(all), all);
    if (count < all) {
      BOOST_OUTCOME_TRY(ExpressionRef others, expressions::slice(rows, 1, count, all - count));
      BOOST_OUTCOME_TRY(rows, expressions::slice(std::move(rows), 1, 0, count));
      BOOST_OUTCOME_TRY(rows, pair_halves(std::move(rows), a.first(1)));
      return expressions::concat({std::move(rows), std::move(others)}, 1);
    }
    if (heads == 0 || heads > count || count % (2 * heads) != 0)
      return input_error(
          {}, fmt::format("{} rows cannot be split into {} heads with an even number of rows", count, heads));
    return expressions::reorder_rows(std::move(rows), {count / heads / 2, 2, heads}, {1, 0, 2});
  });
}

// Treats the rows as a grid, fastest axis first, and permutes its axes.
Result<ExpressionRef> reorder_rows(ExpressionRef input, Arguments a) {
  const json::array *factors = a[0].if_array(), *order = a[1].if_array();
  if (!factors || !order) return input_error({}, "reorder_rows takes two lists");
  std::vector<std::uint64_t> grid;
  std::vector<std::uint32_t> axes;
  for (const json::value& each : *factors) {
    BOOST_OUTCOME_TRY(grid.emplace_back(), whole(each));
  }
  for (const json::value& each : *order) {
    BOOST_OUTCOME_TRY(const std::uint64_t axis, whole(each));
    axes.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(axis, UINT32_MAX)));
  }
  return with_rows(std::move(input), [&](ExpressionRef rows) {
    return expressions::reorder_rows(std::move(rows), std::move(grid), std::move(axes));
  });
}

Result<ExpressionRef> transpose(ExpressionRef input, Arguments a) {
  std::vector<std::uint32_t> order{1, 0};
  if (!a.empty() && a[0].is_array()) {
    order.clear();
    for (const json::value& each : a[0].get_array()) {
      BOOST_OUTCOME_TRY(const std::uint64_t axis, whole(each));
      order.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(axis, UINT32_MAX)));
    }
  }
  for (std::uint32_t axis = static_cast<std::uint32_t>(order.size()); axis < input->shape.rank; ++axis)
    order.push_back(axis);
  return expressions::transpose(std::move(input), std::move(order));
}

Result<ExpressionRef> reshape(ExpressionRef input, Arguments a) {
  const json::array* dims = a[0].if_array();
  if (!dims || dims->empty() || dims->size() > 4)
    return input_error({}, "reshape takes a list of one to four dimensions");
  Shape shape;
  for (const json::value& each : *dims) {
    BOOST_OUTCOME_TRY(shape.dims[shape.rank], whole(each));
    ++shape.rank;
  }
  return expressions::reshape(std::move(input), shape);
}

// Reshapes the rows to a grid of up to three factors, fastest first; for one dimension, its elements.
Result<ExpressionRef> grid(ExpressionRef input, Arguments a) {
  Shape shape;
  shape.rank = 1;
  shape.dims[0] = input->shape.rank == 1 ? 1 : input->shape.dims[0];
  for (const json::value& each : a) {
    BOOST_OUTCOME_TRY(shape.dims[shape.rank], whole(each));
    ++shape.rank;
  }
  return expressions::reshape(std::move(input), shape);
}

// Reshapes a one-dimensional tensor to rows of one column, or to more dimensions of 1 before and after its own.
Result<ExpressionRef> column(ExpressionRef input, Arguments a) {
  std::uint64_t before = 1, after = 0;
  if (!a.empty()) {
    BOOST_OUTCOME_TRY(before, whole(a[0]));
  }
  if (a.size() > 1) {
    BOOST_OUTCOME_TRY(after, whole(a[1]));
  }
  if (input->shape.rank != 1)
    return input_error({}, fmt::format("{} has more than one dimension", describe(input->shape)));
  constexpr std::uint64_t kMax = 3;
  if (before > kMax || after > kMax - before)
    return input_error({}, fmt::format("{} and {} dimensions of 1; expected at most {}", before, after, kMax));
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(before + 1 + after);
  shape.dims[before] = input->shape.dims[0];
  return expressions::reshape(std::move(input), shape);
}

Result<ExpressionRef> flatten(ExpressionRef input, Arguments) {
  const Shape shape{1, {input->shape.elements(), 1, 1, 1}};
  return expressions::reshape(std::move(input), shape);
}

// Merges all dimensions but the columns; columns of length 1 are removed.
Result<ExpressionRef> rows(ExpressionRef input, Arguments) {
  Shape shape;
  shape.rank = input->shape.dims[0] == 1 ? 1 : 2;
  shape.dims[0] = input->shape.dims[0];
  shape.dims[shape.rank - 1] = input->shape.rows();
  return expressions::reshape(std::move(input), shape);
}

Result<ExpressionRef> squeeze(ExpressionRef input, Arguments a) {
  std::optional<std::uint64_t> only;
  if (!a.empty()) {
    BOOST_OUTCOME_TRY(only, whole(a[0]));
    if (*only >= input->shape.rank || input->shape.dims[*only] != 1)
      return input_error({}, fmt::format("dimension {} of {} is not 1", *only, describe(input->shape)));
  }
  Shape shape;
  for (std::uint32_t d = 0; d < input->shape.rank; ++d)
    if (only ? d != *only : input->shape.dims[d] != 1) shape.dims[shape.rank++] = input->shape.dims[d];
  if (shape.rank == 0) shape.rank = 1;
  return expressions::reshape(std::move(input), shape);
}

Result<ExpressionRef> slice(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t axis, whole(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t first, whole(a[1]));
  if (axis >= input->shape.rank)
    return input_error({}, fmt::format("{} has no dimension {}", describe(input->shape), axis));
  std::uint64_t count = input->shape.dims[axis] - std::min(first, input->shape.dims[axis]);
  if (a.size() > 2) {
    BOOST_OUTCOME_TRY(count, whole(a[2]));
  }
  return expressions::slice(std::move(input), static_cast<std::uint32_t>(axis), first, count);
}

// Keeps at most the given number of rows, to drop those beyond the vocabulary; of one dimension, of its elements.
Result<ExpressionRef> first_rows(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t rows, whole(a[0]));
  const std::uint32_t axis = input->shape.rank == 1 ? 0 : 1;
  const std::uint64_t have = input->shape.dims[axis];
  return expressions::slice(std::move(input), axis, 0, std::min(rows, have));
}

// Takes one of several equal parts of a dimension.
Result<ExpressionRef> part(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t axis, whole(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t index, whole(a[1]));
  BOOST_OUTCOME_TRY(const std::uint64_t parts, whole(a[2]));
  if (axis >= input->shape.rank)
    return input_error({}, fmt::format("{} has no dimension {}", describe(input->shape), axis));
  const std::uint64_t size = input->shape.dims[axis];
  if (parts == 0 || size % parts != 0 || index >= parts)
    return input_error(
        {}, fmt::format("dimension {} of {} cannot be split into {} equal parts", axis, describe(input->shape), parts));
  return expressions::slice(std::move(input), static_cast<std::uint32_t>(axis), index * (size / parts), size / parts);
}

// Takes every second row or column: the even or the odd ones.
Result<ExpressionRef> alternate(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t axis, whole(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t index, whole(a[1]));
  const Shape shape = input->shape;
  if (axis >= shape.rank || shape.dims[axis] % 2 != 0 || index > 1 || shape.rank >= 4)
    return input_error({}, fmt::format("{} has no pairs in dimension {}", describe(shape), axis));
  Shape pairs;  // with the dimension split into (2, half)
  for (std::uint32_t d = 0; d < shape.rank; ++d) {
    if (d == axis) pairs.dims[pairs.rank++] = 2;
    pairs.dims[pairs.rank++] = d == axis ? shape.dims[d] / 2 : shape.dims[d];
  }
  Shape half = shape;
  half.dims[axis] /= 2;
  BOOST_OUTCOME_TRY(ExpressionRef split, expressions::reshape(std::move(input), pairs));
  BOOST_OUTCOME_TRY(ExpressionRef one,
                    expressions::slice(std::move(split), static_cast<std::uint32_t>(axis), index, 1));
  return expressions::reshape(std::move(one), half);
}

// Splits the pairs in the first rows of every head into two halves; the other rows stay in place.
Result<ExpressionRef> split_pairs(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t heads, whole(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t rotary, whole(a[1]));
  return with_rows(std::move(input), [&](ExpressionRef whole_tensor) -> Result<ExpressionRef> {
    const Shape shape = whole_tensor->shape;
    const std::uint64_t count = shape.dims[1], size = heads == 0 ? 0 : count / heads;
    if (heads == 0 || count % heads != 0 || rotary % 2 != 0 || rotary > size)
      return input_error(
          {}, fmt::format("{} rows cannot be split into {} heads with {} rows of pairs", count, heads, rotary));
    const Shape by_head{3, {shape.dims[0], size, heads, 1}}, pairs{4, {shape.dims[0], 2, rotary / 2, heads}};
    BOOST_OUTCOME_TRY(ExpressionRef split, expressions::reshape(std::move(whole_tensor), by_head));
    BOOST_OUTCOME_TRY(ExpressionRef rest, expressions::slice(split, 1, rotary, size - rotary));
    BOOST_OUTCOME_TRY(ExpressionRef turned, expressions::slice(std::move(split), 1, 0, rotary));
    BOOST_OUTCOME_TRY(turned, expressions::reshape(std::move(turned), pairs));
    BOOST_OUTCOME_TRY(turned, expressions::transpose(std::move(turned), {0, 2, 1, 3}));
    BOOST_OUTCOME_TRY(turned, expressions::reshape(std::move(turned), Shape{3, {shape.dims[0], rotary, heads, 1}}));
    if (rotary < size) {
      BOOST_OUTCOME_TRY(turned, expressions::concat({std::move(turned), std::move(rest)}, 1));
    }
    return expressions::reshape(std::move(turned), shape);
  });
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
  BOOST_OUTCOME_TRY(const std::uint64_t group, whole(a[0]));
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
  BOOST_OUTCOME_TRY(const std::uint64_t limit, whole(a[0]));
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

// Keeps the lower half of each value, as a cast of torch does.
Result<ExpressionRef> int32(ExpressionRef input, Arguments) {
  if (input->type->name == "I32") return input;
  const Extent* extent = input->as_extent();
  if (input->type->name != "I64" || !extent)
    return input_error({},
                       fmt::format("{} of {} is not a tensor of integers", describe(input->shape), input->type->name));
  Shape halves = input->shape;
  halves.dims[0] *= 2;
  BOOST_OUTCOME_TRY(ExpressionRef words, expressions::extent(type_named("I32"), halves, *extent));
  constexpr std::int64_t kColumns = 0, kLower = 0;
  const json::value arguments[] = {kColumns, kLower};
  return alternate(std::move(words), arguments);
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
  BOOST_OUTCOME_TRY(const std::uint64_t count, whole(a[0]));
  BOOST_OUTCOME_TRY(const float value, real(a[1]));
  if (count == 0 || count > kMax)
    return input_error({}, fmt::format("a tensor of {} values; expected 1 to {}", count, kMax));
  return expressions::constant(Shape{1, {count, 1, 1, 1}}, std::vector<float>(count, value));
}

// The operation `function`, which takes one integer.
template <Result<ExpressionRef> (*function)(ExpressionRef, std::uint64_t)>
Result<ExpressionRef> with_count(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t count, whole(a[0]));
  return function(std::move(input), count);
}

Result<ExpressionRef> of_columns(ExpressionRef input, std::uint64_t count) {
  if (input->shape.columns() == count) return input;
  return input_error({}, fmt::format("it has rows of {} values, expected {}", input->shape.columns(), count));
}

constexpr TensorOperation kOperations[] = {
    {"absolute_ids", 1, 1,
     "Add its index to every value of a small I64 tensor, and keep that type: the results must be different and "
     "less than the argument.",
     absolute_ids},
    {"add", 1, 1, "Add a number to every value.", add},
    {"add_halves", 0, 1, "Add the second half of every row to the first.", add_halves},
    {"alternate", 2, 2, "Every second index of a dimension: even (0) or odd (1) ones.", alternate},
    {"alternate_signs", 1, 1, "Negate every second group of this many rows.", alternate_signs},
    {"batch_norm_scale", 0, 0,
     "Of weight and variance of a batch normalization, concatenated: the weight with the variance in it.",
     batch_norm_scale},
    {"batch_norm_shift", 0, 0,
     "Of weight, variance, bias, and mean of a batch normalization, concatenated: the bias with the others in it.",
     batch_norm_shift},
    {"column", 0, 2,
     "Turn a tensor of one dimension into rows of one column, or give it this many dimensions of 1 before and "
     "after its own.",
     column},
    {"divide_rows", 2, 2,
     "Of rows and then one divisor for each, concatenated in one dimension: the rows divided by them. Arguments: "
     "number "
     "of rows, least divisor.",
     divide_rows},
    {"exp", 0, 1, "exp of every value of a tensor of F32.", exp_of},
    {"extend_front", 1, 1, "Insert this many entries of zeros before the others of the last dimension.",
     with_count<extend_front>},
    {"fill", 2, 2, "Replace it with a tensor of one dimension: this many values, all equal to the number.", fill},
    {"first_rows", 1, 1, "Keep at most this many rows; of a tensor of one dimension, values.", first_rows},
    {"flatten", 0, 1, "The same values in one dimension.", flatten},
    {"grid", 1, 3, "Arrange the rows as a grid of these factors, the fastest first.", grid},
    {"int32", 0, 1, "I64 as I32.", int32},
    {"multiply", 1, 1, "Multiply every value by a number.", multiply},
    {"negate_exp", 0, 1, "-exp of every value.", negate_exp},
    {"of_columns", 1, 1, "The tensor as it is, whose rows must have this many values.", with_count<of_columns>},
    {"pad_rows", 1, 1, "Append rows of zeros up to this number.", with_count<pad_rows>},
    {"pair_halves", 1, 2,
     "Interleave the halves of every head's rows: number of heads, and of the rows that they have together (default: "
     "all).",
     pair_halves},
    {"part", 3, 3, "One of several equal parts of a dimension: dimension, index, number of parts.", part},
    {"product_of_rows", 0, 1, "The product of two rows, value by value, as a tensor of one dimension.",
     product_of_rows},
    {"reciprocal_exp", 1, 1, "1 / (exp(x) + a number) of every value x of a tensor of F32.", reciprocal_exp},
    {"reorder_rows", 2, 2, "Arrange the rows as a grid of factors, the fastest first, and reorder its axes.",
     reorder_rows},
    {"reshape", 1, 1, "The same values with other dimensions.", reshape},
    {"repeat_rows", 1, 1, "Repeat the rows this many times.", with_count<repeat_rows>},
    {"resize_grid", 1, 1, "Resize a square of positions, one per row: the new side.", resize_grid},
    {"rows", 0, 1, "Merge all dimensions except the columns.", rows},
    {"slice", 2, 3, "Slice of a dimension: dimension, first index, count (default: all).", slice},
    {"softplus", 0, 1, "log(1 + exp(x)) of every value.", softplus},
    {"split_pairs", 2, 2, "Split this many rows of every head, which are pairs, into two halves: heads, rows.",
     split_pairs},
    {"squeeze", 0, 1, "Remove all dimensions of 1, or the given one.", squeeze},
    {"subtract_mean", 0, 1, "Subtract the mean from every value of a small tensor.", subtract_mean},
    {"ternary", 0, 0, "Round every value to -1, 0, or 1 times the mean of the magnitudes in the whole tensor.",
     [](ExpressionRef input, Arguments) { return ternary(std::move(input)); }},
    {"transpose", 0, 1, "Swap rows and columns, or put the dimensions in the order of the list.", transpose},
};

constexpr std::uint64_t kMaxRotary = 65536;

struct RopeScaling {
  std::uint64_t dimension = 0;
  double base = 0, factor = 0, low = 0, high = 0, context = 0;
  float frequency(std::uint64_t i) const {
    const float exponent = static_cast<float>(i) / static_cast<float>(dimension);
    return 1.0f / std::pow(static_cast<float>(base), exponent);
  }
};

Result<RopeScaling> rope_scaling(Arguments a) {
  RopeScaling scaling;
  BOOST_OUTCOME_TRY(scaling.dimension, whole(a[0]));
  if (scaling.dimension == 0 || scaling.dimension > kMaxRotary)
    return input_error({}, fmt::format("a head has {} dimensions", scaling.dimension));
  double* const numbers[] = {&scaling.base, &scaling.factor, &scaling.low, &scaling.high, &scaling.context};
  for (std::size_t i = 0; i < 5; ++i) {
    const auto number = a[i + 1].is_bool() ? std::nullopt : number_value(a[i + 1]);
    if (!number) return input_error({}, "llama3_rope_factors takes numbers");
    *numbers[i] = *number;
  }
  return scaling;
}

Result<ExpressionRef> factors_of(const RopeScaling& from, std::vector<float> values) {
  for (const float value : values)
    if (!(value > 0 && std::isfinite(value)))
      return input_error({}, fmt::format("base {}, factor {}, low {}, high {}, and context {} give the factor {}",
                                         from.base, from.factor, from.low, from.high, from.context, value));
  Shape shape;
  shape.rank = 1;
  shape.dims[0] = values.size();
  return expressions::constant(shape, std::move(values));
}

// Returns the factors by which llama.cpp divides the rotary frequencies, as in Llama 3.1: low frequencies are divided
// by `factor`, and those in the middle are blended smoothly. Every step is in single precision, as torch computes it.
// Source: conversion/llama.py of llama.cpp (MIT).
Result<ExpressionRef> llama3_rope_factors(Arguments a) {
  BOOST_OUTCOME_TRY(const RopeScaling scaling, rope_scaling(a));
  const double longest = scaling.context / scaling.low, shortest = scaling.context / scaling.high;
  std::vector<float> values;
  for (std::uint64_t i = 0; i < scaling.dimension; i += 2) {
    // torch divides a scalar by a tensor as reciprocal, then product.
    const float length = (1.0f / scaling.frequency(i)) * static_cast<float>(2 * std::numbers::pi);
    if (length < static_cast<float>(shortest)) {
      values.push_back(1);
    } else if (length > static_cast<float>(longest)) {
      values.push_back(static_cast<float>(scaling.factor));
    } else {
      float smooth = (1.0f / length) * static_cast<float>(scaling.context);
      smooth = (smooth - static_cast<float>(scaling.low)) / static_cast<float>(scaling.high - scaling.low);
      const float mixed = (1.0f - smooth) / static_cast<float>(scaling.factor) + smooth;
      values.push_back(1.0f / mixed);
    }
  }
  return factors_of(scaling, std::move(values));
}

// The same for rotary embedding that covers only the first dimensions of a head, and only in some layers: the factor
// is 1 for the other dimensions. In double precision, from single-precision frequencies. Source: conversion/step3.py
// of llama.cpp (MIT).
Result<ExpressionRef> llama3_rope_factors_padded(Arguments a) {
  BOOST_OUTCOME_TRY(const RopeScaling scaling, rope_scaling(a.first(6)));
  BOOST_OUTCOME_TRY(const std::uint64_t head, whole(a[6]));
  if (head < scaling.dimension || head > kMaxRotary)
    return input_error({}, fmt::format("{} dimensions in a head of {}", scaling.dimension, head));
  std::vector<float> values;
  for (std::uint64_t i = 0; i < scaling.dimension; i += 2) {
    const double length = 2 * std::numbers::pi / static_cast<double>(scaling.frequency(i));
    double value = 1;
    if (length > scaling.context / scaling.low) {
      value = scaling.factor;
    } else if (length >= scaling.context / scaling.high) {
      const double smooth = (scaling.context / length - scaling.low) / (scaling.high - scaling.low);
      value = 1 / ((1 - smooth) / scaling.factor + smooth);
    }
    values.push_back(static_cast<float>(value));
  }
  values.resize(std::max<std::size_t>(values.size(), head / 2), 1);
  return factors_of(scaling, std::move(values));
}

Result<ExpressionRef> numbers(Arguments a) {
  const json::array* list = a[0].if_array();
  if (!list || list->empty()) return input_error({}, "expected a list of numbers");
  std::vector<float> values;
  for (const json::value& each : *list) {
    BOOST_OUTCOME_TRY(values.emplace_back(), real(each));
  }
  if (a.size() > 1) {
    BOOST_OUTCOME_TRY(const std::uint64_t needed, whole(a[1]));
    if (values.size() != needed) return input_error({}, fmt::format("{} numbers, expected {}", values.size(), needed));
  }
  Shape shape;
  shape.rank = 1;
  shape.dims[0] = values.size();
  return expressions::constant(shape, std::move(values));
}

constexpr TensorFunction kTensorFunctions[] = {
    {"llama3_rope_factors", 6, 6,
     "Rotary embedding of Llama 3.1: dimensions of a head, base, factor, low, high, context.", llama3_rope_factors},
    {"llama3_rope_factors_padded", 7, 7,
     "The same for the first dimensions of a head: their number, base, factor, low, high, context, all dimensions of a "
     "head.",
     llama3_rope_factors_padded},
    {"numbers", 1, 2, "Numbers of a list; the second argument is their required count.", numbers},
    {"sinusoids", 2, 2, "Sines and cosines of positions: their number, and values of each position.", sinusoids},
};

}  // namespace

std::span<const TensorOperation> tensor_operations() { return kOperations; }
std::span<const TensorFunction> tensor_functions() { return kTensorFunctions; }

}  // namespace ggufmill::huggingface
