#include "plugins/ik/k_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/ik/divisions.h"
#include "plugins/ik/fields.h"
#include "plugins/ik/nonlinear.h"

namespace ggufmill::ik {
namespace {

using Levels = std::uint8_t[kSuperBlock];

// ---- fields that several types share ----

// Pairs of bits, four in a byte: the levels of IQ2_K.
unsigned pair_of_bits(const std::uint8_t* bytes, int i) {
  return bits_at(bytes, 32 * (i / 128) + i % 32, 2 * (i / 32 % 4), 3);
}
void add_pair_of_bits(std::uint8_t* bytes, int i, unsigned value) {
  add_bits(bytes, 32 * (i / 128) + i % 32, 2 * (i / 32 % 4), value);
}
// Single bits, eight in a byte.
unsigned high_bit(const std::uint8_t* bytes, int i) { return bits_at(bytes, i % 32, i / 32, 1); }
void add_high_bit(std::uint8_t* bytes, int i, unsigned value) { add_bits(bytes, i % 32, i / 32, value); }
// Nibbles of IQ5_K and IQ6_K.
unsigned low_nibble(const std::uint8_t* bytes, int i) {
  return bits_at(bytes, 32 * (i / 64) + i % 32, 4 * (i / 32 % 2), 15);
}
void add_low_nibble(std::uint8_t* bytes, int i, unsigned value) {
  add_bits(bytes, 32 * (i / 64) + i % 32, 4 * (i / 32 % 2), value);
}

// Six-bit scales of IQ4_K and IQ5_K, from -32 to 31.
template <class Block>
int scale_6(const Block& block, int b) {
  return (nibble(block.scales_low, b) | (block.scales_high[b / 4] >> (2 * (b % 4)) & 3) << 4) - 32;
}
template <class Block>
void add_scale_6(Block& block, int b, int scale) {
  const auto code = static_cast<unsigned>(scale + 32);
  add_nibble(block.scales_low, b, code & 15);
  add_bits(block.scales_high, b / 4, 2 * (b % 4), code >> 4);
}

// ---- the steps of an encoder ----

// The scales of the sub-blocks of a super-block.
struct Scales {
  float scale[kSubBlocks] = {};
  bool is_shifted[kSubBlocks] = {};

  // Returns the scale of greatest magnitude, with its sign; the first of several.
  float extreme() const { return extreme_of(scale); }
};

template <std::size_t kSize>
Scales search_scales(const Tables<kSize>& tables, const float* x, const float* weights, int tries, float step,
                     bool refits) {
  Scales scales;
  for (int b = 0; b < kSubBlocks; ++b) {
    const float *values = x + b * kSubBlock, *of_values = weights + b * kSubBlock;
    const SubBlockScale found = search_tables(tables, kSubBlock, values, of_values, tries, step);
    scales.scale[b] = found.scale;
    scales.is_shifted[b] = found.is_shifted;
    if (refits && found.scale != 0)
      scales.scale[b] = refit(tables[found.is_shifted], kSubBlock, values, of_values, found.scale);
  }
  return scales;
}

// The codes of scales that are multiples of d, and the levels for them.
struct Coded {
  float d = 0;
  int code[kSubBlocks] = {};
  Levels levels = {};
};

// Quantizes the scales to codes in [-limit - below, limit], where the one of greatest magnitude gets the code -limit -
// below; then fits d to the levels.
template <std::size_t kSize>
Coded code_scales(const Tables<kSize>& tables, const Scales& scales, const float* x, const float* weights, int least,
                  int most, bool skips_zero) {
  Coded coded;
  coded.d = scales.extreme() / static_cast<float>(least);
  const float inverse = coded.d != 0 ? 1 / coded.d : 0;
  Sums sums;
  for (int b = 0; b < kSubBlocks; ++b) {
    coded.code[b] = std::clamp(nearest_int(inverse * scales.scale[b]), least, most);
    if (skips_zero && coded.code[b] == 0) continue;
    choose_levels(tables[scales.is_shifted[b]], kSubBlock, x + b * kSubBlock, weights + b * kSubBlock, coded.d,
                  coded.code[b], coded.levels + b * kSubBlock, sums);
  }
  if (sums.q2 > 0) coded.d = sums.qx / sums.q2;
  return coded;
}

template <class Block>
void store_tables(const Scales& scales, Block& block) {
  for (int b = 0; b < kSubBlocks; ++b)
    if (scales.is_shifted[b]) block.extra.set(b);
}

}  // namespace

void IQ2_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int i = 0; i < kSuperBlock; ++i) {
    const int b = i / kSubBlock;
    const float scale = d * static_cast<float>(nibble(block.scales, b) - 8);
    x[i] = scale * kValues2[block.extra.bit(b)][pair_of_bits(block.qs, i)];
  }
}

void IQ2_K::encode(const float* x, const float* importance, Block& block) {
  std::memset(&block, 0, sizeof block);
  float weights[kSuperBlock];
  make_weights<kSuperBlock>({1.5f, Without::kSquaresAndQuarter}, kSubBlock, x, importance, weights);
  Scales scales;
  float of_sub_blocks[kSubBlocks];  // sums of weights
  for (int b = 0; b < kSubBlocks; ++b) {
    const float* const some = weights + b * kSubBlock;
    const SubBlockScale found = search_divisions<kSubBlock>(x + b * kSubBlock, some);
    scales.scale[b] = found.scale;
    scales.is_shifted[b] = found.is_shifted;
    of_sub_blocks[b] = 0;
    for (int i = 0; i < kSubBlock; ++i) of_sub_blocks[b] += some[i];
  }
  float d = fit_codes(kSubBlocks, 8, scales.scale, of_sub_blocks);
  if (d == 0) return;
  store_tables(scales, block);
  const float inverse = 1 / d;
  Sums sums;
  Levels levels = {};
  for (int b = 0; b < kSubBlocks; ++b) {
    const int code = std::clamp(nearest_int(inverse * scales.scale[b]), -8, 7);
    add_nibble(block.scales, b, static_cast<unsigned>(code + 8));
    if (code != 0)
      choose_levels(kValues2[scales.is_shifted[b]], kSubBlock, x + b * kSubBlock, weights + b * kSubBlock, d, code,
                    levels + b * kSubBlock, sums);
  }
  for (int i = 0; i < kSuperBlock; ++i) add_pair_of_bits(block.qs, i, levels[i]);
  if (sums.q2 > 0) d = sums.qx / sums.q2;
  block.d.store(1.030f * d);
}

void IQ3_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int i = 0; i < kSuperBlock; ++i) {
    const int b = i / kSubBlock, size = 2 * nibble(block.scales, b) + 1;
    const float scale = d * static_cast<float>(block.negative.bit(b) ? -size : size);
    x[i] = scale * kValues3[block.extra.bit(b)][pair_of_bits(block.qs, i) | high_bit(block.qh, i) << 2];
  }
}

void IQ3_K::encode(const float* x, const float* importance, Block& block) {
  std::memset(&block, 0, sizeof block);
  float weights[kSuperBlock];
  make_weights<kSuperBlock>({1.5f, Without::kSquaresAndQuarter}, kSubBlock, x, importance, weights);
  const Scales scales = search_scales(kValues3, x, weights, 3, 2, true);
  const float extreme = std::fabs(scales.extreme());
  if (extreme == 0) return;
  store_tables(scales, block);
  float d = extreme / 31;
  const float inverse = 1 / d;
  Sums sums;
  Levels levels = {};
  for (int b = 0; b < kSubBlocks; ++b) {
    const int code = std::clamp(nearest_int(0.5f * (inverse * std::fabs(scales.scale[b]) - 1)), 0, 15);
    add_nibble(block.scales, b, static_cast<unsigned>(code));
    if (scales.scale[b] < 0) block.negative.set(b);
    choose_levels(kValues3[scales.is_shifted[b]], kSubBlock, x + b * kSubBlock, weights + b * kSubBlock, d,
                  scales.scale[b] < 0 ? -(2 * code + 1) : 2 * code + 1, levels + b * kSubBlock, sums);
  }
  for (int i = 0; i < kSuperBlock; ++i) {
    add_pair_of_bits(block.qs, i, levels[i] & 3);
    add_high_bit(block.qh, i, levels[i] >> 2);
  }
  if (sums.q2 > 0) d = sums.qx / sums.q2;
  block.d.store(1.01f * d);
}

void IQ4_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int i = 0; i < kSuperBlock; ++i) {
    const int b = i / kSubBlock;
    const unsigned level = bits_at(block.qs, 16 * (i / 32) + i % 16, 4 * (i / 16 % 2), 15);
    x[i] = d * static_cast<float>(scale_6(block, b)) * kValues4[block.extra.bit(b)][level];
  }
}

void IQ4_K::encode(const float* x, const float* importance, Block& block) {
  std::memset(&block, 0, sizeof block);
  float weights[kSuperBlock];
  make_weights<kSuperBlock>({2, Without::kSquares}, kSubBlock, x, importance, weights);
  const Scales scales = search_scales(kValues4, x, weights, 7, 1, false);
  const Coded coded = code_scales(kValues4, scales, x, weights, -32, 31, false);
  store_tables(scales, block);
  for (int b = 0; b < kSubBlocks; ++b) add_scale_6(block, b, coded.code[b]);
  for (int i = 0; i < kSuperBlock; ++i) add_bits(block.qs, 16 * (i / 32) + i % 16, 4 * (i / 16 % 2), coded.levels[i]);
  block.d.store(coded.d);
}

void IQ5_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int i = 0; i < kSuperBlock; ++i) {
    const int b = i / kSubBlock;
    const unsigned level = low_nibble(block.qs, i) | high_bit(block.qh, i) << 4;
    x[i] = d * static_cast<float>(scale_6(block, b)) * kValues5[block.extra.bit(b)][level];
  }
}

void IQ5_K::encode(const float* x, const float* importance, Block& block) {
  std::memset(&block, 0, sizeof block);
  float weights[kSuperBlock];
  make_weights<kSuperBlock>({2, Without::kSquaresAndQuarter}, kSubBlock, x, importance, weights);
  const Scales scales = search_scales(kValues5, x, weights, 5, 1, true);
  if (scales.extreme() == 0) return;
  const Coded coded = code_scales(kValues5, scales, x, weights, -32, 31, true);
  store_tables(scales, block);
  for (int b = 0; b < kSubBlocks; ++b) add_scale_6(block, b, coded.code[b]);
  for (int i = 0; i < kSuperBlock; ++i) {
    add_low_nibble(block.qs, i, coded.levels[i] & 15);
    add_high_bit(block.qh, i, coded.levels[i] >> 4);
  }
  block.d.store(coded.d);
}

void IQ6_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int i = 0; i < kSuperBlock; ++i) {
    const int b = i / kSubBlock;
    const auto q = static_cast<float>(low_nibble(block.qs, i) | pair_of_bits(block.qh, i) << 4);
    const float level = -127.0f + q * (6.2568f + q * (-0.11218f + q * 0.0011972f)) + (block.extra.bit(b) ? 1.0f : 0.0f);
    x[i] = d * static_cast<float>(static_cast<std::int8_t>(block.scales[b])) * level;
  }
}

void IQ6_K::encode(const float* x, const float* importance, Block& block) {
  std::memset(&block, 0, sizeof block);
  float weights[kSuperBlock];
  make_weights<kSuperBlock>({2, Without::kSquaresAndQuarter}, kSubBlock, x, importance, weights);
  const Scales scales = search_scales(kValues6, x, weights, 5, 1, true);
  if (scales.extreme() == 0) return;
  const Coded coded = code_scales(kValues6, scales, x, weights, -127, 127, true);
  store_tables(scales, block);
  for (int b = 0; b < kSubBlocks; ++b) block.scales[b] = static_cast<std::uint8_t>(coded.code[b]);
  for (int i = 0; i < kSuperBlock; ++i) {
    add_low_nibble(block.qs, i, coded.levels[i] & 15);
    add_pair_of_bits(block.qh, i, coded.levels[i] >> 4);
  }
  block.d.store(coded.d);
}

}  // namespace ggufmill::ik
