#pragma once
// Packs levels into words, with one block per lane. byte(i) returns byte i of a field of the block, as the lowest byte
// of each word; the upper bytes are zero.

#include "plugins/simd/lane_blocks.h"

namespace ggufmill::simd {

// Levels or codes of kCount elements, in lanes.
template <int kCount>
struct LaneLevels {
  alignas(64) std::uint32_t values[kCount * kLanes];

  void set(int i, Words level) { hn::Store(level, kWords, values + i * static_cast<int>(kLanes)); }
  Words operator[](int i) const { return hn::Load(kWords, values + i * static_cast<int>(kLanes)); }
};

// Returns bytes i to i + 3.
template <class Byte>
HWY_INLINE Words four_bytes(int i, const Byte& byte) {
  const Words low = byte(i) | hn::ShiftLeft<8>(byte(i + 1));
  return low | hn::ShiftLeft<16>(byte(i + 2)) | hn::ShiftLeft<24>(byte(i + 3));
}

// Sets `count` words, starting at word `first`.
template <class Block, class Byte>
HWY_INLINE void set_bytes(LaneBlocks<Block>& block, int first, int count, const Byte& byte) {
  for (int word = 0; word < count; ++word) block.set(first + word, four_bytes(4 * word, byte));
}

// Returns byte i of the 64 bytes that reference::pack_crumbs produces from bits kShift and kShift + 1 of 256 levels.
template <int kShift>
HWY_INLINE Words crumbs(const LaneLevels<256>& levels, int i) {
  const int at = i / 32 * 128 + i % 32;
  const auto part = [&](int p) { return hn::ShiftRight<kShift>(levels[at + 32 * p]) & words(3); };
  return part(0) | hn::ShiftLeft<2>(part(1)) | hn::ShiftLeft<4>(part(2)) | hn::ShiftLeft<6>(part(3));
}

}  // namespace ggufmill::simd
