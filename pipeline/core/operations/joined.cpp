#include "pipeline/core/operations/joined.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

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

}  // namespace

void JoiningOperation::follow(const Expression& node, const Box& box, const Layout& layout,
                              const PartVisitor& part) const {
  std::uint64_t start = 0;
  for (const ExpressionRef& input : node.inputs) {
    const std::uint64_t size = size_of(node, *input);
    Box of_input;
    Layout place = layout;
    if (cut_box(box, axis(node), start, size, node.type->block_elements, of_input, place))
      for_each_part(*input, of_input, place, part);
    start += size;
  }
}

ReadBound JoiningOperation::read_bound(const Expression& node, const Index& count) const {
  const std::uint32_t along = axis(node);
  Index one = count;  // the largest part of one input
  ReadBound most, all;
  for (const ExpressionRef& input : node.inputs) {
    one[along] = std::min(count[along], size_of(node, *input));
    std::array<bool, 4> cut{};
    cut[along] = count[along] < node.shape.dims[along];
    const ReadBound bound = bound_up_to(*input, one, cut);
    most = most_of(most, bound);
    all = all + bound;
  }
  // A box touches at most as many inputs as it has elements along the dimension, and needs no more bytes than all of
  // them together.
  const std::uint64_t inputs = std::min<std::uint64_t>(count[along], node.inputs.size());
  return {std::min(all.bytes, capped_product(most.bytes, inputs)),
          std::min(all.ranges, capped_product(most.ranges, inputs))};
}

Status check_alike(Operation operation, const std::vector<ExpressionRef>& inputs, std::uint32_t but_for_axis) {
  if (inputs.empty()) return broken(operation, "there are no inputs");
  for (const ExpressionRef& input : inputs) {
    if (input->type != inputs[0]->type)
      return broken(operation, fmt::format("inputs are {} and {}", inputs[0]->type->name, input->type->name));
    for (std::uint32_t d = 0; d < 4; ++d)
      if (d != but_for_axis && input->shape.dims[d] != inputs[0]->shape.dims[d])
        return broken(operation,
                      fmt::format("inputs are {} and {}", describe(inputs[0]->shape), describe(input->shape)));
  }
  return ok();
}

}  // namespace ggufmill
