#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kBytes = 256;  // different ones

// Returns the number of values that a byte stands for.
std::uint64_t values_per_byte(const Expression& node) { return node.inputs[1]->shape.columns() / kBytes; }

class LookupOperation final : public ComputingOperation {
 public:
  std::string_view name() const override { return "lookup"; }

 private:
  // The table is needed in full.
  Box input_box(const Expression& node, std::size_t input, const Box& box) const override {
    Box of_input;
    if (input == 1) {
      of_input.count[0] = node.inputs[1]->shape.columns();
      return of_input;
    }
    const std::uint64_t each = values_per_byte(node);
    of_input = box;
    of_input.first[0] = box.first[0] / each;
    of_input.count[0] = ceil_div(box.first[0] + box.count[0], each) - of_input.first[0];
    return of_input;
  }

  ReadBound bound_of_input(const Expression& node, std::size_t input, const Index& count) const override {
    const Expression& bytes = *node.inputs[input];
    if (input == 1) return ggufmill::read_bound(bytes, {bytes.shape.columns(), 1, 1, 1});
    Index most = count;
    most[0] = std::min(count[0] == 0 ? 0 : ceil_div(count[0] - 1, values_per_byte(node)) + 1, bytes.shape.columns());
    return bound_up_to(bytes, most,
                       {count[0] < node.shape.dims[0], count[1] < node.shape.dims[1], count[2] < node.shape.dims[2],
                        count[3] < node.shape.dims[3]});
  }

  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial&) const override {
    const std::uint64_t each = values_per_byte(node), first = part.first[0] - inputs.boxes[0].first[0] * each;
    const float* const table = inputs.values(1);
    auto* const results = reinterpret_cast<float*>(result);
    std::uint64_t done = 0, at = first;  // in the values of a byte
    for (const std::byte* byte = inputs.data[0]; done < part.count[0]; ++byte, at = 0)
      for (const float* const values = table + std::to_integer<std::size_t>(*byte) * each;
           at < each && done < part.count[0]; ++at, ++done)
        results[done] = values[at];
    return ok();
  }
};

}  // namespace

const TensorOperation& lookup_operation() { return the_only<LookupOperation>(); }

Result<ExpressionRef> expressions::lookup(ExpressionRef bytes, ExpressionRef table) {
  if (bytes->type->name != "U8")
    return broken(Operation::kLookup, fmt::format("the bytes are {}, not U8", bytes->type->name));
  const std::uint64_t each = table->shape.columns() / kBytes;
  if (!table->type->is_f32() || table->shape.rows() != 1 || table->shape.columns() != each * kBytes || each == 0 ||
      each > kLookedUp)
    return broken(Operation::kLookup, fmt::format("the table is {} of {}, not one row of F32 for {} bytes",
                                                  describe(table->shape), table->type->name, kBytes));
  Expression node = node_of(Operation::kLookup, {std::move(bytes), std::move(table)});
  node.type = &type_named("F32");
  if (__builtin_mul_overflow(node.shape.dims[0], each, &node.shape.dims[0]))
    return broken(Operation::kLookup, "the result is too large");
  return made(std::move(node));
}

}  // namespace ggufmill
