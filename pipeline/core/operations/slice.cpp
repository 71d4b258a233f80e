#include <fmt/format.h>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

class SliceOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "slice"; }

  void follow(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) const override {
    Box of_input = box;
    of_input.first[node.axis] += node.first;
    for_each_part(*node.inputs[0], of_input, layout, part);
  }

  ReadBound read_bound(const Expression& node, const Index& count) const override {
    return ggufmill::read_bound(*node.inputs[0], count);
  }
};

}  // namespace

const TensorOperation& slice_operation() { return the_only<SliceOperation>(); }

Result<ExpressionRef> expressions::slice(ExpressionRef input, std::uint32_t axis, std::uint64_t first,
                                         std::uint64_t count) {
  const Shape& shape = input->shape;
  if (axis >= shape.rank || first > shape.dims[axis] || count > shape.dims[axis] - first)
    return broken(Operation::kSlice,
                  fmt::format("{} from {} of dimension {} are outside {}", count, first, axis, describe(shape)));
  const std::uint64_t block = input->type->block_elements;
  if (axis == 0 && (first % block != 0 || count % block != 0))
    return broken(Operation::kSlice, fmt::format("columns {} to {} split a block of {} of {}", first, first + count,
                                                 input->type->name, block));
  if (count == shape.dims[axis]) return input;
  if (axis == 0) {
    BOOST_OUTCOME_TRY(check_whole_rows(Operation::kSlice, *input->type));
  }
  Expression node = node_of(Operation::kSlice, {std::move(input)});
  node.axis = axis;
  node.first = first;
  node.shape.dims[axis] = count;
  return made(std::move(node));
}

}  // namespace ggufmill
