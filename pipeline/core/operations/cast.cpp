#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "pipeline/core/finite.h"
#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

class CastOperation final : public ComputingOperation {
 public:
  std::string_view name() const override { return "cast"; }

 private:
  static std::uint64_t common_block(const Expression& node) {
    return std::lcm<std::uint64_t>(node.type->block_elements, node.inputs[0]->type->block_elements);
  }

  // May have additional columns on both sides.
  Box input_box(const Expression& node, std::size_t, const Box& box) const override {
    const std::uint64_t block = common_block(node), end = ceil_div(box.first[0] + box.count[0], block) * block;
    Box wide = box;
    wide.first[0] = box.first[0] / block * block;
    wide.count[0] = std::min(end, node.shape.dims[0]) - wide.first[0];
    return wide;
  }

  ReadBound bound_of_input(const Expression& node, std::size_t, const Index& count) const override {
    Index wide = count;
    wide[0] = capped_sum(count[0], 2 * common_block(node));
    return bound_up_to(*node.inputs[0], wide,
                       {count[0] < node.shape.dims[0], count[1] < node.shape.dims[1], false, false});
  }

  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial& material) const override {
    const TypeInfo &from = *node.inputs[0]->type, &to = *node.type;
    const Box& wide = inputs.boxes[0];
    const bool is_direct = to.is_f32() && wide.count[0] == part.count[0];  // decoded to the result
    std::vector<float> decoded(from.is_f32() || is_direct ? 0 : wide.count[0]);
    const float* values = inputs.values(0);
    if (!from.is_f32()) {
      float* const place = is_direct ? reinterpret_cast<float*>(result) : decoded.data();
      BOOST_OUTCOME_TRY(material.decode(from, inputs.data[0], wide.count[0], place));
      if (is_direct) return ok();
      values = place;
    }
    values += part.first[0] - wide.first[0];
    if (to.is_f32()) {
      std::memcpy(result, values, part.count[0] * sizeof(float));
      return ok();
    }
    BOOST_OUTCOME_TRY(material.encode(to, values, part.count[0], result));
    return check_range(node, part, values, result, material.tensor());
  }

  // Finds values that were finite and no longer are. Infinity and NaN in the input are left to the code that uses the
  // result.
  static Status check_range(const Expression& node, const Box& part, const float* values, const std::byte* result,
                            const std::string& tensor) {
    const TypeInfo& type = *node.type;
    const std::size_t blocks = part.count[0] / type.block_elements, bad = first_bad_block(type, result, blocks);
    if (bad == blocks) return ok();
    const std::size_t first = bad * type.block_elements;
    if (first_not_finite({values + first, type.block_elements}) != type.block_elements) return ok();
    return Error{ExitCode::kBadInput, "",
                 fmt::format("tensor '{}', row {}, column {}: a value is too large for {}", tensor,
                             part.first[1] + node.shape.dims[1] * (part.first[2] + node.shape.dims[2] * part.first[3]),
                             part.first[0] + first, type.name),
                 "nothing was written",
                 "choose a type with a greater range, such as BF16 or F32: `outtype` of a checkpoint, or `f32` in the "
                 "file of a diffusion model's family (`model: ./mine.yaml`)"};
  }
};

}  // namespace

const TensorOperation& cast_operation() { return the_only<CastOperation>(); }

Result<ExpressionRef> expressions::cast(ExpressionRef input, const TypeInfo& type) {
  if (input->type == &type) return input;
  BOOST_OUTCOME_TRY(input, expressions::plain_rows(std::move(input)));
  if (input->type == &type) return input;
  if (is_source_type(type))
    return broken(Operation::kCast, fmt::format("conversion to {} is not supported", type.name));
  for (const TypeInfo* each : {input->type, &type}) {
    BOOST_OUTCOME_TRY(check_whole_rows(Operation::kCast, *each));
  }
  Expression node = node_of(Operation::kCast, {std::move(input)});
  node.type = &type;
  return made(std::move(node));
}

}  // namespace ggufmill
