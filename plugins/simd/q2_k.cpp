// Q2_K, with the same results as plugins/reference/q2_k.cpp, and with one super-block per lane.

#include "plugins/simd/bytes.h"
#include "plugins/simd/fit_lines.h"
#include "plugins/simd/fit_positive.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd {
namespace {

using reference::AffineSearch;
using reference::ErrorMeasure;

constexpr int kGroups = 16;
constexpr int kGroup = 16;
constexpr int kInFlight = kLanes == 16 ? 4 : 2;  // as many as fit in the registers
constexpr int kLimit = 3;
constexpr int kGreatestCode = 15;
constexpr int kStep = static_cast<int>(kLanes);
constexpr AffineSearch kPlainSearch = {-0.5f, 0.1f, 15, ErrorMeasure::kAbsolute};

struct Fitted {
  Line lines[kGroups];
  Floats scales[kGroups], minimums[kGroups], weight_sums[kGroups];
};

template <ErrorMeasure kMeasure>
void fit_lines(const SuperBlocks& blocks, int group, const float* weights, const AffineSearch& search, Fitted& fitted) {
  LineSearch<kInFlight, kGroup, kLimit, kMeasure> lines(blocks.x(group * kGroup), weights);
  lines.run(search, fitted.lines + group);
}

void fit_plain(const SuperBlocks& blocks, Fitted& fitted) {
  alignas(64) float weights[kInFlight * kGroup * kLanes];
  for (int group = 0; group < kGroups; group += kInFlight) {
    for (int i = 0; i < kInFlight * kGroup; ++i)
      hn::Store(hn::Abs(blocks.at(group * kGroup + i)), kFloats, weights + i * kStep);
    fit_lines<ErrorMeasure::kAbsolute>(blocks, group, weights, kPlainSearch, fitted);
  }
}

void fit_weighted(const SuperBlocks& blocks, Fitted& fitted) {
  const Floats spread = blocks.sum_of_squares(0, kSuperBlock) / floats(float{kSuperBlock});
  alignas(64) float weights[kInFlight * kGroup * kLanes];
  for (int group = 0; group < kGroups; group += kInFlight) {
    for (int g = 0; g < kInFlight; ++g)
      fitted.weight_sums[group + g] = blocks.weigh((group + g) * kGroup, kGroup, spread, weights + g * kGroup * kStep);
    fit_lines<ErrorMeasure::kSquared>(blocks, group, weights, reference::kWeightedSearch, fitted);
  }
}

// Computes the best levels for the scales as stored. A group with scale 0 uses the levels of its line.
void settle_levels(const SuperBlocks& blocks, Floats d, Floats dmin, const Words* bytes, const Fitted& fitted,
                   LaneLevels<kSuperBlock>& levels) {
  for (int group = 0; group < kGroups; ++group) {
    const Floats scale = d * to_floats(as_ints(bytes[group] & words(0xf)));
    const Floats minimum = dmin * to_floats(as_ints(hn::ShiftRight<4>(bytes[group])));
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

}  // namespace

void Q2_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  const SuperBlocks blocks(batch);
  Fitted fitted;
  blocks.weighted() ? fit_weighted(blocks, fitted) : fit_plain(blocks, fitted);
  for (int group = 0; group < kGroups; ++group) {
    fitted.scales[group] = fitted.lines[group].scale;
    fitted.minimums[group] = hn::Neg(fitted.lines[group].minimum);
  }
  Words scales[kGroups], minimums[kGroups];
  Floats d, dmin;
  if (blocks.weighted()) {
    d = PositiveFit<kGroups, kGreatestCode>(fitted.scales, fitted.weight_sums, scales).run();
    dmin = PositiveFit<kGroups, kGreatestCode>(fitted.minimums, fitted.weight_sums, minimums).run();
  } else {
    d = code_values<kGroups, kGreatestCode>(fitted.scales, scales);
    dmin = code_values<kGroups, kGreatestCode>(fitted.minimums, minimums);
  }
  Words bytes[kGroups];
  for (int i = 0; i < kGroups; ++i) bytes[i] = (scales[i] | hn::ShiftLeft<4>(minimums[i])) & words(0xff);
  const Words d_bits = floats_to_half(d), dmin_bits = floats_to_half(dmin);
  LaneLevels<kSuperBlock> levels;
  settle_levels(blocks, half_to_floats(d_bits), half_to_floats(dmin_bits), bytes, fitted, levels);
  set_bytes(*packed, 0, 4, [&](int i) { return bytes[i]; });
  set_bytes(*packed, 4, 16, [&](int i) { return crumbs<0>(levels, i); });
  packed->set(20, d_bits | hn::ShiftLeft<16>(dmin_bits));
}

}  // namespace ggufmill::simd
