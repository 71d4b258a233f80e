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

// Tries all shift combinations of all cuts.
inline LaneCut best_iq1_m_cut(const Iq1MSums& sums) {
  Floats total_xq[2][2], total_qq[2][2];  // of the greatest value for all elements; by group and shift
  for (int group = 0; group < 2; ++group) {
    for (unsigned shift = 0; shift < 2; ++shift) {
      const Floats most = floats(reference::kShiftedValues[shift][2]);
      total_xq[group][shift] = sums.wx(group, kIq1MSub) * most;
      total_qq[group][shift] = sums.w(group, kIq1MSub) * most * most;
    }
  }
  LaneCut best;
  for (int low = 0; low <= kIq1MSub; ++low) {
    Floats low_wx[2], low_qq[2][2];
    for (int group = 0; group < 2; ++group) {
      low_wx[group] = sums.wx(group, low);
      for (unsigned shift = 0; shift < 2; ++shift)
        low_qq[group][shift] = total_qq[group][shift] + sums.w(group, low) * floats(Iq1MSums::square_step(shift, 0));
    }
    for (int high = low; high <= kIq1MSub; ++high) {
      Floats xq[2][2], qq[2][2];
      GGUFMILL_UNROLL
      for (int group = 0; group < 2; ++group) {
        const Floats below = low_wx[group] + sums.wx(group, high);
        GGUFMILL_UNROLL
        for (unsigned shift = 0; shift < 2; ++shift) {
          xq[group][shift] = total_xq[group][shift] - below;
          qq[group][shift] = low_qq[group][shift] + sums.high_w(group, high, shift);
        }
      }
      best.consider_all<kIq1MWays>(low, high, [&](unsigned way, Floats& way_xq, Floats& way_qq) {
        way_xq = xq[0][way >> 1] + xq[1][way & 1];
        way_qq = qq[0][way >> 1] + qq[1][way & 1];
      });
    }
  }
  return best;
}

}  // namespace ggufmill::simd
