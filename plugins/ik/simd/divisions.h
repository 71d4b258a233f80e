#pragma once
// The search of IQ2_K in lanes: ik::search_divisions() and ik::fit_codes(), with the same sums in the same order.

#include "plugins/ik/simd/sub_blocks.h"

namespace ggufmill::simd {

// Finds the scales of kLanes sub-blocks; see ik::search_divisions().
template <int kCount, int kFirstEnd = kCount, int kThirdBegin = 0>
class DivisionSearch {
 public:
  // Weight and value i of a lane's sub-block are at x[i * kLanes] and weights[i * kLanes].
  FoundScales run(const float* x, const float* weights) {
    Floats magnitude = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kStep);
      magnitude = hn::Max(magnitude, hn::Abs(value));
      keep(i, value, hn::Load(kFloats, weights + i * kStep), floats(static_cast<float>(i)));
    }
    sort();
    sum();
    LaneBest best;
    Mask is_shifted = hn::MaskFromVec(floats(0));
    for (int first = 0; first < kFirstEnd; ++first)
      for (int second = first; second < kCount; ++second) try_thirds(first, second, best, is_shifted);
    const Mask is_zero = magnitude < floats(ik::kZero);
    return {hn::IfThenZeroElse(is_zero, best.scale), hn::AndNot(is_zero, is_shifted)};
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  // The four ways to give levels to the parts, in their order: both tables ascending, then both descending.
  static constexpr float level(int way, int part) {
    return kLevels<4>[way % 2 == 1].value(static_cast<std::size_t>(way < 2 ? part : 3 - part));
  }

  struct Item {
    float x[kLanes], weight[kLanes], index[kLanes];
  };
  // Sums of weighted values and of weights.
  struct Parts {
    Floats qx, q2;

    // Returns the terms of a part with this level.
    Parts terms(float level) const {
      if (level == 1) return *this;
      return {qx * floats(level), q2 * floats(level) * floats(level)};
    }
    Parts operator+(const Parts& other) const { return {qx + other.qx, q2 + other.q2}; }
    Parts operator-(const Parts& other) const { return {qx - other.qx, q2 - other.q2}; }
  };
  struct StoredParts {
    float qx[kLanes], q2[kLanes];

    Parts load() const { return {hn::Load(kFloats, qx), hn::Load(kFloats, q2)}; }
    void store(const Parts& parts) {
      hn::Store(parts.qx, kFloats, qx);
      hn::Store(parts.q2, kFloats, q2);
    }
  };

  void keep(int i, Floats x, Floats weight, Floats index) {
    hn::Store(x, kFloats, items_[i].x);
    hn::Store(weight, kFloats, items_[i].weight);
    hn::Store(index, kFloats, items_[i].index);
  }

  // Puts two items in order; of equal values, the one that was first comes first.
  HWY_INLINE void order(int i, int j) {
    const Floats x1 = hn::Load(kFloats, items_[i].x), x2 = hn::Load(kFloats, items_[j].x);
    const Floats w1 = hn::Load(kFloats, items_[i].weight), w2 = hn::Load(kFloats, items_[j].weight);
    const Floats i1 = hn::Load(kFloats, items_[i].index), i2 = hn::Load(kFloats, items_[j].index);
    const Mask swaps = hn::Or(x2 < x1, hn::And(x1 == x2, i2 < i1));
    keep(i, choose(swaps, x2, x1), choose(swaps, w2, w1), choose(swaps, i2, i1));
    keep(j, choose(swaps, x1, x2), choose(swaps, w1, w2), choose(swaps, i1, i2));
  }

  // Batcher's odd-even merge sort.
  void sort() {
    for (int size = 1; size < kCount; size *= 2)
      for (int step = size; step > 0; step /= 2)
        for (int from = step % size; from + step < kCount; from += 2 * step)
          for (int i = from; i < from + step && i + step < kCount; ++i)
            if (i / (2 * size) == (i + step) / (2 * size)) order(i, i + step);
  }

  // Sums the items before each, and prepares the last part.
  void sum() {
    Parts sum{floats(0), floats(0)};
    before_[0].store(sum);
    for (int i = 0; i < kCount; ++i) {
      const Floats weight = hn::Load(kFloats, items_[i].weight);
      sum = sum + Parts{weight * hn::Load(kFloats, items_[i].x), weight};
      before_[i + 1].store(sum);
    }
    for (int i = 0; i < kCount; ++i)
      for (int way = 0; way < 4; ++way) last_[i][way].store((sum - before_[i].load()).terms(level(way, 3)));
  }

  HWY_INLINE void try_thirds(int first, int second, LaneBest& best, Mask& is_shifted) const {
    const Parts at_first = before_[first].load(), at_second = before_[second].load();
    Parts two[4];
    GGUFMILL_UNROLL
    for (int way = 0; way < 4; ++way)
      two[way] = (at_first - before_[0].load()).terms(level(way, 0)) + (at_second - at_first).terms(level(way, 1));
    for (int third = std::max(second, kThirdBegin); third < kCount; ++third) {
      const Parts part = before_[third].load() - at_second;
      Parts all[4];
      Mask better = hn::MaskFromVec(floats(0));
      GGUFMILL_UNROLL
      for (int way = 0; way < 4; ++way) {
        all[way] = (two[way] + part.terms(level(way, 2))) + last_[third][way].load();
        better = hn::Or(better, all[way].qx * all[way].qx > best.score * all[way].q2);
      }
      // All that is_better() accepts are in this mask. If there are none, the best one does not change.
      if (HWY_LIKELY(!any(better))) continue;
      for (int way = 0; way < 4; ++way) {
        const Mask taken = best.take(all[way].qx, all[way].q2);
        is_shifted = way % 2 == 1 ? hn::Or(is_shifted, taken) : hn::AndNot(taken, is_shifted);
      }
    }
  }

  alignas(64) Item items_[kCount];
  alignas(64) StoredParts before_[kCount + 1];
  alignas(64) StoredParts last_[kCount][4];
};

}  // namespace ggufmill::simd
