#include "stages/huggingface/ternary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "stages/huggingface/tensor_operations.h"

namespace ggufmill::huggingface {
namespace {

std::uint64_t ceil_log2(std::uint64_t value) { return value <= 2 ? 1 : std::bit_width(value - 1); }

// Visits the values in pieces that are small tensors.
Status for_each_piece(const Expression& tensor, const auto& visit) {
  constexpr std::uint64_t kPiece = 1 << 18;
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
