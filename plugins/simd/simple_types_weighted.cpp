// Q4_0, Q4_1, Q5_0 and Q5_1 with importance, with one block per lane.

#include "plugins/simd/fit_lines.h"
#include "plugins/simd/fit_symmetric.h"
#include "plugins/simd/simple_types.h"
#include "plugins/simd/small_blocks.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 32;

template <int kLimit>
Words fit_symmetric(const Batch<1>& batch, SmallLevels& levels) {
  const SmallBlocks<1> blocks(batch);
  SymmetricFit<kCount, kLimit, true> search;
  const Symmetric fit = search.run(blocks.x, blocks.weights);
  for (int i = 0; i < kCount; ++i) levels.set(i, as_words(fit.level(blocks.values(0, i), kLimit)));
  return floats_to_half(fit.scale);
}

// Computes the levels and the halves: scales in the low 16 bits, minimums in the high 16 bits. Not inlined, so that the
// search has all registers.
template <int kLimit>
HWY_NOINLINE void fit_lines(const Batch<2>& batch, Words* halves, SmallLevels* levels) {
  const SmallBlocks<2> blocks(batch);
  LineSearch<2, kCount, kLimit, reference::ErrorMeasure::kSquared> search(blocks.x, blocks.weights);
  Line lines[2];
  search.run(reference::kWeightedSearch, lines);
  for (int set = 0; set < 2; ++set) {
    halves[set] = floats_to_half(lines[set].scale) | hn::ShiftLeft<16>(floats_to_half(lines[set].minimum));
    for (int i = 0; i < kCount; ++i) levels[set].set(i, as_words(lines[set].level(blocks.values(set, i), kLimit)));
  }
}

}  // namespace

void Q4_0::encode_weighted(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  SmallLevels levels;
  const Words d = fit_symmetric<8>(batch, levels);
  set_block_of_4_bits_after_half(d, levels, *blocks);
}

void Q4_1::encode_weighted(const Batch<2>& batch, LaneBlocks<Block>* blocks) {
  SmallLevels levels[2];
  Words halves[2];
  fit_lines<15>(batch, halves, levels);
  for (int set = 0; set < 2; ++set) set_block_of_4_bits(halves[set], levels[set], blocks[set]);
}

void Q5_0::encode_weighted(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  SmallLevels levels;
  const Words d = fit_symmetric<16>(batch, levels);
  set_block_of_5_bits_after_half(d, levels, *blocks);
}

void Q5_1::encode_weighted(const Batch<2>& batch, LaneBlocks<Block>* blocks) {
  SmallLevels levels[2];
  Words halves[2];
  fit_lines<31>(batch, halves, levels);
  for (int set = 0; set < 2; ++set) set_block_of_5_bits(halves[set], levels[set], blocks[set]);
}

}  // namespace ggufmill::simd
