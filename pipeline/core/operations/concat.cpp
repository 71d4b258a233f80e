#include <fmt/format.h>

#include "pipeline/core/operations/joined.h"

namespace ggufmill {
namespace {

class ConcatOperation final : public JoiningOperation {
 public:
  std::string_view name() const override { return "concat"; }

 private:
  std::uint32_t axis(const Expression& node) const override { return node.axis; }
  std::uint64_t size_of(const Expression& node, const Expression& input) const override {
    return input.shape.dims[node.axis];
  }
};

}  // namespace

const TensorOperation& concat_operation() { return the_only<ConcatOperation>(); }

Result<ExpressionRef> expressions::concat(std::vector<ExpressionRef> inputs, std::uint32_t axis) {
  BOOST_OUTCOME_TRY(check_alike(Operation::kConcat, inputs, axis));
  if (axis >= inputs[0]->shape.rank)
    return broken(Operation::kConcat, fmt::format("{} has no dimension {}", describe(inputs[0]->shape), axis));
  if (inputs.size() == 1) return inputs[0];
  if (axis == 0) {
    BOOST_OUTCOME_TRY(check_whole_rows(Operation::kConcat, *inputs[0]->type));
  }
  Expression node = node_of(Operation::kConcat, std::move(inputs));
  node.axis = axis;
  node.shape.dims[axis] = 0;
  for (const ExpressionRef& input : node.inputs)
    if (__builtin_add_overflow(node.shape.dims[axis], input->shape.dims[axis], &node.shape.dims[axis]))
      return broken(Operation::kConcat, "the dimension would exceed 2^64");
  return made(std::move(node));
}

}  // namespace ggufmill
