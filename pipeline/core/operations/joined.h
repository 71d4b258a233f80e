#pragma once
// The common part of stack and concat: inputs that follow each other along one dimension.

#include "pipeline/core/operation.h"

namespace ggufmill {

class JoiningOperation : public TensorOperation {
 public:
  void follow(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) const final;
  ReadBound read_bound(const Expression& node, const Index& count) const final;

 protected:
  virtual std::uint32_t axis(const Expression& node) const = 0;
  virtual std::uint64_t size_of(const Expression& node, const Expression& input) const = 0;  // along the axis
};

// Fails unless all inputs have the same type, and the same shape except for dimension `but_for_axis`.
Status check_alike(Operation operation, const std::vector<ExpressionRef>& inputs, std::uint32_t but_for_axis);

}  // namespace ggufmill
