#pragma once
// The search that starts from one inverse scale and then improves the levels one at a time
// (reference::fit_symmetric_by_steps), with one group per lane.
//
// Four out of five groups keep their first levels, which a test shows without the search. Let s = XL / L2, the scale of
// the first levels; the best level of value x with all others fixed is the rounded quotient
//
//   Q = x (L2 - w l l) / (XL - w x l),  and with w = x x:  Q - l = (x - s l) / (s - w x l / L2)
//
// So level l stays if |x - s l| + w x l / (2 L2) < s / 2. No product w x l is negative if the extreme value is: levels
// have the signs of their values at first, and a quotient by a positive sum has the sign of its value. Therefore x may
// be replaced by -limit * s or (limit - 1) * s if it is beyond: the limits clamp Q, too. With u = 2^-24, the roundings
// on both sides change this by less than 100 u s, and those of the quotient by less than 20 u, unless a sum is near the
// low end of the range of floats; near the high end, the products of sums that a change must exceed are infinite. The
// test uses s / 2 (1 - 512 u), and sums above 2^-100. If the extreme value is positive, no level has the sign of its
// value. Then no product w x l is above 0 and, as rounding is monotonic, XL is not above any of them, so XL - w x l is
// not above 0 either, and no level moves.

#include <algorithm>
#include <bit>

#include "plugins/reference/fit.h"
#include "plugins/simd/compress.h"
#include "plugins/simd/fit_symmetric.h"
#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

// Returns the groups in which a round may change a level. x(i), level(i) and wxl(i) return what value i is to the sums.
template <int kCount, int kLimit, class X, class Level, class Wxl>
HWY_INLINE Mask may_move(Floats sum_xl, Floats sum_l2, const X& x, const Level& level, const Wxl& wxl) {
  const Floats scale = sum_xl / sum_l2, half = floats(0.5f) / sum_l2;
  const Floats low = floats(float{-kLimit}) * scale, high = floats(float{kLimit - 1}) * scale;
  Floats farthest = floats(0);
  for (int i = 0; i < kCount; ++i) {
    const Floats distance = hn::Abs(hn::NegMulAdd(scale, level(i), hn::Min(hn::Max(x(i), low), high)));
    farthest = hn::Max(farthest, hn::MulAdd(half, wxl(i), distance));
  }
  const Mask near = farthest < floats(0.5f - 0x1p-16f) * scale;
  return hn::Not(hn::And(near, hn::Min(sum_xl, sum_l2) > floats(0x1p-100f)));
}

inline Floats step_scale(Floats sum_xl, Floats sum_l2) { return or_zero(sum_l2 > floats(0), sum_xl / sum_l2); }

// The first levels of groups, which map the first value of greatest magnitude to the end of the range. Value i is at
// x[i * kLanes].
template <int kCount, int kLimit>
class FirstLevels {
 public:
  explicit FirstLevels(const float* x) : x_(x) {
    peak_ = extreme_of_ends<kCount>([&](int i) { return this->x(i); }, reference::kZeroGroup, zero_);
    const Floats inverse = hn::IfThenZeroElse(zero_, floats(float{-kLimit}) / peak_);
    Floats xl = floats(0), l2 = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats value = this->x(i);
      const Floats level = hn::Min(hn::Round(inverse * value), floats(float{kLimit - 1}));
      const Floats w = value * value;
      const Floats wxl = w * value * level;
      hn::Store(level, kFloats, level_[i]);
      hn::Store(wxl, kFloats, wxl_[i]);
      xl = xl + wxl;
      l2 = l2 + w * level * level;
    }
    sum_xl_ = xl, sum_l2_ = l2;
  }

  Floats x(int i) const { return hn::Load(kFloats, x_ + i * static_cast<int>(kLanes)); }
  Floats level(int i) const { return hn::Load(kFloats, level_[i]); }
  Floats sum_xl() const { return sum_xl_; }
  Floats sum_l2() const { return sum_l2_; }
  // Returns the groups of zeros, whose levels as stored are 0.
  Mask zero() const { return zero_; }

  // Returns the groups that a search may change.
  Mask open() const {
    const auto wxl = [&](int i) { return hn::Load(kFloats, wxl_[i]); };
    const Mask moves = may_move<kCount, kLimit>(
        sum_xl_, sum_l2_, [&](int i) { return x(i); }, [&](int i) { return level(i); }, wxl);
    return hn::AndNot(hn::Or(zero_, peak_ > floats(0)), moves);
  }

 private:
  const float* x_;
  Mask zero_;
  Floats peak_, sum_xl_, sum_l2_;
  alignas(64) float level_[kCount][kLanes], wxl_[kCount][kLanes];
};

// kVectors vectors of groups of kCount values each, with levels from -kLimit to kLimit - 1.
template <int kVectors, int kCount, int kLimit>
class StepGroups {
 public:
  void set(int v, int i, Floats x, Floats level) {
    hn::Store(x, kFloats, values_[i][v].x);
    hn::Store(level, kFloats, values_[i][v].level);
  }
  void set_sums(int v, Floats xl, Floats l2) { xl_[v] = xl, l2_[v] = l2; }

  Floats x(int v, int i) const { return hn::Load(kFloats, values_[i][v].x); }
  Floats level(int v, int i) const { return hn::Load(kFloats, values_[i][v].level); }
  Floats sum_xl(int v) const { return xl_[v]; }
  Floats sum_l2(int v) const { return l2_[v]; }

  // Performs one round over all levels. Returns true if any level changed.
  bool improve() {
    Floats xl[kVectors], l2[kVectors];
    Mask moved = floats(1) < floats(0);
    GGUFMILL_UNROLL
    for (int v = 0; v < kVectors; ++v) xl[v] = xl_[v], l2[v] = l2_[v];
    for (int i = 0; i < kCount; ++i) {
      GGUFMILL_UNROLL
      for (int v = 0; v < kVectors; ++v) moved = hn::Or(moved, improve(values_[i][v], xl[v], l2[v]));
    }
    GGUFMILL_UNROLL
    for (int v = 0; v < kVectors; ++v) xl_[v] = xl[v], l2_[v] = l2[v];
    return any(moved);
  }

  // Returns the groups that another round may change.
  Mask open(int v) const {
    const auto wxl = [&](int i) { return x(v, i) * x(v, i) * x(v, i) * level(v, i); };
    return may_move<kCount, kLimit>(
        xl_[v], l2_[v], [&](int i) { return x(v, i); }, [&](int i) { return level(v, i); }, wxl);
  }

 private:
  struct Value {
    float x[kLanes], level[kLanes];
  };

  // Sets one level to its optimum with all others fixed, if this reduces the error. Returns true in the lanes where the
  // level changed.
  static HWY_INLINE Mask improve(Value& value, Floats& sum_xl, Floats& sum_l2) {
    const Floats x = hn::Load(kFloats, value.x), old = hn::Load(kFloats, value.level);
    const Floats w = x * x, wx = w * x;
    const Floats other_xl = sum_xl - wx * old;
    const Floats other_l2 = sum_l2 - w * old * old;
    const Mask rest = other_xl > floats(0);
    const Floats better = to_floats(clamp(nearest_ints(x * other_l2 / other_xl), -kLimit, kLimit - 1));
    const Floats xl = other_xl + wx * better;
    const Floats l2 = other_l2 + w * better * better;
    const Mask other = and_differ(and_greater(rest, l2, floats(0)), better, old);
    const Mask moves = and_greater(other, xl * xl * sum_l2, sum_xl * sum_xl * l2);
    hn::Store(choose(moves, better, old), kFloats, value.level);
    sum_xl = choose(moves, xl, sum_xl);
    sum_l2 = choose(moves, l2, sum_l2);
    return moves;
  }

  Floats xl_[kVectors], l2_[kVectors];
  alignas(64) Value values_[kCount][kVectors];
};

// Fits up to kVectors vectors of groups. Those that the first levels do not settle are packed into new vectors, again
// after each round.
template <int kVectors, int kCount, int kLimit>
class StepFits {
 public:
  // Fits the group in each lane. Value i is at x[i * kLanes], and in lane l also at rows[l][first + i]. The scales are
  // written to `scales`, but only finish() does so for all groups.
  void fit(const float* x, const float* const* rows, int first, float* scales) {
    const FirstLevels<kCount, kLimit> levels(x);
    hn::Store(step_scale(levels.sum_xl(), levels.sum_l2()), kFloats, scales);
    for (unsigned lanes = mask_bits(levels.open()); lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      rows_[count_] = rows[lane] + first;
      scales_[count_++] = scales + lane;
    }
  }

  void finish() {
    read_rows();
    for (int round = 0; round < kRounds && count_ > 0; ++round) {
      const std::size_t count = count_;
      count_ = 0;
      for (std::size_t from = 0; from < count; from += kAtOnce * kLanes)
        improve(from, std::min(kAtOnce * kLanes, count - from));
    }
    count_ = 0;
  }

  // Sets the levels of the group in each lane, as they are stored.
  static void find_levels(const float* x, Words* stored) {
    const FirstLevels<kCount, kLimit> first(x);
    StepGroups<1, kCount, kLimit> groups;
    for (int i = 0; i < kCount; ++i) groups.set(0, i, first.x(i), first.level(i));
    groups.set_sums(0, first.sum_xl(), first.sum_l2());
    for (int round = 0; round < kRounds; ++round)
      if (!groups.improve()) break;
    for (int i = 0; i < kCount; ++i)
      stored[i] = as_words(choose(first.zero(), ints(0), to_ints(groups.level(0, i)) + ints(kLimit)));
  }

 private:
  static constexpr int kRounds = 5;
  static constexpr std::size_t kAtOnce = 3;  // vectors in flight: each level depends on the previous one
  static constexpr std::size_t kSize = (kVectors + kAtOnce) * kLanes;

  // Reads the groups of `rows_`.
  void read_rows() {
    if (count_ == 0) return;
    std::fill_n(rows_ + count_, kLanes, rows_[count_ - 1]);
    for (std::size_t from = 0; from < count_; from += kLanes) {
      alignas(64) float x[kCount * kLanes];
      rows_to_lanes(rows_ + from, kCount, x);
      const FirstLevels<kCount, kLimit> first(x);
      for (int i = 0; i < kCount; ++i) {
        hn::Store(first.x(i), kFloats, x_[i] + from);
        hn::Store(first.level(i), kFloats, level_[i] + from);
      }
      hn::Store(first.sum_xl(), kFloats, xl_ + from);
      hn::Store(first.sum_l2(), kFloats, l2_ + from);
    }
  }

  // Performs one round on `count` groups, and appends those that it does not settle to the list.
  void improve(std::size_t from, std::size_t count) {
    StepGroups<kAtOnce, kCount, kLimit> groups;
    for (std::size_t v = 0; v < kAtOnce; ++v) {
      const std::size_t at = v * kLanes < count ? from + v * kLanes : from;  // a group may be fitted more than once
      for (int i = 0; i < kCount; ++i)
        groups.set(static_cast<int>(v), i, hn::Load(kFloats, x_[i] + at), hn::Load(kFloats, level_[i] + at));
      groups.set_sums(static_cast<int>(v), hn::Load(kFloats, xl_ + at), hn::Load(kFloats, l2_ + at));
    }
    groups.improve();
    for (std::size_t v = 0; v * kLanes < count; ++v)
      keep(groups, static_cast<int>(v), from + v * kLanes, count - v * kLanes);
  }

  template <class Groups>
  void keep(const Groups& groups, int v, std::size_t at, std::size_t count) {
    alignas(64) float scales[kLanes];
    hn::Store(step_scale(groups.sum_xl(v), groups.sum_l2(v)), kFloats, scales);
    for (std::size_t lane = 0; lane < std::min(count, kLanes); ++lane) *scales_[at + lane] = scales[lane];
    unsigned open = mask_bits(groups.open(v));
    if (count < kLanes) open &= (1u << count) - 1;
    const auto append = [&](Floats a, float* list_a, Floats b, float* list_b) {
      append_lanes(open, as_words(a), reinterpret_cast<std::uint32_t*>(list_a + count_), as_words(b),
                   reinterpret_cast<std::uint32_t*>(list_b + count_));
    };
    for (int i = 0; i < kCount; ++i) append(groups.x(v, i), x_[i], groups.level(v, i), level_[i]);
    append(groups.sum_xl(v), xl_, groups.sum_l2(v), l2_);
    for (; open != 0; open &= open - 1)
      scales_[count_++] = scales_[at + static_cast<std::size_t>(std::countr_zero(open))];
  }

  std::size_t count_ = 0;  // of the groups that are not settled
  const float* rows_[kSize];
  float* scales_[kSize];
  alignas(64) float x_[kCount][kSize], level_[kCount][kSize], xl_[kSize], l2_[kSize];
};

}  // namespace ggufmill::simd
