#include "plugins/reference/iq4_types.h"

#include <cmath>

#include "plugins/reference/codebooks.h"
#include "plugins/reference/fit.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/reference/iq_sub_block.h"
#include "plugins/reference/nibbles.h"

namespace ggufmill::reference {
namespace {

constexpr int kSub = 32;
constexpr int kTries = 7;  // number of scales tried on each side of the first

// Returns the index of the value nearest to x; the higher one on a tie.
std::uint8_t nearest_value(float x) {
  if (x <= kIq4Values[0]) return 0;
  if (x >= kIq4Values[15]) return 15;
  int low = 0, high = 15;  // value[low] <= x < value[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (x < kIq4Values[middle] ? high : low) = middle;
  }
  return static_cast<std::uint8_t>(x - kIq4Values[low] < kIq4Values[high] - x ? low : high);
}

// Sums for the least-squares scale of 32 values whose levels are those at `inverse`, and for the error it removes.
struct Trial {
  float xq = 0;
  float qq = 0;
};

Trial try_inverse(const float* x, const float* weight, float inverse) {
  Trial sums;
  for (int i = 0; i < kSub; ++i) {
    const float q = kIq4Values[nearest_value(inverse * x[i])];
    sums.xq += weight[i] * q * x[i];
    sums.qq += weight[i] * q * q;
  }
  return sums;
}

// Returns the best of the scales that map the extreme value close to the lowest level. The first scale tried maps it to
// the opposite sign instead.
float find_scale(const float* x, const float* weight) {
  const float extreme = extreme_or_zero({x, kSub});
  if (extreme == 0) return 0;
  const Trial first = try_inverse(x, weight, 1 / (-extreme / kIq4Values[0]));
  float scale = first.qq > 0 ? first.xq / first.qq : 0.0f;
  float best = scale * first.xq;
  for (int attempt = -kTries; attempt <= kTries; ++attempt) {
    const float inverse = static_cast<float>(attempt + kIq4Values[0]) / extreme;
    const Trial trial = try_inverse(x, weight, inverse);
    if (trial.qq > 0 && trial.xq * trial.xq > best * trial.qq) {
      scale = trial.xq / trial.qq;
      best = scale * trial.xq;
    }
  }
  return scale;
}

// mean_square: twice the mean square of the block or super-block. importance: 32 weights, or null to use the squares of
// x.
float find_scale(const float* x, const float* importance, float mean_square) {
  float weight[kSub];
  if (importance)
    weigh(x, importance, mean_square, kSub, weight);
  else
    for (int i = 0; i < kSub; ++i) weight[i] = x[i] * x[i];
  return find_scale(x, weight);
}

float inverse_or_zero(float value) { return value != 0 ? 1 / value : 0.0f; }

void put_nearest_levels(const float* x, float inverse, std::uint8_t* qs) {
  std::uint8_t levels[kSub];
  for (int i = 0; i < kSub; ++i) levels[i] = nearest_value(inverse * x[i]);
  pack_nibbles(levels, qs);
}

void get_values(const std::uint8_t* qs, float scale, float* x) {
  std::uint8_t levels[kSub];
  unpack_nibbles(qs, levels);
  for (int i = 0; i < kSub; ++i) x[i] = scale * kIq4Values[levels[i]];
}

float scale_of(const Iq4Xs::Block& block, int sub) {
  const unsigned low = block.scales_l[sub / 2] >> (sub % 2 * 4) & 15u;
  const unsigned high = load_u16(block.scales_h) >> (2 * sub) & 3u;
  return block.d.load() * static_cast<float>(static_cast<int>(low | high << 4) - 32);
}

}  // namespace

void Iq4Nl::decode(const Block& block, float* x) { get_values(block.qs, block.d.load(), x); }

void Iq4Nl::encode(const float* x, const float* importance, Block& block) {
  const float mean_square = sum_of_squares(x, kSub) * (2.0f / kSub);
  const float d = find_scale(x, importance, mean_square);
  block.d.store(d);
  put_nearest_levels(x, inverse_or_zero(d), block.qs);
}

void Iq4Xs::decode(const Block& block, float* x) {
  for (int sub = 0; sub < 8; ++sub) get_values(block.qs + 16 * sub, scale_of(block, sub), x + kSub * sub);
}

void Iq4Nl::pack(float d, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  pack_nibbles(levels, block.qs);
}

void Iq4Xs::pack(float d, const std::uint8_t* codes, const std::uint8_t* levels, Block& block) {
  block = {};
  block.d.store(d);
  for (int sub = 0; sub < 8; ++sub) {
    pack_nibbles(levels + kSub * sub, block.qs + 16 * sub);
    put_u8(block.scales_l[sub / 2], (codes[sub] & 15u) << (sub % 2 * 4));
    put_u16(block.scales_h, static_cast<unsigned>(codes[sub] >> 4) << (2 * sub));
  }
}

void Iq4Xs::encode(const float* x, const float* importance, Block& block) {
  block = {};
  const float mean_square = sum_of_squares(x, kElements) * (2.0f / kElements);
  float scales[8];
  for (int sub = 0; sub < 8; ++sub) {
    const int first = kSub * sub;
    scales[sub] = find_scale(x + first, importance ? importance + first : nullptr, mean_square);
  }
  const float d = -extreme_of(scales) / 32;
  const float inverse = inverse_or_zero(d);
  block.d.store(d);
  for (int sub = 0; sub < 8; ++sub) {
    const int level = clamp_level(nearest_int(inverse * scales[sub]), -32, 31);
    put_nearest_levels(x + kSub * sub, inverse_or_zero(d * static_cast<float>(level)), block.qs + 16 * sub);
    const unsigned stored = static_cast<unsigned>(level + 32);
    put_u8(block.scales_l[sub / 2], (stored & 15) << (sub % 2 * 4));
    put_u16(block.scales_h, stored >> 4 << (2 * sub));
  }
}

void Iq4Nl::levels(const Block& block, std::uint8_t* levels) { unpack_nibbles(block.qs, levels); }

void Iq4Nl::put_levels(const std::uint8_t* levels, Block& block) { pack_nibbles(levels, block.qs); }

void Iq4Nl::lines(const Block& block, float* scales, float* offsets) {
  scales[0] = block.d.load();
  offsets[0] = 0;
}

void Iq4Xs::levels(const Block& block, std::uint8_t* levels) {
  for (int sub = 0; sub < 8; ++sub) unpack_nibbles(block.qs + 16 * sub, levels + kSub * sub);
}

void Iq4Xs::put_levels(const std::uint8_t* levels, Block& block) {
  for (int sub = 0; sub < 8; ++sub) pack_nibbles(levels + kSub * sub, block.qs + 16 * sub);
}

void Iq4Xs::lines(const Block& block, float* scales, float* offsets) {
  for (int sub = 0; sub < 8; ++sub) {
    scales[sub] = scale_of(block, sub);
    offsets[sub] = 0;
  }
}

}  // namespace ggufmill::reference
