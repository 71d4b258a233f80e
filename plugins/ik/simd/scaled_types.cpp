#include "plugins/ik/simd/llama_types.h"

#include "plugins/ik/simd/code_search.h"
#include "plugins/ik/simd/unequal_search.h"
#include "plugins/simd/iq4_blocks.h"
#include "plugins/simd/q3_k.h"
#include "plugins/simd/q6_k.h"
#include "plugins/simd/small_blocks.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes);

// Copies the levels that a search found, from element `first` on.
template <int kCount, int kLimit>
void keep_levels(const CodeSearch<kCount, kLimit>& search, int first, LaneLevels<kSuperBlock>& levels) {
  for (int i = 0; i < kCount; ++i) levels.set(first + i, search.level(i));
}

// Fits the group scales of Q3_K, which need not be finite. Returns the scale of the codes.
Floats code_scales(const float* scales, const float* weight_sums, Words* codes) {
  CodeSearch<q3_k::kGroups, 32, false> search;
  const Floats scale = search.run(scales, weight_sums);
  for (int i = 0; i < q3_k::kGroups; ++i) codes[i] = search.level(i);
  return scale;
}

void encode_q3_k(const SuperBlocks& blocks, LaneBlocks<Q3_K::Block>& packed) {
  using namespace q3_k;
  const Floats spread = floats(2) * blocks.sum_of_squares(0, kSuperBlock) / floats(float{kSuperBlock});
  alignas(64) float weights[kGroup * kLanes], weight_sums[kGroups * kLanes], scales[kGroups * kLanes];
  LaneLevels<kSuperBlock> levels;
  CodeSearch<kGroup, kLimit> search;
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * kGroup;
    hn::Store(blocks.weigh(first, kGroup, spread, weights), kFloats, weight_sums + group * kStep);
    hn::Store(search.run(blocks.x(first), weights), kFloats, scales + group * kStep);
    keep_levels(search, first, levels);
  }
  Words codes[kGroups];
  const Floats scale = code_scales(scales, weight_sums, codes);
  const auto level = [&](int group) { return [&, group](int i) { return levels[group * kGroup + i]; }; };
  pack(blocks, scale, codes, level, packed);
}

// Sets the levels of blocks of 32 values. Returns their scales as halves.
template <int kLimit>
Words fit_small(const Batch<1>& batch, SmallLevels& levels) {
  const SmallBlocks<1> blocks(batch);
  CodeSearch<32, kLimit> search;
  const Floats scale = search.run(blocks.x, blocks.weights);
  for (int i = 0; i < 32; ++i) levels.set(i, search.level(i));
  return floats_to_half(scale);
}

}  // namespace

void IkQ4_0::encode_weighted(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  SmallLevels levels;
  const Words d = fit_small<8>(batch, levels);
  set_block_of_4_bits_after_half(d, levels, *blocks);
}

void IkQ5_0::encode_weighted(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  SmallLevels levels;
  const Words d = fit_small<16>(batch, levels);
  set_block_of_5_bits_after_half(d, levels, *blocks);
}

void IkQ3_K::encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed) {
  if (!batch.weighted) return Q3_K::encode(batch, packed);
  for (int set = 0; set < batch.sets; ++set) encode_q3_k(SuperBlocks(batch, set), packed[set]);
}

void IkQ6_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  using namespace q6_k;
  const SuperBlocks blocks(batch);
  Floats scales[kGroups];
  LaneLevels<kSuperBlock> levels;
  CodeSearch<kGroup, kLimit> search;
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * kGroup;
    scales[group] = search.run(blocks.x(first), blocks.weighted() ? blocks.importances(first) : nullptr);
    keep_levels(search, first, levels);
  }
  q6_k::pack(
      blocks, scales, [&](int, int i) { return as_ints(levels[i]); }, *packed);
}

void IkIq4Nl::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  iq4::encode_nl<UnequalSearch>(batch, *blocks);
}

void IkIq4Xs::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  iq4::encode_xs<UnequalSearch>(batch, *blocks);
}

}  // namespace ggufmill::simd
