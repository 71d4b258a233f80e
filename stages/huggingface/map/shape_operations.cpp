// Named operations on tensors that change shapes, or the order or number of values, but no value.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/operation_arguments.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

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
  BOOST_OUTCOME_TRY(const std::uint64_t heads, whole_argument(a[0]));
  std::optional<std::uint64_t> first_rows;
  if (a.size() > 1) {
    BOOST_OUTCOME_TRY(first_rows, whole_argument(a[1]));
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
    BOOST_OUTCOME_TRY(grid.emplace_back(), whole_argument(each));
  }
  for (const json::value& each : *order) {
    BOOST_OUTCOME_TRY(const std::uint64_t axis, whole_argument(each));
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
      BOOST_OUTCOME_TRY(const std::uint64_t axis, whole_argument(each));
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
    BOOST_OUTCOME_TRY(shape.dims[shape.rank], whole_argument(each));
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
    BOOST_OUTCOME_TRY(shape.dims[shape.rank], whole_argument(each));
    ++shape.rank;
  }
  return expressions::reshape(std::move(input), shape);
}

// Reshapes a one-dimensional tensor to rows of one column, or to more dimensions of 1 before and after its own.
Result<ExpressionRef> column(ExpressionRef input, Arguments a) {
  std::uint64_t before = 1, after = 0;
  if (!a.empty()) {
    BOOST_OUTCOME_TRY(before, whole_argument(a[0]));
  }
  if (a.size() > 1) {
    BOOST_OUTCOME_TRY(after, whole_argument(a[1]));
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
    BOOST_OUTCOME_TRY(only, whole_argument(a[0]));
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
  BOOST_OUTCOME_TRY(const std::uint64_t axis, whole_argument(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t first, whole_argument(a[1]));
  if (axis >= input->shape.rank)
    return input_error({}, fmt::format("{} has no dimension {}", describe(input->shape), axis));
  std::uint64_t count = input->shape.dims[axis] - std::min(first, input->shape.dims[axis]);
  if (a.size() > 2) {
    BOOST_OUTCOME_TRY(count, whole_argument(a[2]));
  }
  return expressions::slice(std::move(input), static_cast<std::uint32_t>(axis), first, count);
}

// Keeps at most the given number of rows, to drop those beyond the vocabulary; of one dimension, of its elements.
Result<ExpressionRef> first_rows(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t rows, whole_argument(a[0]));
  const std::uint32_t axis = input->shape.rank == 1 ? 0 : 1;
  const std::uint64_t have = input->shape.dims[axis];
  return expressions::slice(std::move(input), axis, 0, std::min(rows, have));
}

// Takes one of several equal parts of a dimension.
Result<ExpressionRef> part(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t axis, whole_argument(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t index, whole_argument(a[1]));
  BOOST_OUTCOME_TRY(const std::uint64_t parts, whole_argument(a[2]));
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
  BOOST_OUTCOME_TRY(const std::uint64_t axis, whole_argument(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t index, whole_argument(a[1]));
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
  BOOST_OUTCOME_TRY(const std::uint64_t heads, whole_argument(a[0]));
  BOOST_OUTCOME_TRY(const std::uint64_t rotary, whole_argument(a[1]));
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

// Appends zeros to dimension 1 until it has `rows` entries; a tensor that already has as many is returned unchanged.
// Fails if more than 2^24 zeros are missing.
Result<ExpressionRef> pad_rows(ExpressionRef input, std::uint64_t rows) {
  const std::uint64_t have = input->shape.dims[1];
  if (have >= rows) return input;
  BOOST_OUTCOME_TRY(ExpressionRef zeros, zeros_for(*input, 1, rows - have));
  return expressions::concat({std::move(input), std::move(zeros)}, 1);
}

// Inserts `count` entries of zeros before those of the last dimension: matrices for a stack of matrices. At most 2^24
// values.
Result<ExpressionRef> extend_front(ExpressionRef input, std::uint64_t count) {
  const std::uint32_t axis = input->shape.rank - 1;
  BOOST_OUTCOME_TRY(ExpressionRef zeros, zeros_for(*input, axis, count));
  return expressions::concat({std::move(zeros), std::move(input)}, axis);
}

// Repeats a tensor `count` times along dimension 1; `count` is from 1 to 65536.
Result<ExpressionRef> repeat_rows(ExpressionRef input, std::uint64_t count) {
  constexpr std::uint64_t kMax = 1 << 16;
  if (count == 0 || count > kMax) return input_error({}, fmt::format("{} copies; expected 1 to {}", count, kMax));
  return expressions::concat(std::vector<ExpressionRef>(static_cast<std::size_t>(count), input), 1);
}

Result<ExpressionRef> of_columns(ExpressionRef input, std::uint64_t count) {
  if (input->shape.columns() == count) return input;
  return input_error({}, fmt::format("it has rows of {} values, expected {}", input->shape.columns(), count));
}

Result<ExpressionRef> of_rows(ExpressionRef input, std::uint64_t count) {
  if (input->shape.rows() == count) return input;
  return input_error({}, fmt::format("it has {} rows, expected {}", input->shape.rows(), count));
}

// The operation `function`, which takes one integer.
template <Result<ExpressionRef> (*function)(ExpressionRef, std::uint64_t)>
Result<ExpressionRef> with_count(ExpressionRef input, Arguments a) {
  BOOST_OUTCOME_TRY(const std::uint64_t count, whole_argument(a[0]));
  return function(std::move(input), count);
}

constexpr TensorOperation kShapeOperations[] = {
    {"alternate", 2, 2, "Every second index of a dimension: even (0) or odd (1) ones.", alternate},
    {"column", 0, 2,
     "Turn a tensor of one dimension into rows of one column, or give it this many dimensions of 1 before and "
     "after its own.",
     column},
    {"extend_front", 1, 1, "Insert this many entries of zeros before the others of the last dimension.",
     with_count<extend_front>},
    {"first_rows", 1, 1, "Keep at most this many rows; of a tensor of one dimension, values.", first_rows},
    {"flatten", 0, 1, "The same values in one dimension.", flatten},
    {"grid", 1, 3, "Arrange the rows as a grid of these factors, the fastest first.", grid},
    {"int32", 0, 1, "I64 as I32.", int32},
    {"of_columns", 1, 1, "The tensor as it is, whose rows must have this many values.", with_count<of_columns>},
    {"of_rows", 1, 1, "The tensor as it is, which must have this many rows.", with_count<of_rows>},
    {"pad_rows", 1, 1, "Append rows of zeros up to this number.", with_count<pad_rows>},
    {"pair_halves", 1, 2,
     "Interleave the halves of every head's rows: number of heads, and of the rows that they have together (default: "
     "all).",
     pair_halves},
    {"part", 3, 3, "One of several equal parts of a dimension: dimension, index, number of parts.", part},
    {"reorder_rows", 2, 2, "Arrange the rows as a grid of factors, the fastest first, and reorder its axes.",
     reorder_rows},
    {"repeat_rows", 1, 1, "Repeat the rows this many times.", with_count<repeat_rows>},
    {"reshape", 1, 1, "The same values with other dimensions.", reshape},
    {"rows", 0, 1, "Merge all dimensions except the columns.", rows},
    {"slice", 2, 3, "Slice of a dimension: dimension, first index, count (default: all).", slice},
    {"split_pairs", 2, 2, "Split this many rows of every head, which are pairs, into two halves: heads, rows.",
     split_pairs},
    {"squeeze", 0, 1, "Remove all dimensions of 1, or the given one.", squeeze},
    {"transpose", 0, 1, "Swap rows and columns, or put the dimensions in the order of the list.", transpose},
};

}  // namespace

std::span<const TensorOperation> shape_operations() { return kShapeOperations; }

}  // namespace ggufmill::huggingface
