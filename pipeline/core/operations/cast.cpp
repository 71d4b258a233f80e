#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>

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
    Values own(wide.count[0]);
    const float* values = inputs.values(0);
    if (!from.is_f32()) {
      float* const place = is_direct ? reinterpret_cast<float*>(result) : own.memory();
      BOOST_OUTCOME_TRY(material.decode(from, inputs.data[0], wide.count[0], place));
      BOOST_OUTCOME_TRY(check_range_of_f64(node, inputs, place, material));
      if (is_direct) return ok();
      values = place;
    }
    if (to.block_elements != 1) {
      BOOST_OUTCOME_TRY(values, finite_values(node, inputs, values, own, material));
    }
    values += part.first[0] - wide.first[0];
    if (to.is_f32()) {
      std::memcpy(result, values, part.count[0] * sizeof(float));
      return ok();
    }
    BOOST_OUTCOME_TRY(material.encode(to, values, part.count[0], result));
    return check_range(node, part, values, result, material.tensor());
  }

  // Memory for the values of a part, allocated when it is needed.
  class Values {
   public:
    explicit Values(std::uint64_t count) : count_(count) {}
    float* memory() {
      if (!memory_) memory_ = std::make_unique_for_overwrite<float[]>(count_);
      return memory_.get();
    }

   private:
    std::uint64_t count_;
    std::unique_ptr<float[]> memory_;
  };

  // Returns the values of the input without those that are not finite, which blocks would hide: the values themselves,
  // or a copy in `own`, where they may be already.
  static Result<const float*> finite_values(const Expression& node, const InputColumns& inputs, const float* values,
                                            Values& own, RowMaterial& material) {
    const Box& box = inputs.boxes[0];
    const std::size_t count = box.count[0];
    const Expression& input = *node.inputs[0];
    const std::size_t first = first_not_finite(*input.type, inputs.data[0], {values, count});
    if (first == count) return values;
    float* const finite = own.memory();
    if (values != finite) std::copy_n(values, count, finite);
    for (std::size_t i = first; i < count; ++i) {
      if (std::isfinite(finite[i])) continue;
      BOOST_OUTCOME_TRY(const bool is_replaced,
                        material.replaces_nonfinite(input, row_of(node, box), box.first[0] + i, finite[i]));
      if (is_replaced) finite[i] = 0;
    }
    return finite;
  }

  static std::uint64_t row_of(const Expression& node, const Box& part) {
    return part.first[1] + node.shape.dims[1] * (part.first[2] + node.shape.dims[2] * part.first[3]);
  }

  static std::string help_for(const TypeInfo& type) {
    if (type.is_f32() || type.scales().format == FieldFormat::kBf16) return help_for_too_large(type);
    return "choose a type with a greater range, such as BF16 or F32: `outtype` of a checkpoint, or `f32` in the file "
           "of a diffusion model's family (`model: ./mine.yaml`)";
  }

  static Error too_large(const Expression& node, const Box& part, std::uint64_t column, const TypeInfo& type,
                         const std::string& tensor) {
    return Error{ExitCode::kBadInput, "",
                 fmt::format("tensor '{}', row {}, column {}: a value is too large for {}", tensor, row_of(node, part),
                             column, type.name),
                 "nothing was written", help_for(type)};
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
