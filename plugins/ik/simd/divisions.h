#pragma once
// The search of IQ2_K in lanes: ik::search_divisions(), with the same sums in the same order.
//
// First, all divisions are compared with the score of one that is about the best. Those that are not below it are then
// tried as the plain loop tries them. The sums of a division are those of the ends of its parts, each of which depends
// on one end alone: qx = A + X for A of the first part and X of the others. So qx^2 is above cut * q2 if A^2 - cut * q2
// of A, plus 2 A X, is above cut * q2 of X - X^2. The former is computed once for all X.
//
// Proof that no other one can win. u is the rounding error of a float, 2^-24; W = sum(w), T = sum(w x^2), and G is the
// greatest score. Sums of the weights and weighted values before an end are the same as in the plain loop, so they
// count as exact. The plain loop takes differences of them. In its q2, all terms are positive, and each is rounded at
// most 6 times. The error of its qx is at most 6 u sum(|level| |difference|) <= 6 u sqrt(q2 T), by Cauchy's inequality.
// The search makes sure that T <= 4 G. A division whose score S is about G has qx = sqrt(S q2), so that this is 12 u
// qx, and its score has an error of at most 33 u. The ends add the same terms in another order. In their q2, all terms
// are positive, too. The error of their qx is at most 200 u sum(w |x|) <= 200 u sqrt(W T), which is 400 u qx, because
// no level is below 1, so that q2 >= W. The levels of a first part are greater than those that A has in place of them.
// Therefore A^2 <= q2 T and X^2 <= 4 q2 T, and the comparison is wrong by at most 80 u G q2. In total, these are less
// than 1000 u G, and kSpare is more. This does not count weights that are too small to change a sum. Their values
// change qx by less than u^2 times the rest, unless the least score is 1e8 times smaller than the weights times the
// greatest square.

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

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

  // The sums, and the excess of a score, that an end of the first part adds.
  struct First {
    StoredParts sums;
    float excess[kLanes];
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

  static constexpr float kSpare = 1e-4f;

  // Sets near_. Returns whether the proof holds for all lanes.
  bool estimate(Floats magnitude) {
    Floats squares = floats(0);
    magnitudes_ = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats x = hn::Load(kFloats, items_[i].x), weighted = hn::Load(kFloats, items_[i].weight) * x;
      squares = squares + weighted * x;
      magnitudes_ = magnitudes_ + hn::Abs(weighted);
    }
    greatest_ = floats(0);
    for (const bool is_shifted : {false, true})
      for (const float sign : {1.0f, -1.0f}) divide_by_nearest(kLevels<4>[is_shifted], magnitude / floats(30 * sign));
    cut_ = greatest_ * floats(1 - kSpare);
    sum_ends();
    for (int second = 0; second < kCount; ++second) {
      if (HWY_UNLIKELY(any(cut_ > floats(1 + 4 * kSpare) * cut_of_excesses_))) set_excesses();
      unsigned thirds = 0;
      int third = second;
      for (; third + 1 < kCount; third += 2) thirds |= estimate<2>(second, third) << third;
      if (third < kCount) thirds |= estimate<1>(second, third) << third;
      for (; thirds != 0; thirds &= thirds - 1) find_near(second, std::countr_zero(thirds));
    }
    const Floats weights = before_[kCount].load().q2, least = floats(1e-30f), most = floats(1e17f);
    const auto in_range = [&](Floats sum) { return hn::And(sum > least, sum < most); };
    Mask known = hn::And(hn::And(in_range(weights), in_range(greatest_)), in_range(weights * greatest_));
    known = hn::And(known, weights * magnitude * magnitude < hn::Min(most, floats(1e8f) * greatest_));
    known = hn::And(known, squares < floats(4) * greatest_);
    return all(hn::Or(known, magnitude < floats(ik::kZero)));
  }

  // Returns a bound of the score of a division from sums in the order of the values. They differ from those of the
  // parts by at most 128 kCount u sum(w |x|) in qx, and by 2400 kCount u W and 18 u q2 in q2.
  Floats least_score(Floats scale, Floats qx, Floats q2) const {
    const Floats spare = floats(kSpare / 2) + floats(2400 * kCount * 0x1p-24f) * before_[kCount].load().q2 / q2;
    return scale * qx * (floats(1) - spare) - floats(256 * kCount * 0x1p-24f) * hn::Abs(scale) * magnitudes_;
  }

  // Takes the scores of divisions that have the nearest levels for a scale, which is then the best one for them.
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
      greatest_ = hn::Max(greatest_, least_score(scale, qx, q2));
    }
  }

  // Computes what the ends of the parts add to the sums.
  void sum_ends() {
    const Parts all = before_[kCount].load();
    GGUFMILL_UNROLL
    for (int way = 0; way < 4; ++way) {
      const float l0 = level(way, 0), l1 = level(way, 1), l2 = level(way, 2), l3 = level(way, 3);
      const float from_first = l0 * l0 - l1 * l1, to_last = l3 * l3 - l2 * l2, middle = l1 * l1 - l2 * l2;
      const Parts rest{all.qx * floats(l3), all.q2 * floats(std::min(l1 * l1, l2 * l2))};
      for (int i = 0; i < kCount; ++i) {
        const Parts before = before_[i].load(), after = all - before;
        firsts_[way][i].sums.store({before.qx * floats(l0 - l1), before.q2 * floats(from_first)});
        seconds_[i][way].store(
            {before.qx * floats(l1 - l2), middle > 0 ? before.q2 * floats(middle) : after.q2 * floats(-middle)});
        thirds_[i][way].store(
            {hn::MulAdd(before.qx, floats(l2 - l3), rest.qx), hn::MulAdd(after.q2, floats(to_last), rest.q2)});
      }
    }
    set_excesses();
  }

  // Computes the excesses for the cut. Those for a lower one are greater.
  void set_excesses() {
    cut_of_excesses_ = cut_;
    for (auto& of_way : firsts_)
      for (First& first : of_way) {
        const Parts sums = first.sums.load();
        hn::Store(hn::NegMulAdd(cut_, sums.q2, sums.qx * sums.qx), kFloats, first.excess);
      }
  }

  // Returns the square of a sum qx less the greatest score times q2, without the terms that are the same for every end
  // of the first part.
  static HWY_INLINE Floats excess(const First& first, Floats twice_rest) {
    return hn::MulAdd(hn::Load(kFloats, first.sums.qx), twice_rest, hn::Load(kFloats, first.excess));
  }

  // The sums but for the first part.
  struct Rest {
    Floats twice_qx, least;  // what excess() must be for a score above the cut
  };
  HWY_INLINE Rest rest(int second, int third, int way) const {
    const Parts sums = seconds_[second][way].load() + thirds_[third][way].load();
    return {sums.qx + sums.qx, hn::NegMulAdd(sums.qx, sums.qx, cut_ * sums.q2)};
  }

  // Compares the divisions with kThirds ends of the third part, from `third` on, with the cut. Returns the bits of
  // those that have one that is above it.
  template <int kThirds>
  HWY_INLINE unsigned estimate(int second, int third) const {
    constexpr int kAtOnce = 2 * kThirds;
    Floats most[kThirds];
    GGUFMILL_UNROLL
    for (int n = 0; n < kThirds; ++n) most[n] = floats(std::numeric_limits<float>::lowest());
    GGUFMILL_UNROLL
    for (int way = 0; way < 4; way += 2) {
      Rest rests[kAtOnce];
      Floats excesses[kAtOnce];
      GGUFMILL_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        rests[n] = rest(second, third + n / 2, way + n % 2);
        excesses[n] = excess(firsts_[way + n % 2][0], rests[n].twice_qx);
      }
      for (int first = 1; first <= second; ++first) {
        GGUFMILL_UNROLL
        for (int n = 0; n < kAtOnce; ++n)
          excesses[n] = hn::Max(excesses[n], excess(firsts_[way + n % 2][first], rests[n].twice_qx));
      }
      GGUFMILL_UNROLL
      for (int n = 0; n < kAtOnce; ++n) most[n / 2] = hn::Max(most[n / 2], excesses[n] - rests[n].least);
    }
    unsigned above = 0;
    GGUFMILL_UNROLL
    for (int n = 0; n < kThirds; ++n) above |= any(most[n] > floats(0)) ? 1u << n : 0;
    return above;
  }

  // Sets near_ for the divisions with these ends of the second and third part.
  HWY_INLINE void find_near(int second, int third) {
    const Rest rests[] = {rest(second, third, 0), rest(second, third, 1), rest(second, third, 2),
                          rest(second, third, 3)};
    for (int first = 0; first <= second; ++first) {
      Floats most = excess(firsts_[0][first], rests[0].twice_qx) - rests[0].least;
      GGUFMILL_UNROLL
      for (int way = 1; way < 4; ++way)
        most = hn::Max(most, excess(firsts_[way][first], rests[way].twice_qx) - rests[way].least);
      if (HWY_LIKELY(!any(most > floats(0)))) continue;
      near_[first][second] |= 1u << third;
      const Parts part = before_[third].load() - before_[second].load();
      for (int way = 0; way < 4; ++way) {
        const Parts all = (first_two(first, second, way) + part.terms(level(way, 2))) + last_[third][way].load();
        greatest_ = hn::Max(greatest_, all.qx * all.qx / all.q2);
      }
      cut_ = greatest_ * floats(1 - kSpare);
    }
  }

  alignas(64) Item items_[kCount];
  alignas(64) StoredParts before_[kCount + 1];
  alignas(64) StoredParts last_[kCount][4];
  alignas(64) First firsts_[4][kCount];
  alignas(64) StoredParts seconds_[kCount][4], thirds_[kCount][4];
  Floats magnitudes_;  // sum of weighted ones
  Floats greatest_, cut_, cut_of_excesses_;
  std::uint32_t near_[kCount][kCount];  // bits: third parts of divisions that may win
};

}  // namespace ggufmill::simd
