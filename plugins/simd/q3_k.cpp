// Q3_K, with the same results as plugins/reference/q3_k.cpp, and with one super-block per lane.

#include "plugins/simd/bytes.h"
#include "plugins/simd/fit_all_steps.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd {
namespace {

constexpr int kGroups = 16;
constexpr int kGroup = 16;
constexpr int kInFlight = kLanes == 16 ? 8 : 4;
constexpr int kLimit = 4;
constexpr int kStep = static_cast<int>(kLanes);

using Levels = LaneLevels<kSuperBlock>;

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

Floats fit_plain(const SuperBlocks& blocks, Levels& levels, Words* codes) {
  Floats scales[kGroups];
  AllStepFits<kGroups, kGroup, kLimit, kInFlight> fit;
  fit.run(blocks.x(0), scales, levels);
  return code_plain(scales, codes);
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

Floats fit_weighted(const SuperBlocks& blocks, Levels& levels, Words* codes) {
  const Floats spread = floats(2) * blocks.sum_of_squares(0, kSuperBlock) / floats(float{kSuperBlock});
  Floats scales[kGroups], weight_sums[kGroups];
  alignas(64) float weights[kGroup * kLanes];
  SymmetricFit<kGroup, kLimit, true> fit;
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * kGroup;
    weight_sums[group] = blocks.weigh(first, kGroup, spread, weights);
    const Symmetric best = fit.run(blocks.x(first), weights);
    scales[group] = best.scale;
    for (int i = first; i < first + kGroup; ++i) levels.set(i, as_words(best.level(blocks.at(i), kLimit)));
  }
  return code_weighted(scales, weight_sums, codes);
}

// Computes the best levels for the scales as stored. A group with scale 0 keeps its levels.
void settle_levels(const SuperBlocks& blocks, Floats d, const Words* codes, Levels& levels) {
  for (int group = 0; group < kGroups; ++group) {
    const Floats scale = d * to_floats(as_ints(codes[group]) - ints(32));
    const Mask zero = scale == floats(0);
    for (int i = group * kGroup; i < (group + 1) * kGroup; ++i) {
      const Ints level = clamp(nearest_ints(blocks.at(i) / scale), -kLimit, kLimit - 1) + ints(kLimit);
      levels.set(i, choose(zero, levels[i], as_words(level)));
    }
  }
}

// Returns byte i of the scales. The first eight bytes have two nibbles each, the others the upper two bits of four
// scales each.
Words scale_byte(const Words* codes, int i) {
  if (i < 8) return (codes[i] & words(0xf)) | hn::ShiftLeft<4>(codes[i + 8] & words(0xf));
  const Words* first = codes + i - 8;
  const auto pair = [&](int part) { return hn::ShiftRight<4>(first[4 * part]); };
  return pair(0) | hn::ShiftLeft<2>(pair(1)) | hn::ShiftLeft<4>(pair(2)) | hn::ShiftLeft<6>(pair(3));
}

// Returns a byte of hmask. Bit i / 32 of byte i % 32 is the third bit of level i.
Words third_bits(const Levels& levels, int byte) {
  Words bits = words(0);
  for (int i = 0; i < 8; ++i) bits = bits | hn::ShiftLeftSame(hn::ShiftRight<2>(levels[byte + 32 * i]), i);
  return bits;
}

}  // namespace

void Q3_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  const SuperBlocks blocks(batch);
  Levels levels;
  Words codes[kGroups];
  const Floats scale = blocks.weighted() ? fit_weighted(blocks, levels, codes) : fit_plain(blocks, levels, codes);
  const Words d = floats_to_half(scale);
  settle_levels(blocks, half_to_floats(d), codes, levels);
  set_bytes(*packed, 0, 8, [&](int i) { return third_bits(levels, i); });
  set_bytes(*packed, 8, 16, [&](int i) { return crumbs<0>(levels, i); });
  set_bytes(*packed, 24, 3, [&](int i) { return scale_byte(codes, i); });
  packed->set(27, d);
}

}  // namespace ggufmill::simd
