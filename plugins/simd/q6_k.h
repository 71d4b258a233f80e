#pragma once
// Packing of Q6_K for searches of the scales and levels of its groups, with one super-block per lane.

#include "plugins/simd/fit_symmetric.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd::q6_k {

inline constexpr int kGroups = 16;
inline constexpr int kGroup = 16;
inline constexpr int kLimit = 32;

// Returns the lowest byte of each lane as a signed number.
inline Ints sign_extend(Ints value) { return hn::ShiftRight<24>(hn::ShiftLeft<24>(value)); }

// Computes the best levels for the scales as stored. A group with scale 0 uses the levels of its fit, which
// fitted(group, i) returns for element i of the super-block.
template <class Level>
HWY_INLINE void settle_levels(const SuperBlocks& blocks, Floats d, const Ints* codes, const Level& fitted,
                              LaneLevels<kSuperBlock>& levels) {
  for (int group = 0; group < kGroups; ++group) {
    const Floats scale = d * to_floats(codes[group]);
    const Mask zero = scale == floats(0);
    const bool any_zero = any(zero);
    for (int i = group * kGroup; i < (group + 1) * kGroup; ++i) {
      const Floats x = blocks.at(i);
      Ints level = clamp(nearest_ints(x / scale), -kLimit, kLimit - 1) + ints(kLimit);
      if (HWY_UNLIKELY(any_zero)) level = choose(zero, fitted(group, i), level);
      levels.set(i, as_words(level));
    }
  }
}

// Blocks that are all zero in the lanes where the mask is set.
class MaskedBlocks {
 public:
  MaskedBlocks(LaneBlocks<Q6_K::Block>& blocks, Mask empty) : blocks_(blocks), empty_(empty) {}

  template <class Byte>
  void set(int first, int count, const Byte& byte) {
    for (int word = 0; word < count; ++word) set_word(first + word, four_bytes(4 * word, byte));
  }
  void set_word(int word, Words value) { blocks_.set(word, choose(empty_, words(0), value)); }

 private:
  LaneBlocks<Q6_K::Block>& blocks_;
  Mask empty_;
};

// Packs super-blocks whose groups have these scales and, if their scale as stored is 0, the levels that level(group, i)
// returns for element i of the super-block.
template <class Level>
HWY_INLINE void pack(const SuperBlocks& blocks, const Floats* scales, const Level& level,
                     LaneBlocks<Q6_K::Block>& packed) {
  Floats magnitude;
  const Floats peak = extreme<kGroups>([&](int i) { return scales[i]; }, magnitude);
  const Mask empty = magnitude < floats(reference::kZeroGroup);
  const Floats inverse = floats(-128.0f) / peak;
  Ints codes[kGroups];
  for (int i = 0; i < kGroups; ++i) codes[i] = sign_extend(hn::Min(ints(127), nearest_ints(inverse * scales[i])));
  const Words d = floats_to_half(floats(1) / inverse);
  LaneLevels<kSuperBlock> levels;
  settle_levels(blocks, half_to_floats(d), codes, level, levels);

  MaskedBlocks masked(packed, empty);
  masked.set(0, 32, [&](int i) {
    const int at = i / 64 * 128 + i % 64;
    return (levels[at] & words(0xf)) | hn::ShiftLeft<4>(levels[at + 64] & words(0xf));
  });
  masked.set(32, 16, [&](int i) { return crumbs<4>(levels, i); });
  masked.set(48, 4, [&](int i) { return as_words(codes[i]) & words(0xff); });
  masked.set_word(52, d);
}

}  // namespace ggufmill::simd::q6_k
