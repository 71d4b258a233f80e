#include "stages/huggingface/checkpoint/ternary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

std::uint64_t ceil_log2(std::uint64_t value) { return value <= 2 ? 1 : std::bit_width(value - 1); }

constexpr std::uint64_t kPiece = 1 << 18;  // values, or bytes with packed values, that are read together

// The bytes and the factor from which unpack_ternary() made an expression.
struct PackedTernary {
  const Extent* bytes = nullptr;
  float factor = 1;
};

// Returns what unpack_ternary() was given; nullopt for any other expression.
std::optional<PackedTernary> packed_ternary(const Expression& tensor) {
  if (tensor.operation != Operation::kScaleBlocks || tensor.inputs[1]->operation != Operation::kConstant)
    return std::nullopt;
  const Expression* node = tensor.inputs[0].get();
  while (!node->inputs.empty()) node = node->inputs[0].get();
  if (!node->as_extent() || node->type->name != "U2") return std::nullopt;
  return PackedTernary{node->as_extent(), tensor.inputs[1]->values.front()};
}

// Visits the values in pieces, in the order of the result of unpack_ternary().
Status for_each_piece(const PackedTernary& packed, const auto& visit) {
  BOOST_OUTCOME_TRY(const auto file, open_source(packed.bytes->source->path));
  std::vector<std::byte> bytes;
  std::vector<float> values;
  for (unsigned shift = 0; shift < 8; shift += 2)
    for (std::uint64_t first = 0; first < packed.bytes->bytes; first += kPiece) {
      bytes.resize(static_cast<std::size_t>(std::min(kPiece, packed.bytes->bytes - first)));
      BOOST_OUTCOME_TRY(file->read(packed.bytes->offset + first, bytes));
      values.clear();
      for (const std::byte byte : bytes) values.push_back(static_cast<float>(static_cast<int>(byte) >> shift & 3) - 1);
      for (float& value : values) value *= packed.factor;
      visit(values);
    }
  return ok();
}

// Visits the values in pieces that are small tensors.
Status for_each_piece(const Expression& tensor, const auto& visit) {
  if (const auto packed = packed_ternary(tensor)) return for_each_piece(*packed, visit);
  const std::uint64_t count = tensor.shape.elements();
  for (std::uint64_t first = 0; first < count; first += kPiece) {
    BOOST_OUTCOME_TRY(const std::vector<float> values,
                      read_small_values(tensor, first, std::min(kPiece, count - first)));
    visit(values);
  }
  return ok();
}

}  // namespace

TorchSum::TorchSum(std::uint64_t count)
    : level_power_(std::max<std::uint64_t>(4, ceil_log2(count / kLanes) / kLevels)) {}

void TorchSum::add(std::span<const float> values) {
  for (const float value : values) {
    pending_[pending_count_++] = value;
    if (pending_count_ < kLanes) continue;
    add_lanes();
    pending_count_ = 0;
  }
}

void TorchSum::add_lanes() {
  const auto add_to = [](Lanes& sums, const Lanes& values) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[lane];
  };
  add_to(levels_[0], pending_);
  ++done_;
  const std::uint64_t mask = (std::uint64_t{1} << level_power_) - 1;
  if ((done_ & mask) != 0) return;
  for (std::size_t level = 1; level < kLevels; ++level) {
    add_to(levels_[level], levels_[level - 1]);
    levels_[level - 1] = {};
    if ((done_ & (mask << (level * level_power_))) != 0) break;
  }
}

float TorchSum::total() const {
  Lanes sums = levels_[0];
  for (std::size_t level = 1; level < kLevels; ++level)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += levels_[level][lane];
  const std::size_t vectors = pending_count_ / kVector;
  for (std::size_t i = 0; i < vectors * kVector; ++i) sums[i % kVector] += pending_[i];
  for (std::size_t lane = kVector; lane < kLanes; ++lane) sums[lane % kVector] += sums[lane];
  float total = 0;
  for (std::size_t i = vectors * kVector; i < pending_count_; ++i) total += pending_[i];
  for (std::size_t lane = 0; lane < kVector; ++lane) total += sums[lane];
  return total;
}

Result<ExpressionRef> unpack_ternary(const ExpressionRef& bytes, float scale) {
  const Extent* const extent = bytes->as_extent();
  if (!extent || bytes->type->name != "U8" || bytes->shape.rank != 2)
    return input_error(
        {}, fmt::format("{} of {} is not a matrix of packed bytes", describe(bytes->shape), bytes->type->name));
  if (!std::isfinite(scale) || scale == 0) return input_error({}, fmt::format("its scale is {}", scale));
  const std::uint64_t columns = bytes->shape.dims[0], rows = bytes->shape.dims[1];
  BOOST_OUTCOME_TRY(ExpressionRef values,
                    expressions::extent(type_named("U2"), Shape{2, {4 * columns, rows, 1, 1}}, *extent));
  BOOST_OUTCOME_TRY(values, to_type(std::move(values), "F32"));
  BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{3, {4, columns, rows, 1}}));
  BOOST_OUTCOME_TRY(values, expressions::transpose(std::move(values), {1, 2, 0}));
  BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), Shape{2, {columns, 4 * rows, 1, 1}}));
  BOOST_OUTCOME_TRY(values, expressions::map(std::move(values), *find_map_function("add"), -1));
  // -1, 0, 1, and 2 times the reciprocal are equal to their quotients.
  BOOST_OUTCOME_TRY(ExpressionRef factor, expressions::constant(Shape{1, {1, 1, 1, 1}}, {1 / scale}));
  return expressions::scale_blocks(std::move(values), std::move(factor), columns, 4 * rows);
}

// Unpacks ternary weights with one scale each, by which they are divided. Weights that are not packed have no scale.
Status decode_bitnet(QuantizedTensors& checkpoint) {
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const std::string name = checkpoint.tensors[i].name;
    constexpr std::string_view kEnding = "_scale";
    const bool is_scale = name.ends_with(".weight_scale");
    if (!is_scale) {
      if (name.ends_with(".weight") && checkpoint.tensors[i].values->type->name == "U8") {
        BOOST_OUTCOME_TRY(checkpoint.place_of(name + std::string(kEnding)));
      }
      continue;
    }
    const std::string weight_name = name.substr(0, name.size() - kEnding.size());
    BOOST_OUTCOME_TRY(const std::size_t weight, checkpoint.weight_of(weight_name, i));
    BOOST_OUTCOME_TRY(const float scale, checkpoint.of_tensor(name, read_scale(*checkpoint.tensors[i].values)));
    BOOST_OUTCOME_TRY(checkpoint.tensors[weight].values,
                      checkpoint.of_tensor(weight_name, unpack_ternary(checkpoint.tensors[weight].values, scale)));
    checkpoint.skipped.insert(i);
  }
  return ok();
}

Result<ExpressionRef> ternary(ExpressionRef input) {
  const std::uint64_t count = input->shape.elements();
  TorchSum sum(count);
  BOOST_OUTCOME_TRY(for_each_piece(*input, [&](std::vector<float> values) {
    for (float& value : values) value = std::fabs(value);
    sum.add(values);
  }));
  const float mean = sum.total() / static_cast<float>(count);
  if (!std::isfinite(mean)) return input_error({}, "has values that are not finite, or too large for BitNet's scale");
  const bool half = input->type->name == "F16";
  BOOST_OUTCOME_TRY(ExpressionRef values, to_type(std::move(input), "F32"));
  BOOST_OUTCOME_TRY(values,
                    expressions::map(std::move(values), *find_map_function("ternary"), 1 / std::max(mean, 1e-5f)));
  return half ? to_type(std::move(values), "F16") : values;
}

}  // namespace ggufmill::huggingface
