// Q6_K. Source: ggml, src/ggml-quants.c (quantize_row_q6_K_ref, quantize_row_q6_K_impl, dequantize_row_q6_K).

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/reference/crumbs.h"
#include "plugins/reference/fit.h"
#include "plugins/reference/k_types.h"

namespace ggufmill::reference {
namespace {

constexpr int kGroups = 16;
constexpr int kGroup = 16;

// Computes the best levels for the scales as stored. A group with scale 0 keeps its levels.
void settle_levels(const float* x, const Q6_K::Block& block, std::uint8_t* levels) {
  for (int group = 0; group < kGroups; ++group, x += kGroup, levels += kGroup) {
    const float scale = block.d.load() * static_cast<float>(signed_byte(block.scales[group]));
    if (scale == 0) continue;
    for (int i = 0; i < kGroup; ++i)
      levels[i] = static_cast<std::uint8_t>(clamp_level(nearest_int(x[i] / scale), -32, 31) + 32);
  }
}

void pack_low_nibbles(const std::uint8_t* levels, std::uint8_t* ql) {
  for (int i = 0; i < kSuperBlock / 2; ++i) {
    const std::uint8_t* first = levels + (i / 64) * 128 + i % 64;
    ql[i] = static_cast<std::uint8_t>((first[0] & 0xf) | (first[64] & 0xf) << 4);
  }
}

int low_nibble(const std::uint8_t* ql, int i) {
  const int byte = ql[i / 128 * 64 + i % 64];
  return i % 128 < 64 ? byte & 0xf : byte >> 4;
}

}  // namespace

void Q6_K::encode(const float* x, const float* importance, Block& block) {
  std::uint8_t levels[kSuperBlock];
  float scales[kGroups];
  for (int group = 0; group < kGroups; ++group) {
    const int at = group * kGroup;
    scales[group] = fit_symmetric(kGroup, 32, x + at, importance ? importance + at : nullptr, levels + at);
  }
  const float extreme = extreme_or_zero(scales);
  if (extreme == 0) {
    std::memset(&block, 0, sizeof block);
    return;
  }
  const float inverse = -128.0f / extreme;
  block.d.store(1 / inverse);
  for (int i = 0; i < kGroups; ++i)
    block.scales[i] = static_cast<std::uint8_t>(std::min(127, nearest_int(inverse * scales[i])));
  settle_levels(x, block, levels);
  put_levels(levels, block);
}

void Q6_K::pack(float d, const std::uint8_t* codes, const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  std::memcpy(block.scales, codes, sizeof block.scales);
  put_levels(levels, block);
}

void Q6_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int i = 0; i < kSuperBlock; ++i) {
    const int level = low_nibble(block.ql, i) + 16 * static_cast<int>(crumb(block.qh, i));
    x[i] = d * static_cast<float>(signed_byte(block.scales[i / kGroup])) * static_cast<float>(level - 32);
  }
}

void Q6_K::levels(const Block& block, std::uint8_t* levels) {
  for (int i = 0; i < kSuperBlock; ++i)
    levels[i] = static_cast<std::uint8_t>(low_nibble(block.ql, i) + 16 * static_cast<int>(crumb(block.qh, i)));
}

void Q6_K::put_levels(const std::uint8_t* levels, Block& block) {
  pack_low_nibbles(levels, block.ql);
  pack_crumbs(levels, 4, block.qh);
}

void Q6_K::lines(const Block& block, float* scales, float* offsets) {
  for (int group = 0; group < kGroups; ++group) {
    scales[group] = block.d.load() * static_cast<float>(signed_byte(block.scales[group]));
    offsets[group] = -32 * scales[group];
  }
}

}  // namespace ggufmill::reference
