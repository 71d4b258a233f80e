#pragma once
// The search that starts from one inverse scale and then improves the levels one at a time
// (reference::fit_symmetric_by_steps), with one group per lane. Each level depends on the previous one and on a
// division, so kGroups vectors of groups are in flight.

#include "plugins/reference/fit.h"
#include "plugins/simd/fit_symmetric.h"

namespace ggufmill::simd {

// Location of the weights of groups. In the lanes of vector v, weight i is at first[v * vector + i * weight].
struct StepInput {
  const float* first;
  int vector, weight;
};

// kGroups vectors of groups of kCount weights each.
template <int kGroups, int kCount, int kLimit>
class StepFit {
 public:
  static constexpr int kRounds = 5;

  // Computes the levels and the scales, in at most `rounds` rounds. A group is finished after the first round that
  // changes none of its levels.
  void run(const StepInput& x, int rounds) {
    x_ = x;
    if (HWY_UNLIKELY(!search<true>(rounds))) search<false>(rounds);
  }

  // Returns true in the lanes where the last round changed a level.
  Mask moved(int g) const { return hn::AndNot(zero_[g], moved_[g]); }

  Floats scale(int g) const {
    const Floats scale = or_zero(sum_l2_[g] > floats(0), sum_xl_[g] / sum_l2_[g]);
    return hn::IfThenZeroElse(zero_[g], scale);
  }

  // Returns a level in [0, 2 * kLimit).
  Ints level(int g, int i) const {
    const Ints level = to_ints(hn::Load(kFloats, values_[i][g].level)) + ints(kLimit);
    return choose(zero_[g], ints(0), level);
  }

 private:
  struct Value {
    float w[kLanes], wx[kLanes], level[kLanes], wl2[kLanes], wxl[kLanes];
  };

  Floats x(int g, int i) const { return hn::Load(kFloats, x_.first + g * x_.vector + i * x_.weight); }

  // With kQuick, returns false if a quotient was outside the range in which round_to_ints() follows the specification.
  // This is very rare.
  template <bool kQuick>
  bool search(int rounds) {
    start();
    for (int round = 0; round < rounds; ++round) {  // a finished group does not change
      Ints largest = ints(0);
      const bool moved = improve_all<kQuick>(largest);
      if (kQuick && !all(as_floats(as_words(largest)) < floats(kRoundable))) return false;
      if (!moved) break;
    }
    return true;
  }

  static Mask none() { return floats(1) < floats(0); }

  template <bool kQuick>
  static Floats rounded(Floats value) {
    return to_floats(clamp(kQuick ? round_to_ints(value) : nearest_ints(value), -kLimit, kLimit - 1));
  }

  // Computes the levels for the scale that maps the first value of greatest magnitude to the end of the range.
  void start() {
    Floats magnitude[kGroups], peak[kGroups], inverse[kGroups];
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) magnitude[g] = peak[g] = floats(0);
    for (int i = 0; i < kCount; ++i) {
      GGUFMILL_UNROLL
      for (int g = 0; g < kGroups; ++g) keep_extreme(x(g, i), magnitude[g], peak[g]);
    }
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      zero_[g] = magnitude[g] < floats(reference::kZeroGroup);
      inverse[g] = floats(float{-kLimit}) / choose(zero_[g], floats(1), peak[g]);
      sum_xl_[g] = sum_l2_[g] = floats(0);
    }
    for (int g = 0; g < kGroups; ++g) {
      Floats sum_xl = floats(0), sum_l2 = floats(0);
      for (int i = 0; i < kCount; ++i) {
        const Floats value = x(g, i);
        const Floats w = value * value, wx = w * value;
        const Floats l = rounded<true>(inverse[g] * value);  // within the limits, except for rounding
        const Floats wxl = wx * l, wl2 = w * l * l;
        hn::Store(w, kFloats, values_[i][g].w);
        hn::Store(wx, kFloats, values_[i][g].wx);
        hn::Store(l, kFloats, values_[i][g].level);
        hn::Store(wxl, kFloats, values_[i][g].wxl);
        hn::Store(wl2, kFloats, values_[i][g].wl2);
        sum_xl = sum_xl + wxl;
        sum_l2 = sum_l2 + wl2;
      }
      sum_xl_[g] = sum_xl;
      sum_l2_[g] = sum_l2;
    }
  }

  // Performs one round over all levels. Returns true if any level changed. Stores in `largest` the largest magnitude
  // that was rounded, as bits; these order like integers, with NaNs above all numbers.
  template <bool kQuick>
  bool improve_all(Ints& largest) {
    Floats xl[kGroups], l2[kGroups];
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) xl[g] = sum_xl_[g], l2[g] = sum_l2_[g];
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) moved_[g] = none();
    for (int i = 0; i < kCount; ++i) {
      GGUFMILL_UNROLL
      for (int g = 0; g < kGroups; ++g)
        moved_[g] = hn::Or(moved_[g], improve<kQuick>(x(g, i), values_[i][g], xl[g], l2[g], largest));
    }
    Mask some = none();
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) sum_xl_[g] = xl[g], sum_l2_[g] = l2[g], some = hn::Or(some, moved_[g]);
    return any(some);
  }

  // Sets one level to its optimum with all others fixed, if this reduces the error. Returns true in the lanes where the
  // level changed.
  template <bool kQuick>
  static HWY_INLINE Mask improve(Floats x, Value& value, Floats& sum_xl, Floats& sum_l2, Ints& largest) {
    const Floats w = hn::Load(kFloats, value.w);
    const Floats wx = hn::Load(kFloats, value.wx);
    const Floats old = hn::Load(kFloats, value.level);
    const Floats old_wxl = hn::Load(kFloats, value.wxl);
    const Floats old_wl2 = hn::Load(kFloats, value.wl2);
    const Floats other_xl = sum_xl - old_wxl;
    const Floats other_l2 = sum_l2 - old_wl2;
    const Mask rest = other_xl > floats(0);
    const Floats quotient = x * other_l2 / other_xl;
    if constexpr (kQuick) largest = hn::Max(largest, as_ints(or_zero(rest, hn::Abs(quotient))));
    const Floats better = rounded<kQuick>(quotient);
    const Floats wxl = wx * better, wl2 = w * better * better;
    const Floats xl = other_xl + wxl;
    const Floats l2 = other_l2 + wl2;
    const Mask other = and_differ(and_greater(rest, l2, floats(0)), better, old);
    const Mask moves = and_greater(other, xl * xl * sum_l2, sum_xl * sum_xl * l2);
    hn::Store(choose(moves, better, old), kFloats, value.level);
    hn::Store(choose(moves, wxl, old_wxl), kFloats, value.wxl);
    hn::Store(choose(moves, wl2, old_wl2), kFloats, value.wl2);
    sum_xl = choose(moves, xl, sum_xl);
    sum_l2 = choose(moves, l2, sum_l2);
    return moves;
  }

  StepInput x_{};
  Floats sum_xl_[kGroups], sum_l2_[kGroups];
  Mask zero_[kGroups], moved_[kGroups];
  alignas(64) Value values_[kCount][kGroups];
};

}  // namespace ggufmill::simd
