#include <fmt/format.h>

#include <cstring>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

class GatherOperation final : public ComputingOperation {
 public:
  std::string_view name() const override { return "gather"; }

 private:
  // Rows of values are needed in full; the numbers of the columns are one row.
  Box input_box(const Expression& node, std::size_t input, const Box& box) const override {
    Box of_input;
    if (input == 0) of_input = box;
    of_input.first[0] = input == 0 ? 0 : box.first[0];
    of_input.count[0] = input == 0 ? node.inputs[0]->shape.columns() : box.count[0];
    return of_input;
  }

  ReadBound bound_of_input(const Expression& node, std::size_t input, const Index& count) const override {
    const Expression& values = *node.inputs[input];
    if (input == 0) return ggufmill::read_bound(values, {values.shape.columns(), count[1], count[2], count[3]});
    ReadBound bound = ggufmill::read_bound(values, {count[0], 1, 1, 1});
    // A run of elements across several rows may begin and end within a row: two parts of the indices.
    if (count[1] * count[2] * count[3] > 1) bound.ranges = capped_product(bound.ranges, 2);
    return bound;
  }

  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial& material) const override {
    const std::uint64_t columns = node.inputs[0]->shape.columns(), bytes = node.type->block_bytes;
    for (std::uint64_t i = 0; i < part.count[0]; ++i) {
      std::int32_t column = 0;
      std::memcpy(&column, inputs.data[1] + i * sizeof column, sizeof column);
      if (column < 0 || static_cast<std::uint64_t>(column) >= columns)
        return Error{ExitCode::kBadInput, "",
                     fmt::format("tensor '{}': column {} takes entry {} of a table of {}", material.tensor(),
                                 part.first[0] + i, column, columns),
                     "nothing was written", "the file is damaged, or was changed while it was read"};
      std::memcpy(result + i * bytes, inputs.data[0] + static_cast<std::uint64_t>(column) * bytes, bytes);
    }
    return ok();
  }
};

}  // namespace

const TensorOperation& gather_operation() { return the_only<GatherOperation>(); }

Result<ExpressionRef> expressions::gather(ExpressionRef input, ExpressionRef columns) {
  if (input->type->block_elements != 1)
    return broken(Operation::kGather, fmt::format("columns of {} cannot be gathered individually", input->type->name));
  if (input->shape.columns() > kGatheredColumns)
    return broken(Operation::kGather, fmt::format("rows have {} columns, more than the limit of {}",
                                                  input->shape.columns(), kGatheredColumns));
  if (columns->type->name != "I32" || columns->shape.rows() != 1)
    return broken(Operation::kGather, fmt::format("the column numbers are {} of {}, not a row of I32",
                                                  describe(columns->shape), columns->type->name));
  Expression node = node_of(Operation::kGather, {std::move(input), std::move(columns)});
  node.shape.dims[0] = node.inputs[1]->shape.columns();
  return made(std::move(node));
}

}  // namespace ggufmill
