#pragma once
// Input and output of a kernel with one block per lane: a batch of blocks, and their packed bytes as words in lanes.

#include <algorithm>
#include <cstring>

#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

// kSets * kLanes blocks of F32. If a call has fewer blocks left, the last one is repeated.
template <int kSets>
struct Batch {
  static constexpr std::size_t kBlocks = kSets * kLanes;
  int sets = kSets;                  // sets of kLanes blocks that are not repetitions only
  bool weighted;                     // true if `importance` is set
  const float* x[kBlocks];           // weights of each block
  const float* importance[kBlocks];  // importance of each block's columns
  float row_mean_square[kBlocks];    // mean square of each block's row, or another number that the codec computes for a
                                     // row; set for codecs that request it
};

// kLanes packed blocks, as 32-bit little-endian words: byte 4 * w + b of the block in lane l is byte b of word w in
// lane l. Bytes past the end of a block are not stored.
template <class Block>
class LaneBlocks {
 public:
  static constexpr int kWords = (static_cast<int>(sizeof(Block)) + 15) / 16 * 4;

  void set(int word, Words value) { hn::Store(value, kWords32, words_ + word * static_cast<int>(kLanes)); }
  Words get(int word) const { return hn::Load(kWords32, words_ + word * static_cast<int>(kLanes)); }

  // Stores the first `count` blocks, `step` bytes apart.
  void store(std::uint8_t* block, std::size_t count, std::size_t step = sizeof(Block)) const {
    alignas(16) std::uint8_t bytes[kLanes][4 * kWords];
    std::uint8_t* rows[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) rows[lane] = bytes[lane];
    lanes_to_rows(words_, kWords, rows);
    for (std::size_t lane = 0; lane < count; ++lane) std::memcpy(block + lane * step, bytes[lane], sizeof(Block));
  }

 private:
  static constexpr auto kWords32 = simd::kWords;
  alignas(64) std::uint32_t words_[kWords * kLanes];
};

}  // namespace ggufmill::simd
