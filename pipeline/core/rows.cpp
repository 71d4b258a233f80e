#include "pipeline/core/rows.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace ggufmill {
namespace {

using Index = std::array<std::uint64_t, 4>;

bool is_empty(const Box& box) { return std::ranges::count(box.count, 0u) != 0; }

// Splits the `count` consecutive elements starting at element `first` of a tensor into boxes and calls f(box, first)
// for each, in element order; `first` in the call is the index of the box's first element. Recurses over `dimension`
// and the dimensions below it.
using BoxVisitor = std::function<void(const Box& box, std::uint64_t first)>;
void for_each_box(const Shape& shape, std::uint32_t dimension, Index at, std::uint64_t first, std::uint64_t count,
                  const BoxVisitor& f) {
  if (count == 0) return;
  std::uint64_t size = 1;  // elements of one step along the dimension
  for (std::uint32_t d = 0; d < dimension; ++d) size *= shape.dims[d];
  const auto below = [&](std::uint64_t elements) {
    at[dimension] = first / size;
    for_each_box(shape, dimension - 1, at, first % size, elements,
                 [&](const Box& box, std::uint64_t start) { f(box, start + first / size * size); });
    first += elements;
    count -= elements;
  };
  if (dimension != 0 && first % size != 0) below(std::min(count, size - first % size));
  if (const std::uint64_t whole = count / size; whole != 0) {
    Box box;
    for (std::uint32_t d = 0; d < 4; ++d) {
      box.first[d] = d > dimension ? at[d] : d == dimension ? first / size : 0;
      box.count[d] = d > dimension ? 1 : d == dimension ? whole : shape.dims[d];
    }
    f(box, first);
    first += whole * size;
    count -= whole * size;
  }
  if (count != 0) below(count);
}

// Returns the input row that becomes row `row` of the result of a kReorderRows node.
std::uint64_t row_before(const Expression& node, std::uint64_t row) {
  std::uint64_t before = 0;
  for (const std::uint32_t axis : node.order) {
    std::uint64_t stride = 1;
    for (std::uint32_t i = 0; i < axis; ++i) stride *= node.factors[i];
    before += row % node.factors[axis] * stride;
    row /= node.factors[axis];
  }
  return before;
}

// Sets `part` to the part of a box that lies in [start, start + size) along `axis`, relative to `start`, and advances
// `layout` to its destination. Returns false if that part is empty.
bool cut_box(const Box& box, std::uint32_t axis, std::uint64_t start, std::uint64_t size, std::uint64_t block,
             Box& part, Layout& layout) {
  const std::uint64_t begin = std::max(box.first[axis], start);
  const std::uint64_t end = std::min(box.first[axis] + box.count[axis], start + size);
  if (begin >= end) return false;
  part = box;
  part.first[axis] = begin - start;
  part.count[axis] = end - begin;
  layout.offset += (begin - box.first[axis]) / (axis == 0 ? block : 1) * layout.step[axis];
  return true;
}

void follow_concat(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) {
  const bool stacks = node.operation == Operation::kStack;
  const std::uint32_t axis = stacks ? node.shape.rank - 1 : node.axis;
  std::uint64_t start = 0;
  for (const ExpressionRef& input : node.inputs) {
    const std::uint64_t size = stacks ? 1 : input->shape.dims[axis];
    Box of_input;
    Layout place = layout;
    if (cut_box(box, axis, start, size, node.type->block_elements, of_input, place))
      for_each_part(*input, of_input, place, part);
    start += size;
  }
}

void follow_reshape(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) {
  const std::uint64_t block = node.type->block_elements;
  // Dimensions whose elements are contiguous both in the result and at the destination form one run.
  std::uint32_t run_dims = 1;
  std::uint64_t run = box.count[0];
  while (run_dims < 4 && box.count[run_dims - 1] == node.shape.dims[run_dims - 1] &&
         (box.count[run_dims] == 1 || layout.step[run_dims] == layout.step[0] * (run / block)))
    run *= box.count[run_dims++];
  const Shape& shape = node.inputs[0]->shape;
  Index at{};
  for (;;) {
    std::uint64_t first = 0, offset = layout.offset, size = 1;
    for (std::uint32_t d = 0; d < 4; ++d) {
      first += (box.first[d] + at[d]) * size;
      size *= node.shape.dims[d];
      offset += (d == 0 ? 0 : at[d] * layout.step[d]);
    }
    for_each_box(shape, 3, {}, first, run, [&](const Box& of_input, std::uint64_t start) {
      Layout place;
      place.offset = offset + (start - first) / block * layout.step[0];
      place.step[0] = layout.step[0];
      for (std::uint32_t d = 1; d < 4; ++d)
        place.step[d] = place.step[d - 1] * (d == 1 ? shape.dims[0] / block : shape.dims[d - 1]);
      for_each_part(*node.inputs[0], of_input, place, part);
    });
    std::uint32_t d = run_dims;
    while (d < 4 && ++at[d] == box.count[d]) at[d++] = 0;
    if (d >= 4) return;
  }
}

void follow_rows(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) {
  for (std::uint64_t i = 0, n = 0; i < box.count[1]; i += n) {
    const std::uint64_t row = row_before(node, box.first[1] + i);
    for (n = 1; i + n < box.count[1] && row_before(node, box.first[1] + i + n) == row + n;) ++n;
    Box of_input = box;
    of_input.first[1] = row;
    of_input.count[1] = n;
    Layout place = layout;
    place.offset += i * layout.step[1];
    for_each_part(*node.inputs[0], of_input, place, part);
  }
}

void collect(const Expression& expression, const Box& box, std::vector<ByteRange>& ranges) {
  for_each_part(expression, box, {}, [&](const Expression& node, const Box& wanted, const Layout&) {
    if (const Extent* extent = node.as_extent())
      for_each_run(node, wanted, [&](std::uint64_t offset, std::uint64_t bytes, const Index&) {
        ranges.push_back({extent->source.get(), extent->offset + offset, bytes});
      });
    const std::vector<Box> boxes = input_boxes(node, wanted);
    for (std::size_t i = 0; i < boxes.size(); ++i) collect(*node.inputs[i], boxes[i], ranges);
  });
}

ReadBound operator+(ReadBound a, ReadBound b) { return {capped_sum(a.bytes, b.bytes), capped_sum(a.ranges, b.ranges)}; }
ReadBound most_of(ReadBound a, ReadBound b) { return {std::max(a.bytes, b.bytes), std::max(a.ranges, b.ranges)}; }

Index at_most(const Index& count, const Shape& shape) {
  Index least;
  for (std::uint32_t d = 0; d < 4; ++d) least[d] = std::min(count[d], shape.dims[d]);
  return least;
}

ReadBound bound_of_extent(const Expression& node, const Index& count) {
  std::uint64_t elements = 1, runs = 1;
  bool whole = true;  // all lower dimensions are complete
  for (std::uint32_t d = 0; d < 4; ++d) {
    elements = capped_product(elements, count[d]);
    if (!whole) runs = capped_product(runs, count[d]);
    whole = whole && count[d] == node.shape.dims[d];
  }
  return {capped_product(ceil_div(elements, node.type->block_elements), node.type->block_bytes), runs};
}

// Bound for any `elements` consecutive elements of the input of a reshape.
ReadBound bound_of_run(const Expression& input, std::uint64_t elements) {
  Index count;
  std::uint64_t size = 1;
  for (std::uint32_t d = 0; d < 4; ++d) {
    count[d] = std::min(input.shape.dims[d], d == 0 ? elements : capped_sum(elements / size, 2));
    size = capped_product(size, std::max<std::uint64_t>(input.shape.dims[d], 1));
  }
  return read_bound(input, count);
}

ReadBound bound_of_reshape(const Expression& node, const Index& count) {
  std::uint64_t run = count[0];
  std::uint32_t d = 1;
  for (; d < 4 && count[d - 1] == node.shape.dims[d - 1]; ++d) run = capped_product(run, count[d]);
  std::uint64_t runs = 1;
  for (; d < 4; ++d) runs = capped_product(runs, count[d]);
  const ReadBound one = bound_of_run(*node.inputs[0], run);
  return {capped_product(one.bytes, runs), capped_product(one.ranges, runs)};
}

// Bound for a box of at most `most` elements, which may have fewer elements along each dimension d with may_be_less[d].
// A slightly smaller box has to be checked too: part of a dimension may be split into more pieces than the complete
// dimension.
ReadBound bound_up_to(const Expression& input, const Index& most, const std::array<bool, 4>& may_be_less) {
  ReadBound bound = read_bound(input, most);
  for (std::uint32_t d = 0; d < 4; ++d) {
    const std::uint64_t step = d == 0 ? input.type->block_elements : 1, size = input.shape.dims[d];
    if (!may_be_less[d] || most[d] < size || size <= step) continue;
    Index less = most;
    less[d] = size - step;
    bound = most_of(bound, read_bound(input, less));
  }
  return bound;
}

}  // namespace

std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

std::uint64_t capped_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

Box box_of_rows(const Shape& shape, std::uint64_t first, std::uint64_t rows) {
  const std::uint64_t matrix = first / shape.dims[1];
  Box box;
  box.first = {0, first % shape.dims[1], matrix % shape.dims[2], matrix / shape.dims[2]};
  box.count = {shape.dims[0], rows, 1, 1};
  return box;
}

Layout packed_layout(const TypeInfo& type, const Box& box) {
  Layout layout;
  layout.step[0] = type.block_bytes;
  layout.step[1] = box.count[0] / type.block_elements * type.block_bytes;
  for (std::uint32_t d = 2; d < 4; ++d) layout.step[d] = layout.step[d - 1] * box.count[d - 1];
  return layout;
}

void for_each_part(const Expression& expression, const Box& box, const Layout& layout, const PartVisitor& part) {
  if (is_empty(box)) return;
  switch (expression.operation) {
    case Operation::kStack:
    case Operation::kConcat:
      return follow_concat(expression, box, layout, part);
    case Operation::kSlice: {
      Box of_input = box;
      of_input.first[expression.axis] += expression.first;
      return for_each_part(*expression.inputs[0], of_input, layout, part);
    }
    case Operation::kReshape:
      return follow_reshape(expression, box, layout, part);
    case Operation::kReorderRows:
      return follow_rows(expression, box, layout, part);
    case Operation::kTranspose: {
      Box of_input = box;
      Layout place = layout;
      for (std::size_t d = 0; d < expression.order.size(); ++d) {
        of_input.first[expression.order[d]] = box.first[d];
        of_input.count[expression.order[d]] = box.count[d];
        place.step[expression.order[d]] = layout.step[d];
      }
      return for_each_part(*expression.inputs[0], of_input, place, part);
    }
    default:
      part(expression, box, layout);
  }
}

std::vector<Box> input_boxes(const Expression& node, const Box& box) {
  Box same = box;
  switch (node.operation) {
    case Operation::kMap:
      return {same};
    case Operation::kCast: {
      const std::uint64_t block =
          std::lcm<std::uint64_t>(node.type->block_elements, node.inputs[0]->type->block_elements);
      const std::uint64_t end = ceil_div(box.first[0] + box.count[0], block) * block;
      same.first[0] = box.first[0] / block * block;
      same.count[0] = std::min(end, node.shape.dims[0]) - same.first[0];
      return {same};
    }
    case Operation::kScaleBlocks: {
      Box scales = box;
      for (std::uint32_t d = 0; d < 2; ++d) {
        scales.first[d] = box.first[d] / node.block[d];
        scales.count[d] = (box.first[d] + box.count[d] - 1) / node.block[d] + 1 - scales.first[d];
      }
      std::vector<Box> boxes(node.inputs.size(), scales);
      boxes[0] = same;
      return boxes;
    }
    case Operation::kGather: {
      Box numbers;
      numbers.first[0] = box.first[0];
      numbers.count[0] = box.count[0];
      same.first[0] = 0;
      same.count[0] = node.inputs[0]->shape.columns();
      return {same, numbers};
    }
    case Operation::kRepack: {
      std::vector<Box> boxes(2, same);
      for (std::size_t i = 0; i < 2; ++i) {
        boxes[i].first[0] = box.first[0] / node.type->block_elements * node.repack->input_bytes[i];
        boxes[i].count[0] = box.count[0] / node.type->block_elements * node.repack->input_bytes[i];
      }
      return boxes;
    }
    default:
      return {};
  }
}

void for_each_run(const Expression& expression, const Box& box, const RunVisitor& run) {
  const std::uint64_t block = expression.type->block_elements, block_bytes = expression.type->block_bytes;
  std::uint32_t run_dims = 1;
  std::uint64_t bytes = box.count[0] / block * block_bytes;
  while (run_dims < 4 && box.count[run_dims - 1] == expression.shape.dims[run_dims - 1]) bytes *= box.count[run_dims++];
  Index at{};
  for (;;) {
    std::uint64_t offset = 0, size = block_bytes;
    for (std::uint32_t d = 0; d < 4; ++d) {
      offset += (box.first[d] + at[d]) / (d == 0 ? block : 1) * size;
      size *= d == 0 ? expression.shape.dims[0] / block : expression.shape.dims[d];
    }
    run(offset, bytes, at);
    std::uint32_t d = run_dims;
    while (d < 4 && ++at[d] == box.count[d]) at[d++] = 0;
    if (d >= 4) return;
  }
}

std::vector<ByteRange> ranges_of(const Expression& expression, const Box& box) {
  std::vector<ByteRange> ranges;
  collect(expression, box, ranges);
  std::unordered_map<const SourceFile*, std::size_t> order;  // index of each source
  for (const ByteRange& range : ranges) order.emplace(range.source, order.size());
  std::ranges::sort(ranges, {}, [&](const ByteRange& range) { return std::pair(order[range.source], range.offset); });
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    ByteRange& before = ranges[last];
    if (ranges[i].source == before.source && ranges[i].offset <= before.offset + before.bytes)
      before.bytes = std::max(before.offset + before.bytes, ranges[i].offset + ranges[i].bytes) - before.offset;
    else
      ranges[++last] = ranges[i];
  }
  if (!ranges.empty()) ranges.resize(last + 1);
  return ranges;
}

ReadBound read_bound(const Expression& expression, const Index& wanted) {
  const Index count = at_most(wanted, expression.shape);
  switch (expression.operation) {
    case Operation::kExtent:
      return bound_of_extent(expression, count);
    case Operation::kConstant:
      return {};
    case Operation::kStack:
    case Operation::kConcat: {
      const std::uint32_t axis =
          expression.operation == Operation::kStack ? expression.shape.rank - 1 : expression.axis;
      Index one = count;  // the largest part of one input
      ReadBound most, all;
      for (const ExpressionRef& input : expression.inputs) {
        one[axis] = expression.operation == Operation::kStack ? 1 : std::min(count[axis], input->shape.dims[axis]);
        std::array<bool, 4> cut{};
        cut[axis] = count[axis] < expression.shape.dims[axis];
        const ReadBound bound = bound_up_to(*input, one, cut);
        most = most_of(most, bound);
        all = all + bound;
      }
      // A box touches at most as many inputs as it has elements along the dimension, and needs no more bytes than all
      // of them together.
      const std::uint64_t inputs = std::min<std::uint64_t>(count[axis], expression.inputs.size());
      return {std::min(all.bytes, capped_product(most.bytes, inputs)),
              std::min(all.ranges, capped_product(most.ranges, inputs))};
    }
    case Operation::kSlice:
      return read_bound(*expression.inputs[0], count);
    case Operation::kReshape:
      return bound_of_reshape(expression, count);
    case Operation::kReorderRows: {
      // In the worst case, no two rows are adjacent or share a block's scale.
      const ReadBound one =
          read_bound(*expression.inputs[0], {count[0], std::min<std::uint64_t>(count[1], 1), count[2], count[3]});
      return {capped_product(one.bytes, count[1]), capped_product(one.ranges, count[1])};
    }
    case Operation::kTranspose: {
      Index of_input{1, 1, 1, 1};
      for (std::size_t d = 0; d < expression.order.size(); ++d) of_input[expression.order[d]] = count[d];
      return read_bound(*expression.inputs[0], of_input);
    }
    default: {  // operations that compute: columns may be rounded to complete blocks on both sides
      ReadBound all;
      for (std::size_t i = 0; i < expression.inputs.size(); ++i) {
        const Expression& input = *expression.inputs[i];
        Index of_input = count;
        if (expression.operation == Operation::kCast)
          of_input[0] = capped_sum(
              count[0], 2 * std::lcm<std::uint64_t>(expression.type->block_elements, input.type->block_elements));
        if (expression.operation == Operation::kScaleBlocks && i > 0)
          for (std::uint32_t d = 0; d < 2; ++d)
            of_input[d] = count[d] == 0 ? 0 : ceil_div(count[d] - 1, expression.block[d]) + 1;
        if (expression.operation == Operation::kGather)
          of_input = i == 0 ? Index{input.shape.columns(), count[1], count[2], count[3]} : Index{count[0], 1, 1, 1};
        if (expression.operation == Operation::kRepack)
          of_input[0] = count[0] / expression.type->block_elements * expression.repack->input_bytes[i];
        std::array<bool, 4> rounded{};
        if (expression.operation == Operation::kCast || (expression.operation == Operation::kScaleBlocks && i > 0))
          for (std::uint32_t d = 0; d < 2; ++d) rounded[d] = count[d] < expression.shape.dims[d];
        ReadBound bound = bound_up_to(input, of_input, rounded);
        // A run of elements across several rows may begin and end within a row: two parts of the indices.
        if (expression.operation == Operation::kGather && i == 1 && count[1] * count[2] * count[3] > 1)
          bound.ranges = capped_product(bound.ranges, 2);
        all = all + bound;
      }
      return all;
    }
  }
}

}  // namespace ggufmill
