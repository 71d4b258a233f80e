// Q2_K, with the same results as plugins/reference/q2_k.cpp, and with one super-block per lane.

#include "plugins/simd/k_types.h"
#include "plugins/simd/q2_k_encoder.h"

namespace ggufmill::simd {
namespace {

using namespace q2_k;

constexpr reference::AffineSearch kPlainSearch = plain_search(0);

// Not inlined, so that the search has all registers.
HWY_NOINLINE void fit_weighted(const SuperBlocks& blocks, Fitted& fitted) {
  const Floats spread = blocks.sum_of_squares(0, kSuperBlock) / floats(float{kSuperBlock});
  alignas(64) float weights[kInFlight * kGroup * kLanes];
  for (int group = 0; group < kGroups; group += kInFlight) {
    for (int g = 0; g < kInFlight; ++g)
      fitted.weight_sums[group + g] = blocks.weigh((group + g) * kGroup, kGroup, spread, weights + g * kGroup * kStep);
    fit_lines<reference::ErrorMeasure::kSquared>(blocks, group, weights, reference::kWeightedSearch, fitted);
  }
}

}  // namespace

void Q2_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  const SuperBlocks blocks(batch);
  Fitted fitted;
  blocks.weighted() ? fit_weighted(blocks, fitted) : fit_plain(blocks, kPlainSearch, fitted);
  Contents contents(Coded(fitted, blocks.weighted(), reference::kZeroGroup));
  contents.settle(blocks, fitted);
  contents.pack(*packed);
}

}  // namespace ggufmill::simd
