#pragma once
// What a kernel with one block a lane reads and writes: a batch of blocks, and their packed bytes as words in lanes.

#include <algorithm>
#include <cstring>

#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

// kSets times kLanes blocks of F32. Where a call has fewer left, the last one again.
template <int kSets>
struct Batch {
  static constexpr std::size_t kBlocks = kSets * kLanes;
  bool weighted;                     // whether `importance` is there
  const float* x[kBlocks];           // the blocks' weights
  const float* importance[kBlocks];  // of the blocks' columns
  float row_mean_square[kBlocks];    // of the blocks' rows; for codecs that ask for it, when weighted
};

// kLanes packed blocks, as 32-bit little-endian words: byte 4 * w + b of the block in lane l is byte b of lane l of
// word w. Words beyond the block are not written.
template <class Block>
class LaneBlocks {
 public:
  static constexpr int kWords = (static_cast<int>(sizeof(Block)) + 15) / 16 * 4;

  void set(int word, Words value) { hn::Store(value, kWords32, words_ + word * static_cast<int>(kLanes)); }

  // The first `count` blocks to `block`.
  void store(std::uint8_t* block, std::size_t count) const {
    alignas(16) std::uint8_t bytes[kLanes][4 * kWords];
    std::uint8_t* rows[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) rows[lane] = bytes[lane];
    lanes_to_rows(words_, kWords, rows);
    for (std::size_t lane = 0; lane < count; ++lane)
      std::memcpy(block + lane * sizeof(Block), bytes[lane], sizeof(Block));
  }

 private:
  static constexpr auto kWords32 = simd::kWords;
  alignas(64) std::uint32_t words_[kWords * kLanes];
};

}  // namespace ggufmill::simd
