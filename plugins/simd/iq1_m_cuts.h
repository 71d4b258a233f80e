#pragma once
// The best cut and shifts of a sub-block of IQ1_M (plugins/reference/iq1_m.cpp), with one sub-block per lane.

#include "plugins/reference/iq1_thirds.h"
#include "plugins/simd/iq1_cuts.h"

namespace ggufmill::simd {

inline constexpr int kIq1MSub = 16;
// Shift combinations of a sub-block's two groups; bit 1: first one down, bit 0: second.
inline constexpr unsigned kIq1MWays = 4;

// Sums for a least-squares scale, for each shift combination.
struct Iq1MSums {
  Floats xq[kIq1MWays], qq[kIq1MWays];
};

// Contribution of each element to these sums at each level.
class Iq1MTerms {
 public:
  explicit Iq1MTerms(const SortedLanes<kIq1MSub>& sorted) {
    for (int level = 0; level < 3; ++level)
      for (int i = 0; i < kIq1MSub; ++i) set(level, i, sorted);
  }

  HWY_INLINE void add(int level, int i, Iq1MSums& sums) const {
    const float* terms = at(level, i);
    for (unsigned way = 0; way < kIq1MWays; ++way) {
      sums.xq[way] = sums.xq[way] + hn::Load(kFloats, terms + 2 * way * kLanes);
      sums.qq[way] = sums.qq[way] + hn::Load(kFloats, terms + (2 * way + 1) * kLanes);
    }
  }

 private:
  const float* at(int level, int i) const {
    return terms_ + (level * kIq1MSub + i) * 2 * static_cast<int>(kIq1MWays) * static_cast<int>(kLanes);
  }

  void set(int level, int i, const SortedLanes<kIq1MSub>& sorted) {
    const Mask second = mask_of(sorted.place(i) > ints(7));
    Floats xq[2], qq[2];  // with the shift up and down
    for (unsigned down = 0; down < 2; ++down) {
      const Floats q = floats(reference::kShiftedValues[down][static_cast<std::size_t>(level)]);
      const Floats wq = sorted.weight(i) * q;
      xq[down] = wq * sorted.x(i);
      qq[down] = wq * q;
    }
    auto* terms = const_cast<float*>(at(level, i));
    for (unsigned way = 0; way < kIq1MWays; ++way) {
      hn::Store(choose(second, xq[way & 1], xq[way >> 1]), kFloats, terms + 2 * way * kLanes);
      hn::Store(choose(second, qq[way & 1], qq[way >> 1]), kFloats, terms + (2 * way + 1) * kLanes);
    }
  }

  alignas(64) float terms_[3 * kIq1MSub * 2 * kIq1MWays * kLanes];
};

// Tries all shift combinations of all cuts. Every sum runs over the elements in sorted order, so the sums of each cut
// extend those of the previous cut.
inline LaneCut best_iq1_m_cut(const Iq1MTerms& terms) {
  LaneCut best;
  Iq1MSums to_low;
  for (unsigned way = 0; way < kIq1MWays; ++way) to_low.xq[way] = to_low.qq[way] = floats(0);
  for (int low = 0; low <= kIq1MSub; ++low) {
    Iq1MSums to_high = to_low;
    for (int high = low; high <= kIq1MSub; ++high) {
      Iq1MSums all = to_high;
      for (int i = high; i < kIq1MSub; ++i) terms.add(2, i, all);
      for (unsigned way = 0; way < kIq1MWays; ++way) best.consider(low, high, way, all.xq[way], all.qq[way]);
      if (high < kIq1MSub) terms.add(1, high, to_high);
    }
    if (low < kIq1MSub) terms.add(0, low, to_low);
  }
  return best;
}

}  // namespace ggufmill::simd
