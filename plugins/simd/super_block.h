#pragma once
// Common parts of the K and IQ1 types: a batch of super-blocks of 256 weights, with one super-block per lane.

#include "plugins/simd/pack.h"

namespace ggufmill::simd {

inline constexpr int kSuperBlock = 256;

class SuperBlocks {
 public:
  // Reads set `set` of the batch.
  template <int kSets>
  explicit SuperBlocks(const Batch<kSets>& batch, int set = 0) : weighted_(batch.weighted) {
    rows_to_lanes(batch.x + set * static_cast<int>(kLanes), kSuperBlock, x_);
    if (weighted_) rows_to_lanes(batch.importance + set * static_cast<int>(kLanes), kSuperBlock, importance_);
  }

  bool weighted() const { return weighted_; }
  const float* x(int i) const { return x_ + i * static_cast<int>(kLanes); }
  Floats at(int i) const { return hn::Load(kFloats, x(i)); }
  const float* importances(int i) const { return importance_ + i * static_cast<int>(kLanes); }
  Floats importance(int i) const { return hn::Load(kFloats, importances(i)); }

  // Returns the sum of squares of `count` elements from `first` on, added in order.
  Floats sum_of_squares(int first, int count) const {
    Floats sum = floats(0);
    for (int i = first; i < first + count; ++i) sum = sum + at(i) * at(i);
    return sum;
  }

  // Like reference::weigh, from element `first` on. Writes the weights to `weights`, and returns their sum.
  Floats weigh(int first, int count, Floats spread, float* weights) const {
    Floats sum = floats(0);
    for (int i = 0; i < count; ++i) {
      const Floats x = at(first + i);
      const Floats weight = importance(first + i) * hn::Sqrt(spread + x * x);
      hn::Store(weight, kFloats, weights + i * static_cast<int>(kLanes));
      sum = sum + weight;
    }
    return sum;
  }

 private:
  bool weighted_;
  alignas(64) float x_[kSuperBlock * kLanes];
  alignas(64) float importance_[kSuperBlock * kLanes];
};

// Computes codes for kCount non-negative values; the greatest value gets kMax. All codes are 0 if no value is
// above 0. Returns the scale of the codes. Codes are bytes, and wrap if a value is negative.
template <int kCount, int kMax>
Floats code_values(const Floats* values, Words* codes) {
  Floats greatest = floats(0);
  for (int i = 0; i < kCount; ++i) greatest = greater(values[i], greatest);
  const Mask some = greatest > floats(0);
  const Floats inverse = or_zero(some, floats(float{kMax}) / greatest);
  for (int i = 0; i < kCount; ++i) codes[i] = as_words(nearest_ints(inverse * values[i])) & words(0xff);
  return greatest / floats(float{kMax});
}

}  // namespace ggufmill::simd
