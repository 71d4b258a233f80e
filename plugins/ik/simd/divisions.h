#pragma once
// The search of IQ2_K in lanes: ik::search_divisions(), with the same sums in the same order.
//
// The scores of all divisions are estimated first, in an order that takes few operations. Those that are next to the
// greatest one are then tried as the plain loop tries them.
//
// Proof that no other one can win. Both take differences of the same sums of weights and of weighted values, which are
// exact here, and u is the rounding error of a float, 2^-24. In q2, all terms are positive, and each is rounded at most
// 6 times. The error of qx is at most 6 u sum(|level| |difference|) <= 6 u sqrt(q2 sum(w x^2)), by Cauchy's inequality.
// A division with a score S has qx = sqrt(S q2), so that this is 12 u qx if S >= sum(w x^2) / 4, which the search makes
// sure of. A score has an error of at most 33 u then, and four of them are less than kSpare. This does not count
// weights that are too small to change a sum. Their values change qx by less than u^2 times the rest, unless the least
// score is 1e8 times smaller than the weights times the greatest square.

#include <bit>
#include <cstring>

#include "plugins/ik/simd/sub_blocks.h"
#include "plugins/simd/sorting_network.h"

namespace ggufmill::simd {

// Finds the scales of kLanes sub-blocks; see ik::search_divisions().
template <int kCount>
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
    std::memset(near_, 0, sizeof near_);
    const bool is_known = estimate(magnitude);
    LaneBest best;
    Mask is_shifted = hn::MaskFromVec(floats(0));
    for (int first = 0; first < kCount; ++first)
      for (int second = first; second < kCount; ++second)
        for (unsigned thirds = is_known ? near_[first][second] : (1u << kCount) - (1u << second); thirds != 0;
             thirds &= thirds - 1)
          take(first, second, std::countr_zero(thirds), best, is_shifted);
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

  void sort() {
    for_each_pair_to_order(kCount, [this](int i, int j) { order(i, j); });
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

  // Returns the sums of the first two parts.
  HWY_INLINE Parts first_two(int first, int second, int way) const {
    const Parts at_first = before_[first].load(), at_second = before_[second].load();
    return (at_first - before_[0].load()).terms(level(way, 0)) + (at_second - at_first).terms(level(way, 1));
  }

  // Tries a division, as the plain loop does.
  HWY_INLINE void take(int first, int second, int third, LaneBest& best, Mask& is_shifted) const {
    const Parts part = before_[third].load() - before_[second].load();
    for (int way = 0; way < 4; ++way) {
      const Parts all = (first_two(first, second, way) + part.terms(level(way, 2))) + last_[third][way].load();
      const Mask taken = best.take(all.qx, all.q2);
      is_shifted = way % 2 == 1 ? hn::Or(is_shifted, taken) : hn::AndNot(taken, is_shifted);
    }
  }

  static constexpr float kSpare = 1e-5f;

  // Sets near_. Returns whether the proof holds for all lanes.
  bool estimate(Floats magnitude) {
    Floats squares = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats x = hn::Load(kFloats, items_[i].x);
      squares = squares + hn::Load(kFloats, items_[i].weight) * x * x;
    }
    greatest_ = floats(0);
    for (const bool is_shifted : {false, true})
      for (const float sign : {1.0f, -1.0f}) divide_by_nearest(kLevels<4>[is_shifted], magnitude / floats(30 * sign));
    // Their sums are not those of the divisions: 16 terms are added in another order, so that the error of qx is at
    // most 48 * 16 u sum(w |x|), and that of q2 1250 * 16 u sum(w).
    greatest_ = greatest_ * floats(1 - 2e-3f);
    cut_ = greatest_ * floats(1 - kSpare);
    for (int second = 0; second < kCount; ++second) {
      for (int first = 0; first <= second; ++first)
        for (int way = 0; way < 4; ++way) two_[first][way].store(first_two(first, second, way));
      for (int third = second; third < kCount; ++third) estimate(second, third);
    }
    const Floats weights = before_[kCount].load().q2, least = floats(1e-30f), most = floats(1e17f);
    const auto in_range = [&](Floats sum) { return hn::And(sum > least, sum < most); };
    Mask known = hn::And(hn::And(in_range(weights), in_range(greatest_)), in_range(weights * greatest_));
    known = hn::And(known, weights * magnitude * magnitude < hn::Min(most, floats(1e8f) * greatest_));
    known = hn::And(known, squares < floats(4) * greatest_);
    return all(hn::Or(known, magnitude < floats(ik::kZero)));
  }

  // Estimates the division that has the nearest levels, for some scales: each is the best one for the levels before.
  HWY_INLINE void divide_by_nearest(const LevelTable<4>& table, Floats scale) {
    for (int n = 0; n < 2; ++n) {
      Floats qx = floats(0), q2 = floats(0);
      const Floats inverse = floats(1) / scale;
      for (int i = 0; i < kCount; ++i) {
        const Floats x = hn::Load(kFloats, items_[i].x), scaled = inverse * x;
        Floats level = floats(table.value(std::size_t{0}));
        GGUFMILL_UNROLL
        for (std::size_t k = 0; k < 3; ++k)
          level = choose(scaled < floats(table.border(k)), level, floats(table.value(k + 1)));
        if (i == kCount - 1)  // the last part is never empty
          level = choose(scale > floats(0), floats(table.value(std::size_t{3})), floats(table.value(std::size_t{0})));
        const Floats weighted = hn::Load(kFloats, items_[i].weight) * level;
        qx = hn::MulAdd(weighted, x, qx);
        q2 = hn::MulAdd(weighted, level, q2);
      }
      scale = qx / q2;
      greatest_ = hn::Max(greatest_, scale * qx);
    }
  }

  HWY_INLINE void estimate(int second, int third) {
    const Parts part = before_[third].load() - before_[second].load();
    Parts rest[4];
    GGUFMILL_UNROLL
    for (int way = 0; way < 4; ++way) rest[way] = part.terms(level(way, 2)) + last_[third][way].load();
    Floats excess = floats(0), other = floats(0);
    for (int first = 0; first <= second; ++first) {
      GGUFMILL_UNROLL
      for (int way = 0; way < 4; ++way) {
        const Parts all = two_[first][way].load() + rest[way];
        Floats& most = way % 2 == 0 ? excess : other;
        most = hn::Max(most, hn::NegMulAdd(cut_, all.q2, all.qx * all.qx));
      }
    }
    if (HWY_LIKELY(!any(hn::Max(excess, other) > floats(0)))) return;
    for (int first = 0; first <= second; ++first) {
      Mask is_near = hn::MaskFromVec(floats(0));
      for (int way = 0; way < 4; ++way) {
        const Parts all = two_[first][way].load() + rest[way];
        const Floats score = all.qx * all.qx / all.q2;
        is_near = hn::Or(is_near, score > cut_);
        greatest_ = hn::Max(greatest_, score);
        cut_ = greatest_ * floats(1 - kSpare);
      }
      if (any(is_near)) near_[first][second] |= 1u << third;
    }
  }

  alignas(64) Item items_[kCount];
  alignas(64) StoredParts before_[kCount + 1];
  alignas(64) StoredParts last_[kCount][4];
  alignas(64) StoredParts two_[kCount][4];
  Floats greatest_, cut_;
  std::uint32_t near_[kCount][kCount];  // bits: third parts of divisions that may win
};

}  // namespace ggufmill::simd
