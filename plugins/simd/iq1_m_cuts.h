#pragma once
// The best cut and shifts of a sub-block of IQ1_M (plugins/reference/iq1_m.cpp), with one sub-block per lane.

#include "plugins/reference/iq1_thirds.h"
#include "plugins/simd/iq1_cuts.h"

namespace ggufmill::simd {

inline constexpr int kIq1MSub = 16;
// Shift combinations of a sub-block's two groups; bit 1: first one down, bit 0: second.
inline constexpr unsigned kIq1MWays = 4;

// Sums over the first elements of a sub-block in sorted order, for each group (SortedSums of the reference). The
// products of the sums with factors are stored as well, where they enter the sums of a cut.
class Iq1MSums {
 public:
  explicit Iq1MSums(const SortedLanes<kIq1MSub>& sorted) {
    Floats wx[2] = {floats(0), floats(0)}, w[2] = {floats(0), floats(0)};
    set(0, wx, w);
    for (int i = 0; i < kIq1MSub; ++i) {
      const Mask second = mask_of(sorted.place(i) > ints(7));
      const Floats added_w = sorted.weight(i), added_wx = added_w * sorted.x(i);
      wx[0] = choose(second, wx[0], wx[0] + added_wx);
      wx[1] = choose(second, wx[1] + added_wx, wx[1]);
      w[0] = choose(second, w[0], w[0] + added_w);
      w[1] = choose(second, w[1] + added_w, w[1]);
      set(i + 1, wx, w);
    }
  }

  Floats wx(int group, int end) const { return hn::Load(kFloats, sums_[end][group].wx); }
  Floats w(int group, int end) const { return hn::Load(kFloats, sums_[end][group].w); }
  // Returns w times the difference of the squares of the middle and the greatest value, with the shift up or down.
  Floats high_w(int group, int end, unsigned shift) const { return hn::Load(kFloats, sums_[end][group].high_w[shift]); }

  // The difference of the squares of a value and the next one.
  static constexpr float square_step(unsigned shift, std::size_t level) {
    const auto& v = reference::kShiftedValues[shift];
    return v[level] * v[level] - v[level + 1] * v[level + 1];
  }

 private:
  struct alignas(64) GroupSums {
    float wx[kLanes], w[kLanes], high_w[2][kLanes];
  };

  void set(int end, const Floats* wx, const Floats* w) {
    for (int group = 0; group < 2; ++group) {
      GroupSums& sums = sums_[end][group];
      hn::Store(wx[group], kFloats, sums.wx);
      hn::Store(w[group], kFloats, sums.w);
      for (unsigned shift = 0; shift < 2; ++shift)
        hn::Store(w[group] * floats(square_step(shift, 1)), kFloats, sums.high_w[shift]);
    }
  }

  GroupSums sums_[kIq1MSub + 1][2];
};

// Tries all shift combinations of all cuts, in two passes. LaneCut::consider() decides with rounded scores, so that the
// order of the cuts matters, but only among those that are as good as the best but for rounding: the first of these is
// taken whatever came before, and no other after it. So the first pass finds the score of the best cut, without
// divisions or branches, and the second one considers only the cuts that come close, in order. (For a cut that is not
// close to have any effect, a chain of hundreds, each as good as the next but for rounding, would have to lead to the
// best.)
class Iq1MCuts {
 public:
  explicit Iq1MCuts(const Iq1MSums& sums) : sums_(sums) {
    for (int group = 0; group < 2; ++group) {
      for (unsigned shift = 0; shift < 2; ++shift) {
        const Floats most = floats(reference::kShiftedValues[shift][2]);
        total_xq_[group][shift] = sums.wx(group, kIq1MSub) * most;
        total_qq_[group][shift] = sums.w(group, kIq1MSub) * most * most;
      }
    }
  }

  LaneCut best() {
    const Floats enough = least_score();
    LaneCut best;
    std::size_t at = 0;
    for (int low = 0; low <= kIq1MSub; ++low)
      for (int high = low; high <= kIq1MSub; ++high, ++at) {
        const Mask far = load(scores_[at].xx) < enough * load(scores_[at].qq);
        if (hn::AllTrue(kFloats, far)) continue;
        const Ways ways = ways_of(begin(low), high);
        for (unsigned way = 0; way < kIq1MWays; ++way) best.consider(low, high, way, ways.xq[way], ways.qq[way]);
      }
    return best;
  }

 private:
  static constexpr std::size_t kCuts = (kIq1MSub + 1) * (kIq1MSub + 2) / 2;

  // The score of a cut is xx / qq.
  struct alignas(64) Score {
    float xx[kLanes], qq[kLanes];
  };
  // What the cuts with the same lower boundary have in common.
  struct Low {
    Floats wx[2], qq[2][2];
  };
  // The least-squares sums of the shift combinations of a cut.
  struct Ways {
    Floats xq[kIq1MWays], qq[kIq1MWays];
  };

  static Floats load(const float* lanes) { return hn::Load(kFloats, lanes); }

  HWY_INLINE Low begin(int low) const {
    Low begun;
    for (int group = 0; group < 2; ++group) {
      begun.wx[group] = sums_.wx(group, low);
      for (unsigned shift = 0; shift < 2; ++shift)
        begun.qq[group][shift] =
            total_qq_[group][shift] + sums_.w(group, low) * floats(Iq1MSums::square_step(shift, 0));
    }
    return begun;
  }

  HWY_INLINE Ways ways_of(const Low& low, int high) const {
    Floats xq[2][2], qq[2][2];
    GGUFMILL_UNROLL
    for (int group = 0; group < 2; ++group) {
      const Floats below = low.wx[group] + sums_.wx(group, high);
      GGUFMILL_UNROLL
      for (unsigned shift = 0; shift < 2; ++shift) {
        xq[group][shift] = total_xq_[group][shift] - below;
        qq[group][shift] = low.qq[group][shift] + sums_.high_w(group, high, shift);
      }
    }
    Ways ways;
    GGUFMILL_UNROLL
    for (unsigned way = 0; way < kIq1MWays; ++way) {
      ways.xq[way] = xq[0][way >> 1] + xq[1][way & 1];
      ways.qq[way] = qq[0][way >> 1] + qq[1][way & 1];
    }
    return ways;
  }

  // Stores the score of the best shift combination of each cut. Returns a score that only those cuts reach that may be
  // the best, or less than all scores in lanes whose sums are so large or small that their products may not be normal
  // numbers, or are none.
  HWY_INLINE Floats least_score() {
    // Far more than the roundings of a score, which are some 1e-6, and far less than what most cuts differ by.
    constexpr float kClose = 1 - 1e-4f;
    constexpr float kMinSum = 1e-18f, kMaxSum = 1e18f;
    Floats best_xx = floats(0), best_qq = floats(1);
    std::size_t at = 0;
    for (int low = 0; low <= kIq1MSub; ++low) {
      const Low begun = begin(low);
      for (int high = low; high <= kIq1MSub; ++high, ++at) {
        const Ways ways = ways_of(begun, high);
        Floats xx = ways.xq[0] * ways.xq[0], qq = ways.qq[0];
        GGUFMILL_UNROLL
        for (unsigned way = 1; way < kIq1MWays; ++way) keep_better(xx, qq, ways.xq[way] * ways.xq[way], ways.qq[way]);
        hn::Store(xx, kFloats, scores_[at].xx);
        hn::Store(qq, kFloats, scores_[at].qq);
        keep_better(best_xx, best_qq, xx, qq);
      }
    }
    const Floats weight = sums_.w(0, kIq1MSub) + sums_.w(1, kIq1MSub);
    const auto is_normal = [&](Floats sum) { return hn::And(sum > floats(kMinSum), sum < floats(kMaxSum)); };
    return choose(hn::And(is_normal(weight), is_normal(best_xx)), best_xx / best_qq * floats(kClose), floats(-FLT_MAX));
  }

  static HWY_INLINE void keep_better(Floats& xx, Floats& qq, Floats other_xx, Floats other_qq) {
    const Mask better = other_xx * qq > xx * other_qq;
    xx = choose(better, other_xx, xx);
    qq = choose(better, other_qq, qq);
  }

  const Iq1MSums& sums_;
  Floats total_xq_[2][2], total_qq_[2][2];  // of the greatest value for all elements; by group and shift
  Score scores_[kCuts];
};

}  // namespace ggufmill::simd
