#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

// A block of 32 elements. In a checkpoint: 16 bytes with two adjacent elements each, the first in the low bits, with
// the exponent stored separately. In GGUF: the exponent, then 16 bytes with elements i (low) and i + 16.
void repack_mxfp4(std::uint64_t blocks, const std::byte* const inputs[2], std::byte* into) {
  for (std::uint64_t b = 0; b < blocks; ++b, into += 17) {
    const auto* pairs = reinterpret_cast<const unsigned char*>(inputs[0]) + 16 * b;
    const auto element = [&](unsigned i) { return pairs[i / 2] >> (i % 2 * 4) & 15; };
    into[0] = inputs[1][b];
    for (unsigned i = 0; i < 16; ++i) into[1 + i] = static_cast<std::byte>(element(i) | element(i + 16) << 4);
  }
}

// A super-block of 64 elements. In a checkpoint: 32 bytes with two adjacent elements each, with the four scales stored
// separately. In GGUF: the scales without their sign, then, for every 16 elements, 8 bytes with elements i (low) and
// i + 8.
void repack_nvfp4(std::uint64_t blocks, const std::byte* const inputs[2], std::byte* into) {
  for (std::uint64_t b = 0; b < blocks; ++b, into += 36) {
    const auto* pairs = reinterpret_cast<const unsigned char*>(inputs[0]) + 32 * b;
    for (unsigned part = 0; part < 4; ++part) {
      const auto element = [&](unsigned i) { return pairs[8 * part + i / 2] >> (i % 2 * 4) & 15; };
      into[part] = inputs[1][4 * b + part] & std::byte{0x7f};
      for (unsigned i = 0; i < 8; ++i)
        into[4 + 8 * part + i] = static_cast<std::byte>(element(i) | element(i + 8) << 4);
    }
  }
}

constexpr RepackFunction kRepackFunctions[] = {{"mxfp4", "MXFP4", {16, 1}, repack_mxfp4},
                                               {"nvfp4", "NVFP4", {32, 4}, repack_nvfp4}};

bool is_byte(const TypeInfo& type) { return type.name == "I8" || type.name == "U8"; }

class RepackOperation final : public ComputingOperation {
 public:
  std::string_view name() const override { return "repack"; }

 private:
  static std::uint64_t input_columns(const Expression& node, std::size_t input, std::uint64_t columns) {
    return columns / node.type->block_elements * node.repack->input_bytes[input];
  }

  Box input_box(const Expression& node, std::size_t input, const Box& box) const override {
    Box of_input = box;
    of_input.first[0] = input_columns(node, input, box.first[0]);
    of_input.count[0] = input_columns(node, input, box.count[0]);
    return of_input;
  }

  ReadBound bound_of_input(const Expression& node, std::size_t input, const Index& count) const override {
    return ggufmill::read_bound(*node.inputs[input],
                                {input_columns(node, input, count[0]), count[1], count[2], count[3]});
  }

  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial&) const override {
    node.repack->apply(part.count[0] / node.type->block_elements, inputs.data.data(), result);
    return ok();
  }
};

}  // namespace

const TensorOperation& repack_operation() { return the_only<RepackOperation>(); }

std::span<const RepackFunction> repack_functions() { return kRepackFunctions; }

const RepackFunction* find_repack_function(std::string_view name) {
  const auto found = std::ranges::find(kRepackFunctions, name, &RepackFunction::name);
  return found == std::end(kRepackFunctions) ? nullptr : found;
}

Result<ExpressionRef> expressions::repack(const RepackFunction& function, ExpressionRef first, ExpressionRef second) {
  Expression node = node_of(Operation::kRepack, {std::move(first), std::move(second)});
  node.type = &type_named(function.type);
  node.repack = &function;
  const std::uint64_t blocks = node.inputs[0]->shape.columns() / function.input_bytes[0];
  for (std::size_t i = 0; i < 2; ++i) {
    Shape expected = node.inputs[0]->shape;
    expected.dims[0] = blocks * function.input_bytes[i];
    if (!is_byte(*node.inputs[i]->type) || node.inputs[i]->shape.dims != expected.dims)
      return broken(node.operation, fmt::format("{} needs rows of {} bytes per block as input {}, not {} of {}",
                                                function.name, function.input_bytes[i], i,
                                                describe(node.inputs[i]->shape), node.inputs[i]->type->name));
  }
  node.shape.dims[0] = blocks * node.type->block_elements;
  return made(std::move(node));
}

}  // namespace ggufmill
