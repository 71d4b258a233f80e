// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q8_1. The 4-bit and 5-bit types also have encoders with importance. Source: ggml,
// src/ggml-quants.c (quantize_row_*_ref, and quantize_row_q4_0_impl and its siblings).

#include "plugins/reference/simple_types.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <span>

#include "plugins/reference/fit.h"
#include "plugins/reference/nibbles.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {
namespace {

constexpr int kCount = 32;

float reciprocal_or_zero(float d) { return d != 0 ? 1.0f / d : 0.0f; }

// Computes signed bytes q for x = d * q, rounded to nearest with ties away from zero; the greatest magnitude gets 127.
// Returns d.
float signed_bytes(const float* x, std::uint8_t* qs) {
  float magnitude = 0;
  for (int j = 0; j < kCount; ++j) magnitude = magnitude > std::fabs(x[j]) ? magnitude : std::fabs(x[j]);
  const float d = magnitude / 127.0f;
  const float inverse = reciprocal_or_zero(d);
  for (int j = 0; j < kCount; ++j) qs[j] = static_cast<std::uint8_t>(to_int32(round_away(x[j] * inverse)));
  return d;
}

// Computes levels 0 .. 2 * half - 1 for x = d * (level - half), with ties rounded up; the extreme value gets level 0.
// Returns d.
float symmetric_levels(const float* x, int half, std::uint8_t* levels) {
  const float d = extreme_of(std::span(x, kCount)) / static_cast<float>(-half);
  const float inverse = reciprocal_or_zero(d);
  const float rounding = static_cast<float>(half) + 0.5f;
  for (int j = 0; j < kCount; ++j) {
    const int level = signed_byte(to_int32(x[j] * inverse + rounding));
    levels[j] = static_cast<std::uint8_t>(level < 2 * half - 1 ? level : 2 * half - 1);
  }
  return d;
}

struct Range {
  float low = FLT_MAX;
  float high = -FLT_MAX;
};

Range range_of(const float* x) {
  Range range;
  for (int j = 0; j < kCount; ++j) {
    if (x[j] < range.low) range.low = x[j];
    if (x[j] > range.high) range.high = x[j];
  }
  return range;
}

// Computes levels for x = d * level + range.low, not yet limited to the number of bits of the type. Returns d.
float affine_levels(const float* x, const Range& range, int limit, std::int32_t* levels) {
  const float d = (range.high - range.low) / static_cast<float>(limit);
  const float inverse = reciprocal_or_zero(d);
  for (int j = 0; j < kCount; ++j) levels[j] = to_int32((x[j] - range.low) * inverse + 0.5f);
  return d;
}

// Weights of a block, computed from importance.
struct Weights {
  float values[kCount];
  Weights(const float* x, const float* importance, float row_mean_square) {
    weigh(kCount, x, importance, row_mean_square, values);
  }
};

}  // namespace

void Q4_0::encode(const float* x, Block& block) {
  std::uint8_t levels[kCount];
  block.d.store(symmetric_levels(x, 8, levels));
  pack_nibbles(levels, block.qs);
}

void Q4_0::decode(const Block& block, float* x) {
  std::uint8_t levels[kCount];
  const float d = block.d.load();
  unpack_nibbles(block.qs, levels);
  for (int j = 0; j < kCount; ++j) x[j] = static_cast<float>(levels[j] - 8) * d;
}

void Q4_1::encode(const float* x, Block& block) {
  const Range range = range_of(x);
  std::int32_t wide[kCount];
  std::uint8_t levels[kCount];
  block.d.store(affine_levels(x, range, 15, wide));
  block.m.store(range.low);
  for (int j = 0; j < kCount; ++j) {
    const int level = signed_byte(wide[j]);
    levels[j] = static_cast<std::uint8_t>(level < 15 ? level : 15);
  }
  pack_nibbles(levels, block.qs);
}

void Q4_1::decode(const Block& block, float* x) {
  std::uint8_t levels[kCount];
  const float d = block.d.load();
  const float m = block.m.load();
  unpack_nibbles(block.qs, levels);
  for (int j = 0; j < kCount; ++j) x[j] = static_cast<float>(levels[j]) * d + m;
}

void Q5_0::encode(const float* x, Block& block) {
  std::uint8_t levels[kCount];
  block.d.store(symmetric_levels(x, 16, levels));
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q5_0::decode(const Block& block, float* x) {
  std::uint8_t levels[kCount];
  const float d = block.d.load();
  unpack_nibbles(block.qs, levels);
  unpack_fifth_bits(block.qh, levels);
  for (int j = 0; j < kCount; ++j) x[j] = static_cast<float>(levels[j] - 16) * d;
}

// Unlike Q4_1, this type needs no limit: a level above 31 could only be caused by rounding at the top of the range, and
// 31 + 0.5 is exact.
void Q5_1::encode(const float* x, Block& block) {
  const Range range = range_of(x);
  std::int32_t wide[kCount];
  std::uint8_t levels[kCount];
  block.d.store(affine_levels(x, range, 31, wide));
  block.m.store(range.low);
  for (int j = 0; j < kCount; ++j) levels[j] = static_cast<std::uint8_t>(wide[j]);
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q5_1::decode(const Block& block, float* x) {
  std::uint8_t levels[kCount];
  const float d = block.d.load();
  const float m = block.m.load();
  unpack_nibbles(block.qs, levels);
  unpack_fifth_bits(block.qh, levels);
  for (int j = 0; j < kCount; ++j) x[j] = static_cast<float>(levels[j]) * d + m;
}

void Q8_0::encode(const float* x, Block& block) { block.d.store(signed_bytes(x, block.qs)); }

void Q8_0::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int j = 0; j < kCount; ++j) x[j] = static_cast<float>(signed_byte(block.qs[j])) * d;
}

void Q8_1::encode(const float* x, Block& block) {
  const float d = signed_bytes(x, block.qs);
  int sum = 0;
  for (int j = 0; j < kCount; ++j) sum += signed_byte(block.qs[j]);
  block.d.store(d);
  block.s.store(static_cast<float>(sum) * d);
}

void Q8_1::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int j = 0; j < kCount; ++j) x[j] = static_cast<float>(signed_byte(block.qs[j])) * d;
}

void Q4_0::pack(float d, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  pack_nibbles(levels, block.qs);
}

void Q4_1::pack(float d, float m, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  block.m.store(m);
  pack_nibbles(levels, block.qs);
}

void Q5_0::pack(float d, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q5_1::pack(float d, float m, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  block.m.store(m);
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q8_0::pack(float d, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  std::copy_n(levels, kCount, block.qs);
}

void Q4_0::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  block.d.store(fit_symmetric(kCount, 8, x, weights.values, levels));
  pack_nibbles(levels, block.qs);
}

void Q4_1::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  const AffineFit fit = fit_affine(kCount, 15, x, weights.values, kWeightedSearch, levels);
  block.d.store(fit.scale);
  block.m.store(fit.minimum);
  pack_nibbles(levels, block.qs);
}

void Q5_0::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  block.d.store(fit_symmetric(kCount, 16, x, weights.values, levels));
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q5_1::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  const AffineFit fit = fit_affine(kCount, 31, x, weights.values, kWeightedSearch, levels);
  block.d.store(fit.scale);
  block.m.store(fit.minimum);
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q4_0::levels(const Block& block, std::uint8_t* levels) { unpack_nibbles(block.qs, levels); }

void Q4_0::put_levels(const std::uint8_t* levels, Block& block) { pack_nibbles(levels, block.qs); }

void Q4_0::lines(const Block& block, float* scales, float* offsets) {
  scales[0] = block.d.load();
  offsets[0] = -8 * scales[0];
}

void Q4_1::levels(const Block& block, std::uint8_t* levels) { unpack_nibbles(block.qs, levels); }

void Q4_1::put_levels(const std::uint8_t* levels, Block& block) { pack_nibbles(levels, block.qs); }

void Q4_1::lines(const Block& block, float* scales, float* offsets) {
  scales[0] = block.d.load();
  offsets[0] = block.m.load();
}

void Q5_0::levels(const Block& block, std::uint8_t* levels) {
  unpack_nibbles(block.qs, levels);
  unpack_fifth_bits(block.qh, levels);
}

void Q5_0::put_levels(const std::uint8_t* levels, Block& block) {
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q5_0::lines(const Block& block, float* scales, float* offsets) {
  scales[0] = block.d.load();
  offsets[0] = -16 * scales[0];
}

void Q5_1::levels(const Block& block, std::uint8_t* levels) {
  unpack_nibbles(block.qs, levels);
  unpack_fifth_bits(block.qh, levels);
}

void Q5_1::put_levels(const std::uint8_t* levels, Block& block) {
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q5_1::lines(const Block& block, float* scales, float* offsets) {
  scales[0] = block.d.load();
  offsets[0] = block.m.load();
}

}  // namespace ggufmill::reference
