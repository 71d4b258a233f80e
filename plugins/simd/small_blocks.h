#pragma once
// Blocks of 32 values with importance, with one block per lane: their weights, and how Q4_0, Q4_1, Q5_0 and Q5_1 store
// levels.

#include "plugins/simd/pack.h"

namespace ggufmill::simd {

using SmallLevels = LaneLevels<32>;

// kSets * kLanes blocks, in lanes, and their weights, which are importance * sqrt(mean square of the row + x * x).
template <int kSets>
struct SmallBlocks {
  static constexpr int kCount = 32, kStep = static_cast<int>(kLanes);

  alignas(64) float x[kSets * kCount * kLanes];
  alignas(64) float weights[kSets * kCount * kLanes];

  explicit SmallBlocks(const Batch<kSets>& batch) {
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

// Returns word i of the four words that contain the low nibbles of all levels.
inline Words nibble_word(const SmallLevels& levels, int i) {
  return four_bytes(4 * i,
                    [&](int j) { return (levels[j] & words(0xf)) | hn::ShiftLeft<4>(levels[j + 16] & words(0xf)); });
}

inline Words fifth_bits(const SmallLevels& levels) {
  Words bits = words(0);
  for (int i = 0; i < 32; ++i) bits = bits | hn::ShiftLeftSame(hn::ShiftRight<4>(levels[i]), i);
  return bits;
}

// Writes a half, followed by `count` words.
template <class Block>
void set_after_half(LaneBlocks<Block>& block, Words half, const Words* after, int count) {
  block.set(0, half | hn::ShiftLeft<16>(after[0]));
  for (int i = 1; i < count; ++i) block.set(i, hn::ShiftRight<16>(after[i - 1]) | hn::ShiftLeft<16>(after[i]));
  block.set(count, hn::ShiftRight<16>(after[count - 1]));
}

// Sets a block of Q4_1 and Q5_1, respectively. `halves` has the scales in the low 16 bits, and the minimums in the high
// ones.
template <class Block>
void set_block_of_4_bits(Words halves, const SmallLevels& levels, LaneBlocks<Block>& block) {
  block.set(0, halves);
  for (int i = 0; i < 4; ++i) block.set(1 + i, nibble_word(levels, i));
}
template <class Block>
void set_block_of_5_bits(Words halves, const SmallLevels& levels, LaneBlocks<Block>& block) {
  block.set(0, halves);
  block.set(1, fifth_bits(levels));
  for (int i = 0; i < 4; ++i) block.set(2 + i, nibble_word(levels, i));
}

}  // namespace ggufmill::simd
