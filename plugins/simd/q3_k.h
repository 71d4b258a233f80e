#pragma once
// Packing of Q3_K for searches of the scales and levels of its groups, with one super-block per lane.

#include "plugins/simd/k_types.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd::q3_k {

inline constexpr int kGroups = 16;
inline constexpr int kGroup = 16;
inline constexpr int kLimit = 4;

// Levels of 256 elements, with those of four consecutive elements in the bytes of a word, in lanes.
using LevelBytes = LaneLevels<kSuperBlock / 4>;

// Sets the levels of a group, as level(i) returns them, in the given lanes.
template <class Level>
void set_group(LevelBytes& levels, int group, Mask lanes, const Level& level) {
  for (int i = 0; i < kGroup; i += 4) {
    const int word = (group * kGroup + i) / 4;
    levels.set(word, choose(lanes, four_bytes(i, level), levels[word]));
  }
}

// Returns the levels of four elements from `first` on that are best for a scale, as bytes.
HWY_INLINE Words four_levels(const SuperBlocks& blocks, int first, Floats scale) {
  // As nearest_ints() does, which subtracts 0x400000.
  constexpr std::uint32_t kLowest = 0x400000 - kLimit;
  const auto level = [&](int i) {
    const Words sum = as_words(blocks.at(first + i) / scale + floats(12582912.0f)) & words(0x007fffff);
    return as_words(clamp(as_ints(sum), kLowest, kLowest + 2 * kLimit - 1));
  };
  const Words low = level(0) + hn::ShiftLeft<8>(level(1)), high = level(2) + hn::ShiftLeft<8>(level(3));
  return low + hn::ShiftLeft<16>(high) - words(kLowest * 0x01010101u);
}

// Computes the best levels for the scales as stored. A group with scale 0 keeps the levels of its fit, which
// keep(group, lanes) sets.
template <class Keep>
void settle_levels(const SuperBlocks& blocks, Floats d, const Words* codes, LevelBytes& levels, const Keep& keep) {
  for (int group = 0; group < kGroups; ++group) {
    const Floats scale = d * to_floats(as_ints(codes[group]) - ints(32));
    const Mask zero = scale == floats(0);
    for (int i = group * kGroup; i < (group + 1) * kGroup; i += 4) levels.set(i / 4, four_levels(blocks, i, scale));
    if (HWY_UNLIKELY(any(zero))) keep(group, zero);
  }
}

// Returns byte i of the scales. The first eight bytes have two nibbles each, the others the upper two bits of four
// scales each.
inline Words scale_byte(const Words* codes, int i) {
  if (i < 8) return (codes[i] & words(0xf)) | hn::ShiftLeft<4>(codes[i + 8] & words(0xf));
  const Words* first = codes + i - 8;
  const auto pair = [&](int part) { return hn::ShiftRight<4>(first[4 * part]); };
  return pair(0) | hn::ShiftLeft<2>(pair(1)) | hn::ShiftLeft<4>(pair(2)) | hn::ShiftLeft<6>(pair(3));
}

// Returns four bytes of hmask. Bit i / 32 of byte i % 32 is the third bit of level i.
inline Words third_bits(const LevelBytes& levels, int word) {
  Words bits = words(0);
  for (int i = 0; i < 8; ++i)
    bits = bits | hn::ShiftLeftSame(hn::ShiftRight<2>(levels[word + 8 * i]) & words(0x01010101), i);
  return bits;
}

// Returns four of the 64 bytes that reference::pack_crumbs produces.
inline Words crumbs(const LevelBytes& levels, int word) {
  const int first = word / 8 * 32 + word % 8;
  const auto part = [&](int p) { return levels[first + 8 * p] & words(0x03030303); };
  return part(0) | hn::ShiftLeft<2>(part(1)) | hn::ShiftLeft<4>(part(2)) | hn::ShiftLeft<6>(part(3));
}

// Packs super-blocks whose groups have scales of `codes` times `scale` and, if their scale as stored is 0, the levels
// that keep(group) returns as a function of the number of an element of the group.
template <class Keep>
void pack(const SuperBlocks& blocks, Floats scale, const Words* codes, const Keep& keep,
          LaneBlocks<Q3_K::Block>& packed) {
  LevelBytes levels;
  const Words d = floats_to_half(scale);
  settle_levels(blocks, half_to_floats(d), codes, levels,
                [&](int group, Mask lanes) { set_group(levels, group, lanes, keep(group)); });
  for (int i = 0; i < 8; ++i) packed.set(i, third_bits(levels, i));
  for (int i = 0; i < 16; ++i) packed.set(8 + i, crumbs(levels, i));
  set_bytes(packed, 24, 3, [&](int i) { return scale_byte(codes, i); });
  packed.set(27, d);
}

}  // namespace ggufmill::simd::q3_k
