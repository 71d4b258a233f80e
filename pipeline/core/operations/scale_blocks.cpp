#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

// Values with numbers for each block of rows and columns.
class BlocksOperation : public ComputingOperation {
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
};

// Calls f with the range of columns of each block in part of a row, and the place of its numbers among the inputs'.
void for_each_block(const Expression& node, const Box& part, const InputColumns& inputs, const auto& f) {
  for (std::uint64_t i = 0, block = 0; i < part.count[0]; ++block) {
    const std::uint64_t end =
        std::min((inputs.boxes[1].first[0] + block + 1) * node.block[0] - part.first[0], part.count[0]);
    f(i, end, block);
    i = end;
  }
}

class ScaleBlocksOperation final : public BlocksOperation {
 public:
  std::string_view name() const override { return "scale_blocks"; }

 private:
  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial&) const override {
    const float* const values = inputs.values(0);
    const float* const scales = inputs.values(1);
    const float* const offsets = inputs.data.size() > 2 ? inputs.values(2) : nullptr;
    auto* const results = reinterpret_cast<float*>(result);
    for_each_block(node, part, inputs, [&](std::uint64_t i, std::uint64_t end, std::uint64_t block) {
      const float scale = scales[block], offset = offsets ? offsets[block] : 0;
      for (; i < end; ++i) results[i] = (values[i] - offset) * scale;
    });
    return ok();
  }
};

class AddBlocksOperation final : public BlocksOperation {
 public:
  std::string_view name() const override { return "add_blocks"; }

 private:
  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial&) const override {
    const float* const values = inputs.values(0);
    const float* const addends = inputs.values(1);
    auto* const results = reinterpret_cast<float*>(result);
    for_each_block(node, part, inputs, [&](std::uint64_t i, std::uint64_t end, std::uint64_t block) {
      for (const float addend = addends[block]; i < end; ++i) results[i] = values[i] + addend;
    });
    return ok();
  }
};

// `numbers`: what the inputs after the first are, in order.
Result<ExpressionRef> with_blocks(Operation operation, std::vector<ExpressionRef> inputs, std::uint64_t columns,
                                  std::uint64_t rows, std::initializer_list<std::string_view> numbers) {
  if (columns == 0 || rows == 0) return broken(operation, "a block must have at least one column and one row");
  Shape needed = inputs[0]->shape;
  needed.dims[0] = ceil_div(needed.dims[0], columns);
  needed.dims[1] = ceil_div(needed.dims[1], rows);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]->type->is_f32())
      return broken(operation, fmt::format("an input is {}, not F32", inputs[i]->type->name));
    if (i > 0 && needed.dims != inputs[i]->shape.dims)
      return broken(operation,
                    fmt::format("{} in blocks of {} x {} need {} {}, not {}", describe(inputs[0]->shape), columns, rows,
                                describe(needed), numbers.begin()[i - 1], describe(inputs[i]->shape)));
  }
  Expression node = node_of(operation, std::move(inputs));
  node.block = {columns, rows};
  return made(std::move(node));
}

}  // namespace

const TensorOperation& scale_blocks_operation() { return the_only<ScaleBlocksOperation>(); }
const TensorOperation& add_blocks_operation() { return the_only<AddBlocksOperation>(); }

Result<ExpressionRef> expressions::scale_blocks(ExpressionRef input, ExpressionRef scales, std::uint64_t columns,
                                                std::uint64_t rows, ExpressionRef offsets) {
  std::vector<ExpressionRef> inputs{std::move(input), std::move(scales)};
  if (offsets) inputs.push_back(std::move(offsets));
  return with_blocks(Operation::kScaleBlocks, std::move(inputs), columns, rows, {"scales", "offsets"});
}

Result<ExpressionRef> expressions::add_blocks(ExpressionRef input, ExpressionRef addends, std::uint64_t columns,
                                              std::uint64_t rows) {
  return with_blocks(Operation::kAddBlocks, {std::move(input), std::move(addends)}, columns, rows, {"addends"});
}

}  // namespace ggufmill
