// Q4_0, Q4_1, Q5_0 and Q5_1 with importance, with one block per lane.

#include "plugins/simd/fit_lines.h"
#include "plugins/simd/fit_symmetric.h"
#include "plugins/simd/pack.h"
#include "plugins/simd/simple_types.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 32;
constexpr int kStep = static_cast<int>(kLanes);

using Levels = LaneLevels<kCount>;

// kSets * kLanes blocks, in lanes, and their weights, which are importance * sqrt(mean square of the row + x * x).
template <int kSets>
struct WeightedBlocks {
  alignas(64) float x[kSets * kCount * kLanes];
  alignas(64) float weights[kSets * kCount * kLanes];

  explicit WeightedBlocks(const Batch<kSets>& batch) {
    for (int set = 0; set < kSets; ++set) {
      const std::size_t first = static_cast<std::size_t>(set) * kLanes;
      const int at = set * kCount * kStep;
      rows_to_lanes(batch.x + first, kCount, x + at);
      rows_to_lanes(batch.importance + first, kCount, weights + at);
      const Floats spread = hn::LoadU(kFloats, batch.row_mean_square + first);
      for (int i = 0; i < kCount; ++i) {
        const Floats value = values(set, i);
        const Floats importance = hn::Load(kFloats, weights + at + i * kStep);
        hn::Store(importance * hn::Sqrt(spread + value * value), kFloats, weights + at + i * kStep);
      }
    }
  }
  Floats values(int set, int i) const { return hn::Load(kFloats, x + (set * kCount + i) * kStep); }
};

template <int kLimit>
Words fit_symmetric(const Batch<1>& batch, Levels& levels) {
  const WeightedBlocks<1> blocks(batch);
  SymmetricFit<kCount, kLimit, true> search;
  const Symmetric fit = search.run(blocks.x, blocks.weights);
  for (int i = 0; i < kCount; ++i) levels.set(i, as_words(fit.level(blocks.values(0, i), kLimit)));
  return floats_to_half(fit.scale);
}

// Computes the levels and the halves: scales in the low 16 bits, minimums in the high 16 bits.
template <int kLimit>
void fit_lines(const Batch<2>& batch, Words* halves, Levels* levels) {
  const WeightedBlocks<2> blocks(batch);
  LineSearch<2, kCount, kLimit, reference::ErrorMeasure::kSquared> search(blocks.x, blocks.weights);
  Line lines[2];
  search.run(reference::kWeightedSearch, lines);
  for (int set = 0; set < 2; ++set) {
    halves[set] = floats_to_half(lines[set].scale) | hn::ShiftLeft<16>(floats_to_half(lines[set].minimum));
    for (int i = 0; i < kCount; ++i) levels[set].set(i, as_words(lines[set].level(blocks.values(set, i), kLimit)));
  }
}

// Returns word i of the four words that contain the low nibbles of all levels.
Words nibble_word(const Levels& levels, int i) {
  return four_bytes(4 * i,
                    [&](int j) { return (levels[j] & words(0xf)) | hn::ShiftLeft<4>(levels[j + 16] & words(0xf)); });
}

Words fifth_bits(const Levels& levels) {
  Words bits = words(0);
  for (int i = 0; i < kCount; ++i) bits = bits | hn::ShiftLeftSame(hn::ShiftRight<4>(levels[i]), i);
  return bits;
}

// Writes a half, followed by `count` words.
template <class Block>
void set_after_half(LaneBlocks<Block>& block, Words half, const Words* after, int count) {
  block.set(0, half | hn::ShiftLeft<16>(after[0]));
  for (int i = 1; i < count; ++i) block.set(i, hn::ShiftRight<16>(after[i - 1]) | hn::ShiftLeft<16>(after[i]));
  block.set(count, hn::ShiftRight<16>(after[count - 1]));
}

}  // namespace

void Q4_0::encode_weighted(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  Levels levels;
  const Words d = fit_symmetric<8>(batch, levels);
  Words after[4];
  for (int i = 0; i < 4; ++i) after[i] = nibble_word(levels, i);
  set_after_half(*blocks, d, after, 4);
}

void Q4_1::encode_weighted(const Batch<2>& batch, LaneBlocks<Block>* blocks) {
  Levels levels[2];
  Words halves[2];
  fit_lines<15>(batch, halves, levels);
  for (int set = 0; set < 2; ++set) {
    blocks[set].set(0, halves[set]);
    for (int i = 0; i < 4; ++i) blocks[set].set(1 + i, nibble_word(levels[set], i));
  }
}

void Q5_0::encode_weighted(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  Levels levels;
  const Words d = fit_symmetric<16>(batch, levels);
  Words after[5] = {fifth_bits(levels)};
  for (int i = 0; i < 4; ++i) after[1 + i] = nibble_word(levels, i);
  set_after_half(*blocks, d, after, 5);
}

void Q5_1::encode_weighted(const Batch<2>& batch, LaneBlocks<Block>* blocks) {
  Levels levels[2];
  Words halves[2];
  fit_lines<31>(batch, halves, levels);
  for (int set = 0; set < 2; ++set) {
    blocks[set].set(0, halves[set]);
    blocks[set].set(1, fifth_bits(levels[set]));
    for (int i = 0; i < 4; ++i) blocks[set].set(2 + i, nibble_word(levels[set], i));
  }
}

}  // namespace ggufmill::simd
