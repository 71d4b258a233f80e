#pragma once
// Parts of encoders of Q2_K with one super-block per lane.

#include "plugins/simd/bytes.h"
#include "plugins/simd/fit_lines.h"
#include "plugins/simd/fit_positive.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd::q2_k {

inline constexpr int kGroups = 16;
inline constexpr int kGroup = 16;
inline constexpr int kInFlight = kLanes == 16 ? 4 : 2;  // as many as fit in the registers
inline constexpr int kLimit = 3;
inline constexpr int kMaxCode = 15;
inline constexpr int kStep = static_cast<int>(kLanes);

// Lines of the groups, and the sums of their weights if there is importance.
struct Fitted {
  Line lines[kGroups];
  Floats weight_sums[kGroups];
};

// Scales and minimums, and their codes.
struct Coded {
  Words scales[kGroups], minimums[kGroups];
  Floats d, dmin;

  // Scales below `zero` count as zero.
  Coded(const Fitted& fitted, bool weighted, float zero) {
    Floats values[2][kGroups];
    for (int group = 0; group < kGroups; ++group) {
      values[0][group] = fitted.lines[group].scale;
      values[1][group] = hn::Neg(fitted.lines[group].minimum);
    }
    if (weighted) {
      d = PositiveFit<kGroups, kMaxCode>(values[0], fitted.weight_sums, scales, zero).run();
      dmin = PositiveFit<kGroups, kMaxCode>(values[1], fitted.weight_sums, minimums, zero).run();
    } else {
      d = code_values<kGroups, kMaxCode>(values[0], scales);
      dmin = code_values<kGroups, kMaxCode>(values[1], minimums);
    }
  }
};

template <reference::ErrorMeasure kMeasure>
void fit_lines(const SuperBlocks& blocks, int group, const float* weights, const reference::AffineSearch& search,
               Fitted& fitted) {
  LineSearch<kInFlight, kGroup, kLimit, kMeasure> lines(blocks.x(group * kGroup), weights);
  lines.run(search, fitted.lines + group);
}

// The search without importance. Groups whose values differ by less than `least_range` are one value.
constexpr reference::AffineSearch plain_search(float least_range) {
  return {-0.5f, 0.1f, 15, reference::ErrorMeasure::kAbsolute, least_range};
}

// Not inlined, so that the search has all registers.
HWY_NOINLINE inline void fit_plain(const SuperBlocks& blocks, const reference::AffineSearch& search, Fitted& fitted) {
  alignas(64) float weights[kInFlight * kGroup * kLanes];
  for (int group = 0; group < kGroups; group += kInFlight) {
    for (int i = 0; i < kInFlight * kGroup; ++i)
      hn::Store(hn::Abs(blocks.at(group * kGroup + i)), kFloats, weights + i * kStep);
    fit_lines<reference::ErrorMeasure::kAbsolute>(blocks, group, weights, search, fitted);
  }
}

// The contents of blocks.
struct Contents {
  Words bytes[kGroups];  // codes of scales and minimums
  Words d, dmin;         // halves
  LaneLevels<kSuperBlock> levels;

  explicit Contents(const Coded& coded) : d(floats_to_half(coded.d)), dmin(floats_to_half(coded.dmin)) {
    for (int i = 0; i < kGroups; ++i) bytes[i] = (coded.scales[i] | hn::ShiftLeft<4>(coded.minimums[i])) & words(0xff);
  }

  // Computes the best levels for the scales as stored. A group with scale 0 uses the levels of its line.
  void settle(const SuperBlocks& blocks, const Fitted& fitted) {
    const Floats stored_d = half_to_floats(d), stored_dmin = half_to_floats(dmin);
    for (int group = 0; group < kGroups; ++group) {
      const Floats scale = stored_d * to_floats(as_ints(bytes[group] & words(0xf)));
      const Floats minimum = stored_dmin * to_floats(as_ints(hn::ShiftRight<4>(bytes[group])));
      const Mask zero = scale == floats(0);
      const bool any_zero = any(zero);
      for (int i = group * kGroup; i < (group + 1) * kGroup; ++i) {
        const Floats x = blocks.at(i);
        Ints level = clamp(nearest_ints((x + minimum) / scale), 0, kLimit);
        if (HWY_UNLIKELY(any_zero)) level = choose(zero, fitted.lines[group].level(x, kLimit), level);
        levels.set(i, as_words(level));
      }
    }
  }

  template <class Block>
  void pack(LaneBlocks<Block>& block) const {
    set_bytes(block, 0, 4, [&](int i) { return bytes[i]; });
    set_bytes(block, 4, 16, [&](int i) { return crumbs<0>(levels, i); });
    block.set(20, d | hn::ShiftLeft<16>(dmin));
  }
};

}  // namespace ggufmill::simd::q2_k
