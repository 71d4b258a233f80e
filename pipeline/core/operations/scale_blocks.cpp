#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

class ScaleBlocksOperation final : public ComputingOperation {
 public:
  std::string_view name() const override { return "scale_blocks"; }

 private:
  Box input_box(const Expression& node, std::size_t input, const Box& box) const override {
    if (input == 0) return box;
    Box scales = box;
    for (std::uint32_t d = 0; d < 2; ++d) {
      scales.first[d] = box.first[d] / node.block[d];
      scales.count[d] = (box.first[d] + box.count[d] - 1) / node.block[d] + 1 - scales.first[d];
    }
    return scales;
  }

  ReadBound bound_of_input(const Expression& node, std::size_t input, const Index& count) const override {
    if (input == 0) return ggufmill::read_bound(*node.inputs[0], count);
    Index scales = count;
    for (std::uint32_t d = 0; d < 2; ++d) scales[d] = count[d] == 0 ? 0 : ceil_div(count[d] - 1, node.block[d]) + 1;
    return bound_up_to(*node.inputs[input], scales,
                       {count[0] < node.shape.dims[0], count[1] < node.shape.dims[1], false, false});
  }

  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial&) const override {
    const float* const values = inputs.values(0);
    const float* const scales = inputs.values(1);
    const float* const offsets = inputs.data.size() > 2 ? inputs.values(2) : nullptr;
    auto* const results = reinterpret_cast<float*>(result);
    for (std::uint64_t i = 0, block = 0; i < part.count[0]; ++block) {
      const std::uint64_t end =
          std::min((inputs.boxes[1].first[0] + block + 1) * node.block[0] - part.first[0], part.count[0]);
      const float scale = scales[block], offset = offsets ? offsets[block] : 0;
      for (; i < end; ++i) results[i] = (values[i] - offset) * scale;
    }
    return ok();
  }
};

}  // namespace

const TensorOperation& scale_blocks_operation() { return the_only<ScaleBlocksOperation>(); }

Result<ExpressionRef> expressions::scale_blocks(ExpressionRef input, ExpressionRef scales, std::uint64_t columns,
                                                std::uint64_t rows, ExpressionRef offsets) {
  if (columns == 0 || rows == 0)
    return broken(Operation::kScaleBlocks, "a block must have at least one column and one row");
  Shape needed = input->shape;
  needed.dims[0] = (needed.dims[0] + columns - 1) / columns;
  needed.dims[1] = (needed.dims[1] + rows - 1) / rows;
  std::vector<ExpressionRef> inputs{std::move(input), std::move(scales)};
  if (offsets) inputs.push_back(std::move(offsets));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]->type->is_f32())
      return broken(Operation::kScaleBlocks, fmt::format("an input is {}, not F32", inputs[i]->type->name));
    if (i > 0 && needed.dims != inputs[i]->shape.dims)
      return broken(Operation::kScaleBlocks,
                    fmt::format("{} in blocks of {} x {} need {} {}, not {}", describe(inputs[0]->shape), columns, rows,
                                describe(needed), i == 1 ? "scales" : "offsets", describe(inputs[i]->shape)));
  }
  Expression node = node_of(Operation::kScaleBlocks, std::move(inputs));
  node.block = {columns, rows};
  return made(std::move(node));
}

}  // namespace ggufmill
