#pragma once
// Runs StepFit for many groups. Four out of five groups are finished after one round, but nearly every vector has a
// lane that is not. Therefore, each vector gets one round; the unfinished groups are then packed into new vectors and
// start over.

#include <bit>

#include "plugins/simd/fit_steps.h"
#include "plugins/simd/pack.h"

namespace ggufmill::simd {

// Unfinished groups of kCount weights, collected from kGroups vectors. Holds their weights, and the vector and lane of
// each group.
template <int kGroups, int kCount>
class LeftGroups {
 public:
  static constexpr int kVectors = 4;  // vectors read together
  static constexpr int kStep = static_cast<int>(kLanes);

  // Adds the lanes of vector `group` that are set in `left`. Weight i is at x[i * kLanes].
  void add(const float* x, int group, Mask left) {
    alignas(64) std::int32_t lanes[kLanes] = {};
    const int count = lanes_of(left, lanes);
    if (count == 0) return;
    for (int k = 0; k < count; ++k) whose_[count_ + k] = group * kStep + lanes[k];
    const auto order = hn::SetTableIndices(kFloats, lanes);
    for (int i = 0; i < kCount; ++i) {
      const Floats weights = hn::Load(kFloats, x + i * kStep);
      hn::StoreU(hn::TableLookupLanes(weights, order), kFloats, x_ + i * kStride + count_);
    }
    count_ += count;
  }

  int count() const { return count_; }
  int group(int k) const { return whose_[k] / kStep; }
  int lane(int k) const { return whose_[k] % kStep; }

  // Returns kVectors vectors, starting at the k-th group. Lanes after the last group contain zeros, and their results
  // are ignored.
  StepInput from(int k) {
    for (int i = 0; i < kCount; ++i)
      for (int at = count_; at < k + kVectors * kStep; at += kStep)
        hn::StoreU(floats(0), kFloats, x_ + i * kStride + at);
    return {x_ + k, kStep, kStride};
  }

 private:
  // Stores the indices of the lanes that are set, in order, and returns their number.
  static int lanes_of(Mask mask, std::int32_t* lanes) {
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(kFloats, mask, bytes);
    int count = 0;
    for (unsigned bits = bytes[0] | bytes[1] << 8; bits != 0; bits &= bits - 1) lanes[count++] = std::countr_zero(bits);
    return count;
  }

  // Capacity for all groups, including reads and writes past the last one.
  static constexpr int kStride = (kGroups + kVectors + 1) * kStep;

  int count_ = 0;
  int whose_[kStride];
  alignas(64) float x_[kCount * kStride];
};

// Fits kGroups consecutive groups of kCount weights each, with one block per lane; kInFlight divides kGroups.
template <int kGroups, int kCount, int kLimit, int kInFlight>
class AllStepFits {
 public:
  void run(const float* x, Floats* scales, LaneLevels<kGroups * kCount>& levels) {
    for (int group = 0; group < kGroups; group += kInFlight) fit_once(x, group, levels);
    for (int k = 0; k < left_.count(); k += kPacked * kStep) fit_left(k, levels);
    for (int group = 0; group < kGroups; ++group) scales[group] = hn::Load(kFloats, scales_ + group * kStep);
  }

 private:
  using Left = LeftGroups<kGroups, kCount>;
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr int kPacked = Left::kVectors;

  void fit_once(const float* x, int first, LaneLevels<kGroups * kCount>& levels) {
    StepFit<kInFlight, kCount, kLimit> fit;
    fit.run({x + first * kCount * kStep, kCount * kStep, kStep}, 1);
    for (int g = 0; g < kInFlight; ++g) {
      const int group = first + g;
      hn::Store(fit.scale(g), kFloats, scales_ + group * kStep);
      for (int i = 0; i < kCount; ++i) levels.set(group * kCount + i, as_words(fit.level(g, i)));
      left_.add(x + group * kCount * kStep, group, fit.moved(g));
    }
  }

  // Fits the unfinished groups, starting at the k-th.
  void fit_left(int k, LaneLevels<kGroups * kCount>& levels) {
    StepFit<kPacked, kCount, kLimit> fit;
    fit.run(left_.from(k), fit.kRounds);
    alignas(64) float scales[kPacked * kLanes];
    alignas(64) std::uint32_t packed[kPacked * kCount * kLanes];
    for (int g = 0; g < kPacked; ++g) {
      hn::Store(fit.scale(g), kFloats, scales + g * kStep);
      for (int i = 0; i < kCount; ++i) hn::Store(as_words(fit.level(g, i)), kWords, packed + (i * kPacked + g) * kStep);
    }
    const int count = std::min(left_.count() - k, kPacked * kStep);
    for (int j = 0; j < count; ++j) {
      const int group = left_.group(k + j), lane = left_.lane(k + j);
      scales_[group * kStep + lane] = scales[j];
      for (int i = 0; i < kCount; ++i)
        levels.values[(group * kCount + i) * kStep + lane] = packed[i * kPacked * kStep + j];
    }
  }

  Left left_;
  alignas(64) float scales_[kGroups * kLanes];
};

}  // namespace ggufmill::simd
