#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

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
      BOOST_OUTCOME_TRY(check_range_of_f64(node, inputs, place, material));
      if (is_direct) return ok();
      values = place;
    }
    values += part.first[0] - wide.first[0];
    if (to.is_f32()) {
      std::memcpy(result, values, part.count[0] * sizeof(float));
      return ok();
    }
    if (to.block_elements != 1) {
      BOOST_OUTCOME_TRY(values, finite_values(node, part, values, decoded, material));
    }
    BOOST_OUTCOME_TRY(material.encode(to, values, part.count[0], result));
    return check_range(node, part, values, result, material.tensor());
  }

  // Returns the values of a part without those that are not finite, which would be lost in blocks: the values
  // themselves, or a copy in `memory`, which may hold them.
  static Result<const float*> finite_values(const Expression& node, const Box& part, const float* values,
                                            std::vector<float>& memory, RowMaterial& material) {
    const std::uint64_t count = part.count[0];
    const auto first = static_cast<std::uint64_t>(first_not_finite({values, count}));
    if (first == count) return values;
    std::vector<float> copy(values, values + count);
    for (std::uint64_t i = first; i < count; ++i) {
      if (std::isfinite(copy[i])) continue;
      BOOST_OUTCOME_TRY(const bool replaced,
                        material.replaces_nonfinite(*node.inputs[0], row_of(node, part), part.first[0] + i, copy[i]));
      if (replaced) copy[i] = 0;
    }
    memory = std::move(copy);
    return memory.data();
  }

  static std::uint64_t row_of(const Expression& node, const Box& part) {
    return part.first[1] + node.shape.dims[1] * (part.first[2] + node.shape.dims[2] * part.first[3]);
  }

  static Error too_large(const Expression& node, const Box& part, std::uint64_t column, const TypeInfo& type,
                         const std::string& tensor) {
    return Error{ExitCode::kBadInput, "",
                 fmt::format("tensor '{}', row {}, column {}: a value is too large for {}", tensor, row_of(node, part),
                             column, type.name),
                 "nothing was written", help_for_too_large(type)};
  }

  // Finds finite numbers of 64 bits that are infinite in 32 bits.
  static Status check_range_of_f64(const Expression& node, const InputColumns& inputs, const float* decoded,
                                   const RowMaterial& material) {
    const Box& box = inputs.boxes[0];
    if (node.inputs[0]->type->scales().format != FieldFormat::kF64) return ok();
    const std::size_t bad = first_not_finite({decoded, box.count[0]});
    if (bad == box.count[0]) return ok();
    if (!std::isfinite(reinterpret_cast<const double*>(inputs.data[0])[bad])) return ok();
    return too_large(node, box, box.first[0] + bad, type_named("F32"), material.tensor());
  }

  // Finds values that were finite and no longer are. Infinity and NaN in the input of a type with one element per block
  // are left to the code that uses the result.
  static Status check_range(const Expression& node, const Box& part, const float* values, const std::byte* result,
                            const std::string& tensor) {
    const TypeInfo& type = *node.type;
    const std::size_t blocks = part.count[0] / type.block_elements;
    for (std::size_t from = 0; from < blocks;) {
      const std::size_t bad = from + first_bad_block(type, result + from * type.block_bytes, blocks - from);
      if (bad == blocks) break;
      const std::span block(values + bad * type.block_elements, type.block_elements);
      if (first_not_finite(block) == block.size())
        return too_large(node, part, part.first[0] + bad * block.size() + largest_of(block), type, tensor);
      from = bad + 1;
    }
    return ok();
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
