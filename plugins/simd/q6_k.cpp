// Q6_K, with the same results as plugins/reference/q6_k.cpp, and with one super-block per lane.

#include "plugins/simd/q6_k.h"

namespace ggufmill::simd {
namespace {

using namespace q6_k;

constexpr int kStep = static_cast<int>(kLanes);

void fit_groups(const SuperBlocks& blocks, Symmetric* fits) {
  alignas(64) float weights[kGroup * kLanes];
  SymmetricFit<kGroup, kLimit, true> fit;
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * kGroup;
    for (int i = 0; i < kGroup && blocks.weighted(); ++i)
      hn::Store(blocks.importance(first + i), kFloats, weights + i * kStep);
    fits[group] = fit.run(blocks.x(first), blocks.weighted() ? weights : nullptr);
  }
}

}  // namespace

void Q6_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  const SuperBlocks blocks(batch);
  Symmetric fits[kGroups];
  fit_groups(blocks, fits);
  Floats scales[kGroups];
  for (int group = 0; group < kGroups; ++group) scales[group] = fits[group].scale;
  const auto level = [&](int group, int i) { return fits[group].level(blocks.at(i), kLimit); };
  q6_k::pack(blocks, scales, level, *packed);
}

}  // namespace ggufmill::simd
