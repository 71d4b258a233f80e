#include "pipeline/core/operations/joined.h"

namespace ggufmill {
namespace {

class StackOperation final : public JoiningOperation {
 public:
  std::string_view name() const override { return "stack"; }

 private:
  std::uint32_t axis(const Expression& node) const override { return node.shape.rank - 1; }
  std::uint64_t size_of(const Expression&, const Expression&) const override { return 1; }
};

}  // namespace

const TensorOperation& stack_operation() { return the_only<StackOperation>(); }

Result<ExpressionRef> expressions::stack(std::vector<ExpressionRef> inputs) {
  BOOST_OUTCOME_TRY(check_alike(Operation::kStack, inputs, 4));
  for (const ExpressionRef& input : inputs)
    if (input->shape.rank != inputs[0]->shape.rank || input->shape.rank >= 4)
      return broken(Operation::kStack, "inputs must have the same rank, from 1 to 3");
  Expression node = node_of(Operation::kStack, std::move(inputs));
  node.shape.dims[node.shape.rank++] = node.inputs.size();
  return made(std::move(node));
}

}  // namespace ggufmill
