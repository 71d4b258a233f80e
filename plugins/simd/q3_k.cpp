// Q3_K, with the same results as plugins/reference/q3_k.cpp, and with one super-block per lane.

#include <optional>

#include "plugins/simd/fit_steps.h"
#include "plugins/simd/q3_k.h"

namespace ggufmill::simd {
namespace {

using namespace q3_k;

constexpr int kStep = static_cast<int>(kLanes);

using StepFit = StepFits<Q3_K::kSets * kGroups, kGroup, kLimit>;

// Computes the codes of the group scales as value + 32; the first scale of greatest magnitude gets 0. Returns the scale
// of the codes.
Floats code_plain(const Floats* scales, Words* codes) {
  Floats magnitude;
  const Floats peak = extreme<kGroups>([&](int i) { return scales[i]; }, magnitude);
  const Mask none = peak == floats(0);
  const Floats inverse = floats(-32.0f) / peak;
  for (int i = 0; i < kGroups; ++i) {
    const Ints byte = hn::ShiftRight<24>(hn::ShiftLeft<24>(nearest_ints(inverse * scales[i])));
    codes[i] = choose(none, words(0), as_words(clamp(byte, -32, 31) + ints(32)));
  }
  return hn::IfThenZeroElse(none, floats(1) / inverse);
}

// Fits the group scales, which need not be finite.
Floats code_weighted(const Floats* scales, const Floats* weight_sums, Words* codes) {
  alignas(64) float x[kGroups * kLanes], weights[kGroups * kLanes];
  for (int i = 0; i < kGroups; ++i) {
    hn::Store(scales[i], kFloats, x + i * kStep);
    hn::Store(weight_sums[i], kFloats, weights + i * kStep);
  }
  SymmetricFit<kGroups, 32, false> fit;
  const Symmetric best = fit.run(x, weights);
  for (int i = 0; i < kGroups; ++i) codes[i] = as_words(best.level(scales[i], 32));
  return best.scale;
}

void encode_weighted(const SuperBlocks& blocks, LaneBlocks<Q3_K::Block>& packed) {
  const Floats spread = floats(2) * blocks.sum_of_squares(0, kSuperBlock) / floats(float{kSuperBlock});
  Floats scales[kGroups], weight_sums[kGroups];
  Symmetric fits[kGroups];
  alignas(64) float weights[kGroup * kLanes];
  SymmetricFit<kGroup, kLimit, true> fit;
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * kGroup;
    weight_sums[group] = blocks.weigh(first, kGroup, spread, weights);
    fits[group] = fit.run(blocks.x(first), weights);
    scales[group] = fits[group].scale;
  }
  Words codes[kGroups];
  const Floats scale = code_weighted(scales, weight_sums, codes);
  const auto level = [&](int group) {
    return [&, group](int i) { return as_words(fits[group].level(blocks.at(group * kGroup + i), kLimit)); };
  };
  pack(blocks, scale, codes, level, packed);
}

void encode_plain(const Batch<Q3_K::kSets>& batch, LaneBlocks<Q3_K::Block>* packed) {
  alignas(64) float scales[Q3_K::kSets][kGroups][kLanes];
  std::optional<SuperBlocks> blocks[Q3_K::kSets];
  StepFit fit;
  for (int set = 0; set < batch.sets; ++set) {
    blocks[set].emplace(batch, set);
    for (int group = 0; group < kGroups; ++group)
      fit.fit(blocks[set]->x(group * kGroup), batch.x + set * kStep, group * kGroup, scales[set][group]);
  }
  fit.finish();
  for (int set = 0; set < batch.sets; ++set) {
    Floats best[kGroups];
    Words codes[kGroups];
    for (int group = 0; group < kGroups; ++group) best[group] = hn::Load(kFloats, scales[set][group]);
    Words levels[kGroup];
    const auto level = [&](int group) {
      StepFit::find_levels(blocks[set]->x(group * kGroup), levels);
      return [&](int i) { return levels[i]; };
    };
    pack(*blocks[set], code_plain(best, codes), codes, level, packed[set]);
  }
}

}  // namespace

void Q3_K::encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed) {
  if (!batch.weighted) return encode_plain(batch, packed);
  for (int set = 0; set < batch.sets; ++set) encode_weighted(SuperBlocks(batch, set), packed[set]);
}

}  // namespace ggufmill::simd
