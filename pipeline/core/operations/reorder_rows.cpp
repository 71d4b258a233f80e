#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

// Returns the input row that becomes row `row` of the result.
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

class ReorderRowsOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "reorder_rows"; }

  void follow(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) const override {
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

  ReadBound read_bound(const Expression& node, const Index& count) const override {
    // In the worst case, no two rows are adjacent or share a block's scale.
    const ReadBound one =
        ggufmill::read_bound(*node.inputs[0], {count[0], std::min<std::uint64_t>(count[1], 1), count[2], count[3]});
    return {capped_product(one.bytes, count[1]), capped_product(one.ranges, count[1])};
  }
};

}  // namespace

const TensorOperation& reorder_rows_operation() { return the_only<ReorderRowsOperation>(); }

Result<ExpressionRef> expressions::reorder_rows(ExpressionRef input, std::vector<std::uint64_t> factors,
                                                std::vector<std::uint32_t> order) {
  std::uint64_t rows = 1;
  for (const std::uint64_t factor : factors)
    if (__builtin_mul_overflow(rows, factor, &rows)) rows = 0;
  if (rows != input->shape.dims[1] || rows == 0)
    return broken(Operation::kReorderRows,
                  fmt::format("{} rows are not a grid of {}", input->shape.dims[1], fmt::join(factors, " x ")));
  if (!is_order(order, factors.size()))
    return broken(Operation::kReorderRows,
                  fmt::format("{} is not a permutation of {} axes", fmt::join(order, ", "), factors.size()));
  if (std::ranges::is_sorted(order)) return input;
  Expression node = node_of(Operation::kReorderRows, {std::move(input)});
  node.factors = std::move(factors);
  node.order = std::move(order);
  return made(std::move(node));
}

}  // namespace ggufmill
