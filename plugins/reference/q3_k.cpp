// Q3_K. Source: ggml, src/ggml-quants.c (quantize_row_q3_K_ref, quantize_row_q3_K_impl, dequantize_row_q3_K).

#include <algorithm>
#include <cmath>
#include <span>

#include "plugins/reference/crumbs.h"
#include "plugins/reference/fit.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {
namespace {

constexpr int kGroups = 16;
constexpr int kGroup = 16;

// Computes the codes of the group scales as value + 32; the first scale of greatest magnitude gets 0. Returns the scale
// of the codes.
float code_plain(const float* scales, std::uint8_t* codes) {
  const float extreme = extreme_of(std::span(scales, kGroups));
  std::fill_n(codes, kGroups, std::uint8_t{0});
  if (extreme == 0) return 0;
  const float inverse = -32.0f / extreme;
  for (int i = 0; i < kGroups; ++i) {
    const int code = signed_byte(nearest_int(inverse * scales[i]));
    codes[i] = static_cast<std::uint8_t>(clamp_level(code, -32, 31) + 32);
  }
  return 1 / inverse;
}

float fit_plain(const float* x, std::uint8_t* levels, std::uint8_t* codes) {
  float scales[kGroups];
  for (int group = 0; group < kGroups; ++group)
    scales[group] = fit_symmetric_by_steps(kGroup, 4, x + group * kGroup, levels + group * kGroup);
  return code_plain(scales, codes);
}

float fit_weighted(const float* x, const float* importance, std::uint8_t* levels, std::uint8_t* codes) {
  const float spread = 2 * sum_of_squares(x, kSuperBlock) / float{kSuperBlock};
  float weights[kGroup];
  float weight_sums[kGroups];
  float scales[kGroups];
  for (int group = 0; group < kGroups; ++group, x += kGroup, importance += kGroup) {
    weight_sums[group] = weigh(kGroup, x, importance, spread, weights);
    scales[group] = fit_symmetric(kGroup, 4, x, weights, levels + group * kGroup);
  }
  return fit_symmetric(kGroups, 32, scales, weight_sums, codes);
}

// Computes the best levels for the scales as stored. A group with scale 0 keeps its levels.
void settle_levels(const float* x, float d, const std::uint8_t* codes, std::uint8_t* levels) {
  for (int group = 0; group < kGroups; ++group, x += kGroup, levels += kGroup) {
    const float scale = d * static_cast<float>(codes[group] - 32);
    if (scale == 0) continue;
    for (int i = 0; i < kGroup; ++i)
      levels[i] = static_cast<std::uint8_t>(clamp_level(nearest_int(x[i] / scale), -4, 3) + 4);
  }
}

void pack_scales(const std::uint8_t* codes, std::uint8_t* bytes) {
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>((codes[i] & 0xf) | (codes[i + 8] & 0xf) << 4);
  for (int i = 0; i < 4; ++i) {
    unsigned byte = 0;
    for (int part = 0; part < 4; ++part) byte |= static_cast<unsigned>(codes[i + 4 * part] >> 4) << (2 * part);
    bytes[8 + i] = static_cast<std::uint8_t>(byte);
  }
}

int unpack_scale(const std::uint8_t* bytes, int group) {
  const int low = group < 8 ? bytes[group] & 0xf : bytes[group - 8] >> 4;
  const int high = (bytes[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (low | high << 4) - 32;
}

void pack_third_bits(const std::uint8_t* levels, std::uint8_t* hmask) {
  for (int byte = 0; byte < 32; ++byte) {
    unsigned bits = 0;
    for (int i = 0; i < 8; ++i) bits |= static_cast<unsigned>(levels[byte + 32 * i] >> 2) << i;
    hmask[byte] = static_cast<std::uint8_t>(bits);
  }
}

}  // namespace

void Q3_K::encode(const float* x, const float* importance, Block& block) {
  std::uint8_t levels[kSuperBlock];
  std::uint8_t codes[kGroups];
  block.d.store(importance ? fit_weighted(x, importance, levels, codes) : fit_plain(x, levels, codes));
  settle_levels(x, block.d.load(), codes, levels);
  pack_scales(codes, block.scales);
  put_levels(levels, block);
}

void Q3_K::pack(float d, const std::uint8_t* codes, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  pack_scales(codes, block.scales);
  put_levels(levels, block);
}

void Q3_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int group = 0; group < kGroups; ++group) {
    const float scale = d * static_cast<float>(unpack_scale(block.scales, group));
    for (int i = group * kGroup; i < (group + 1) * kGroup; ++i) {
      const int third_bit = (block.hmask[i % 32] >> (i / 32)) & 1;
      x[i] = scale * static_cast<float>(static_cast<int>(crumb(block.qs, i)) - (third_bit ? 0 : 4));
    }
  }
}

void Q3_K::levels(const Block& block, std::uint8_t* levels) {
  for (int i = 0; i < kSuperBlock; ++i)
    levels[i] = static_cast<std::uint8_t>(crumb(block.qs, i) | ((block.hmask[i % 32] >> (i / 32)) & 1u) << 2);
}

void Q3_K::put_levels(const std::uint8_t* levels, Block& block) {
  pack_third_bits(levels, block.hmask);
  pack_crumbs(levels, 0, block.qs);
}

void Q3_K::lines(const Block& block, float* scales, float* offsets) {
  for (int group = 0; group < kGroups; ++group) {
    scales[group] = block.d.load() * static_cast<float>(unpack_scale(block.scales, group));
    offsets[group] = -4 * scales[group];
  }
}

}  // namespace ggufmill::reference
