#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

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

// Bound for any `elements` consecutive elements of the input of a reshape.
ReadBound bound_of_run(const Expression& input, std::uint64_t elements) {
  Index count;
  std::uint64_t size = 1, ranges = 0;
  for (std::uint32_t d = 0; d < 4; ++d) {
    if (d != 0 && input.shape.dims[d] > 1) {  // up to two boxes that have part of the dimension below
      Index part{1, 1, 1, 1};
      std::copy_n(count.begin(), d, part.begin());
      std::array<bool, 4> may_be_less{};
      may_be_less[d - 1] = true;
      ranges = capped_sum(ranges, capped_product(2, bound_up_to(input, part, may_be_less).ranges));
    }
    count[d] = std::min(input.shape.dims[d], d == 0 ? elements : capped_sum(elements / size, 2));
    size = capped_product(size, std::max<std::uint64_t>(input.shape.dims[d], 1));
  }
  ReadBound bound = read_bound(input, count);
  if (!input.as_extent()) bound.ranges = capped_sum(bound.ranges, ranges);  // runs of an extent are contiguous
  return bound;
}

class ReshapeOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "reshape"; }

  void follow(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) const override {
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

  ReadBound read_bound(const Expression& node, const Index& count) const override {
    std::uint64_t run = count[0];
    std::uint32_t d = 1;
    for (; d < 4 && count[d - 1] == node.shape.dims[d - 1]; ++d) run = capped_product(run, count[d]);
    std::uint64_t runs = 1;
    for (; d < 4; ++d) runs = capped_product(runs, count[d]);
    const ReadBound one = bound_of_run(*node.inputs[0], run);
    return {capped_product(one.bytes, runs), capped_product(one.ranges, runs)};
  }
};

}  // namespace

const TensorOperation& reshape_operation() { return the_only<ReshapeOperation>(); }

Result<ExpressionRef> expressions::reshape(ExpressionRef input, const Shape& shape) {
  if (shape == input->shape) return input;
  BOOST_OUTCOME_TRY(check_shape(Operation::kReshape, *input->type, shape));
  if (shape.elements() != input->shape.elements())
    return broken(Operation::kReshape, fmt::format("{} have {} elements, {} have {}", describe(input->shape),
                                                   input->shape.elements(), describe(shape), shape.elements()));
  if (shape.columns() != input->shape.columns()) {
    BOOST_OUTCOME_TRY(check_whole_rows(Operation::kReshape, *input->type));
  }
  if (const Extent* bytes = input->as_extent()) return expressions::extent(*input->type, shape, *bytes);
  if (input->operation == Operation::kReshape) input = input->inputs[0];
  if (shape == input->shape) return input;
  Expression node = node_of(Operation::kReshape, {std::move(input)});
  node.shape = shape;
  return made(std::move(node));
}

}  // namespace ggufmill
