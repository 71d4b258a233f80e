#pragma once
// The search that starts from one inverse scale and then improves the levels one at a time
// (reference::fit_symmetric_by_steps), one block a lane. Every level waits for the one before and for a division, so
// kGroups groups are in flight.

#include "plugins/reference/fit.h"
#include "plugins/simd/fit_symmetric.h"

namespace ggufmill::simd {

// kGroups groups of kCount weights each, one after the other, in lanes.
template <int kGroups, int kCount, int kLimit>
class StepFit {
 public:
  // The groups' scales; with them the levels.
  void run(const float* x, Floats* scales) {
    x_ = x;
    if (HWY_UNLIKELY(!search<true>())) search<false>();
    for (int g = 0; g < kGroups; ++g) {
      const Floats scale = or_zero(sum_l2_[g] > floats(0), sum_xl_[g] / sum_l2_[g]);
      scales[g] = hn::IfThenZeroElse(zero_[g], scale);
    }
  }

  // In [0, 2 * kLimit).
  Ints level(int g, int i) const {
    const Ints level = to_ints(hn::Load(kFloats, values_[i][g].level)) + ints(kLimit);
    return choose(zero_[g], ints(0), level);
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  struct Value {
    float w[kLanes], wx[kLanes], level[kLanes];
  };

  Floats x(int g, int i) const { return hn::Load(kFloats, x_ + (g * kCount + i) * kStep); }

  // kQuick: false when a quotient was beyond what hn::Round can round as the specification does, which almost none is.
  template <bool kQuick>
  bool search() {
    for (int g = 0; g < kGroups; ++g) start(g);
    for (int round = 0; round < 5; ++round) {  // a group that is done stays as it is
      Mask odd = none();
      const bool moved = improve_all<kQuick>(odd);
      if (kQuick && any(odd)) return false;
      if (!moved) break;
    }
    return true;
  }

  static Mask none() { return floats(1) < floats(0); }

  template <bool kQuick>
  static Floats rounded(Floats value) {
    if constexpr (!kQuick) return to_floats(clamp(nearest_ints(value), -kLimit, kLimit - 1));
    return hn::Max(hn::Min(hn::Round(value), floats(float{kLimit - 1})), floats(float{-kLimit}));
  }

  void start(int g) {
    Floats magnitude;
    const Floats peak = extreme<kCount>([&](int i) { return x(g, i); }, magnitude);
    zero_[g] = magnitude < floats(reference::kZeroGroup);
    const Floats inverse = floats(float{-kLimit}) / choose(zero_[g], floats(1), peak);
    Floats sum_xl = floats(0), sum_l2 = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats value = x(g, i);
      const Floats w = value * value;
      const Floats l = rounded<true>(inverse * value);  // within the limit, but for rounding
      hn::Store(w, kFloats, values_[i][g].w);
      hn::Store(w * value, kFloats, values_[i][g].wx);
      hn::Store(l, kFloats, values_[i][g].level);
      sum_xl = sum_xl + w * value * l;
      sum_l2 = sum_l2 + w * l * l;
    }
    sum_xl_[g] = sum_xl;
    sum_l2_[g] = sum_l2;
  }

  // One round over all levels. Whether any moved; in `odd` those that could not be rounded the quick way.
  template <bool kQuick>
  bool improve_all(Mask& odd) {
    Floats xl[kGroups], l2[kGroups];
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) xl[g] = sum_xl_[g], l2[g] = sum_l2_[g];
    Mask moved = none();
    for (int i = 0; i < kCount; ++i) {
      GGUFMILL_UNROLL
      for (int g = 0; g < kGroups; ++g)
        moved = hn::Or(moved, improve<kQuick>(x(g, i), values_[i][g], xl[g], l2[g], odd));
    }
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) sum_xl_[g] = xl[g], sum_l2_[g] = l2[g];
    return any(moved);
  }

  // Moves one level, where that lessens the error with all others fixed. True where it moved.
  template <bool kQuick>
  static HWY_INLINE Mask improve(Floats x, Value& value, Floats& sum_xl, Floats& sum_l2, Mask& odd) {
    const Floats w = hn::Load(kFloats, value.w);
    const Floats wx = hn::Load(kFloats, value.wx);
    const Floats old = hn::Load(kFloats, value.level);
    const Floats other_xl = sum_xl - wx * old;
    const Floats other_l2 = sum_l2 - w * old * old;
    const Mask rest = other_xl > floats(0);
    const Floats quotient = x * other_l2 / other_xl;
    if constexpr (kQuick) odd = hn::Or(odd, hn::AndNot(hn::Abs(quotient) < floats(kRoundable), rest));
    const Floats better = rounded<kQuick>(quotient);
    const Floats xl = other_xl + wx * better;
    const Floats l2 = other_l2 + w * better * better;
    const Mask less = hn::And(l2 > floats(0), xl * xl * sum_l2 > sum_xl * sum_xl * l2);
    const Mask moves = hn::And(hn::AndNot(better == old, rest), less);
    hn::Store(choose(moves, better, old), kFloats, value.level);
    sum_xl = choose(moves, xl, sum_xl);
    sum_l2 = choose(moves, l2, sum_l2);
    return moves;
  }

  const float* x_ = nullptr;
  Floats sum_xl_[kGroups], sum_l2_[kGroups];
  Mask zero_[kGroups];
  alignas(64) Value values_[kCount][kGroups];
};

}  // namespace ggufmill::simd
