#include "pipeline/graph/level_trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "pipeline/core/covariance.h"
#include "pipeline/core/types.h"

namespace ggufmill {
namespace {

constexpr std::uint32_t kSweeps = 2;

// SplitMix64 of a number (Steele, Lea and Flood, 2014).
std::uint64_t mixed(std::uint64_t number) {
  std::uint64_t x = (number + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

double HalfLosses::worst_share_of(const HalfLosses& start) const {
  double worst = start.sum() > 0 ? 0 : INFINITY;
  if (start.first > 0) worst = std::max(worst, first / start.first);
  if (start.second > 0) worst = std::max(worst, second / start.second);
  return std::isfinite(start.sum()) ? worst : INFINITY;
}

HalfLosses losses_of(const ggufmill_covariance_kernels& kernels, ggufmill_loss_call call,
                     std::span<const float> vectors) {
  const auto loss_on = [&](std::span<const float> half) {
    std::array<double, kLevelRows> losses{};
    call.count = half.size() / call.cols;
    call.vectors = half.data();
    call.losses = losses.data();
    kernels.losses(&call);
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  };
  const std::size_t half = vectors.size() / call.cols / 2 * call.cols;
  return {loss_on(vectors.first(half)), loss_on(vectors.subspan(half))};
}

LevelTrial::LevelTrial(std::span<std::byte> memory, std::uint64_t columns)
    : columns_(columns),
      chosen_(memory.first(kTrialRows * columns * kLevelBytesPerColumn)),
      weights_(reinterpret_cast<float*>(chosen_.data() + chosen_.size()), kTrialRows * columns),
      encoded_(reinterpret_cast<std::byte*>(weights_.data() + weights_.size()), kTrialRows * row_bytes()) {
  constexpr std::uint16_t kOne = 0x3c00;
  constexpr float kRange = 200, kUnit = 0x1p-24f;
  for (std::uint64_t i = 0; i < weights_.size(); ++i)
    weights_[i] = (static_cast<float>(mixed(i) >> 40) * kUnit - 0.5f) * kRange;
  for (std::uint64_t i = 0; i < weights_.size(); ++i) {
    if (i % kBlock == 0) std::memcpy(block_of(i), &kOne, sizeof kOne);
    block_of(i)[2 + i % kBlock] = static_cast<std::byte>(static_cast<int>(std::nearbyint(weights_[i])));
  }
}

HalfLosses LevelTrial::losses(const ggufmill_covariance_kernels& kernels, const ggufmill_metric* metric,
                              std::span<const float> vectors, const ForEach& for_each) {
  std::array<HalfLosses, kTrialRows / kLevelRows> losses{};
  for_each(kTrialRows / kLevelRows, [&](std::uint64_t group) {
    const std::uint64_t first = group * kLevelRows;
    std::byte* const memory = chosen_.data() + first * columns_ * kLevelBytesPerColumn;
    const float* const weights = weights_.data() + first * columns_;
    if (metric) {
      const ggufmill_level_call call{type_named("Q8_0").id,
                                     kSweeps,
                                     kLevelRows,
                                     columns_,
                                     weights,
                                     encoded_.data() + first * row_bytes(),
                                     metric,
                                     memory};
      kernels.choose_levels(&call);
    }
    auto* const decoded = reinterpret_cast<float*>(memory);
    for (std::uint64_t i = 0; i < kLevelRows * columns_; ++i)
      decoded[i] = static_cast<float>(static_cast<std::int8_t>(block_of(first * columns_ + i)[2 + i % kBlock]));
    ggufmill_loss_call call{};
    call.rows = kLevelRows;
    call.cols = columns_;
    call.weights = weights;
    call.decoded = decoded;
    call.memory = decoded + kLevelRows * columns_;
    losses[group] = losses_of(kernels, call, vectors);
  });
  HalfLosses all;
  for (const HalfLosses& each : losses) all = {all.first + each.first, all.second + each.second};
  return all;
}

}  // namespace ggufmill
