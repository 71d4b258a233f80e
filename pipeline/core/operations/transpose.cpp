#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

class TransposeOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "transpose"; }

  void follow(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) const override {
    Box of_input = box;
    Layout place = layout;
    for (std::size_t d = 0; d < node.order.size(); ++d) {
      of_input.first[node.order[d]] = box.first[d];
      of_input.count[node.order[d]] = box.count[d];
      place.step[node.order[d]] = layout.step[d];
    }
    for_each_part(*node.inputs[0], of_input, place, part);
  }

  ReadBound read_bound(const Expression& node, const Index& count) const override {
    Index of_input{1, 1, 1, 1};
    for (std::size_t d = 0; d < node.order.size(); ++d) of_input[node.order[d]] = count[d];
    return ggufmill::read_bound(*node.inputs[0], of_input);
  }
};

}  // namespace

const TensorOperation& transpose_operation() { return the_only<TransposeOperation>(); }

Result<ExpressionRef> expressions::transpose(ExpressionRef input, std::vector<std::uint32_t> order) {
  if (!is_order(order, input->shape.rank))
    return broken(Operation::kTranspose, fmt::format("{} is not a permutation of the dimensions of {}",
                                                     fmt::join(order, ", "), describe(input->shape)));
  if (std::ranges::is_sorted(order)) return input;
  if (order[0] != 0 && input->type->block_elements != 1)
    return broken(Operation::kTranspose,
                  fmt::format("blocks of {} run along the rows and cannot be transposed", input->type->name));
  Expression node = node_of(Operation::kTranspose, {std::move(input)});
  for (std::size_t d = 0; d < order.size(); ++d) node.shape.dims[d] = node.inputs[0]->shape.dims[order[d]];
  node.order = std::move(order);
  return made(std::move(node));
}

}  // namespace ggufmill
