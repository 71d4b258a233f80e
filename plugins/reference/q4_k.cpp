// Q4_K and Q5_K, which differ in the number of bits per level and in the search without importance. Source: ggml,
// src/ggml-quants.c (quantize_row_q4_K_ref, quantize_row_q4_K_impl, dequantize_row_q4_K and their q5_K counterparts).

#include <algorithm>
#include <cmath>

#include "plugins/reference/fit.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {
namespace {

constexpr int kGroups = 8;
constexpr int kGroup = 32;
constexpr int kMaxCode = 63;

// A super-block before its scales are quantized. Minimums are subtracted, so they are not negative.
struct Fitted {
  float scales[kGroups];
  float minimums[kGroups];
  float weight_sums[kGroups];
  std::uint8_t levels[kSuperBlock];

  void fit(int group, int limit, const float* x, const float* weights, const AffineSearch& search) {
    const AffineFit line = fit_affine(kGroup, limit, x, weights, search, levels + group * kGroup);
    scales[group] = line.scale;
    minimums[group] = -line.minimum;
  }
};

struct Codes {
  std::uint8_t scales[kGroups];
  std::uint8_t minimums[kGroups];
};

void fit_plain(const float* x, int limit, const AffineSearch& search, Fitted& fitted) {
  float weights[kGroup];
  for (int group = 0; group < kGroups; ++group, x += kGroup) {
    const float average = std::sqrt(sum_of_squares(x, kGroup) / float{kGroup});
    for (int i = 0; i < kGroup; ++i) weights[i] = average + std::fabs(x[i]);
    fitted.fit(group, limit, x, weights, search);
  }
}

void fit_weighted(const float* x, const float* importance, int limit, Fitted& fitted) {
  const float spread = 2 * sum_of_squares(x, kSuperBlock) / float{kSuperBlock};
  float weights[kGroup];
  for (int group = 0; group < kGroups; ++group, x += kGroup, importance += kGroup) {
    fitted.weight_sums[group] = weigh(kGroup, x, importance, spread, weights);
    fitted.fit(group, limit, x, weights, kWeightedSearch);
  }
}

// Computes 6-bit codes; the greatest value gets 63. Returns the scale of the codes.
float code_plain(const float* values, std::uint8_t* codes) {
  float greatest = 0;
  for (int i = 0; i < kGroups; ++i) greatest = values[i] > greatest ? values[i] : greatest;
  const float inverse = greatest > 0 ? float{kMaxCode} / greatest : 0.0f;
  for (int i = 0; i < kGroups; ++i) {
    const auto code = static_cast<std::uint8_t>(nearest_int(inverse * values[i]));
    codes[i] = std::min<std::uint8_t>(kMaxCode, code);
  }
  return greatest / float{kMaxCode};
}

// Packs 6-bit codes. Scales and minimums 0-3 are in the low six bits of bytes 0-3 and 4-7. Scales and minimums 4-7 are
// nibbles in bytes 8-11, with their upper two bits at the top of bytes 0-7. The excess bits of a code above 63, which
// only a negative scale produces, remain in bytes 0-7.
void pack_codes(const Codes& codes, std::uint8_t* bytes) {
  for (int i = 0; i < 4; ++i) {
    const unsigned scale = codes.scales[i + 4];
    const unsigned minimum = codes.minimums[i + 4];
    bytes[i] = static_cast<std::uint8_t>(codes.scales[i] | scale >> 4 << 6);
    bytes[i + 4] = static_cast<std::uint8_t>(codes.minimums[i] | minimum >> 4 << 6);
    bytes[i + 8] = static_cast<std::uint8_t>((scale & 0xf) | (minimum & 0xf) << 4);
  }
}

Codes unpack_codes(const std::uint8_t* bytes) {
  Codes codes;
  for (int i = 0; i < 4; ++i) {
    codes.scales[i] = bytes[i] & 63;
    codes.minimums[i] = bytes[i + 4] & 63;
    codes.scales[i + 4] = static_cast<std::uint8_t>((bytes[i + 8] & 0xf) | bytes[i] >> 6 << 4);
    codes.minimums[i + 4] = static_cast<std::uint8_t>(bytes[i + 8] >> 4 | bytes[i + 4] >> 6 << 4);
  }
  return codes;
}

// Computes the best levels for the scales as stored. A group with scale 0 keeps its levels.
template <class Block>
void settle_levels(const float* x, const Block& block, int limit, std::uint8_t* levels) {
  const Codes codes = unpack_codes(block.scales);
  for (int group = 0; group < kGroups; ++group, x += kGroup, levels += kGroup) {
    const float scale = block.d.load() * static_cast<float>(codes.scales[group]);
    const float minimum = block.dmin.load() * static_cast<float>(codes.minimums[group]);
    if (scale == 0) continue;
    for (int i = 0; i < kGroup; ++i)
      levels[i] = static_cast<std::uint8_t>(clamp_level(nearest_int((x[i] + minimum) / scale), 0, limit));
  }
}

// Writes d, dmin and scales of the block; the caller packs the levels.
template <class Block>
void encode_scales(const float* x, const float* importance, int limit, const AffineSearch& plain_search,
                   bool bound_codes, Block& block, Fitted& fitted) {
  Codes codes;
  if (importance) {
    fit_weighted(x, importance, limit, fitted);
    block.d.store(fit_positive(kGroups, kMaxCode, fitted.scales, fitted.weight_sums, codes.scales));
    block.dmin.store(fit_positive(kGroups, kMaxCode, fitted.minimums, fitted.weight_sums, codes.minimums));
  } else {
    fit_plain(x, limit, plain_search, fitted);
    block.d.store(code_plain(fitted.scales, codes.scales));
    block.dmin.store(code_plain(fitted.minimums, codes.minimums));
  }
  for (int i = 0; i < kGroups && bound_codes; ++i) {
    codes.scales[i] = std::min<std::uint8_t>(kMaxCode, codes.scales[i]);
    codes.minimums[i] = std::min<std::uint8_t>(kMaxCode, codes.minimums[i]);
  }
  pack_codes(codes, block.scales);
  settle_levels(x, block, limit, fitted.levels);
}

void pack_pairs(const std::uint8_t* levels, std::uint8_t* qs) {
  for (int i = 0; i < kSuperBlock / 2; ++i) {
    const std::uint8_t* first = levels + (i / 32) * 64 + i % 32;
    qs[i] = static_cast<std::uint8_t>((first[0] & 0xf) | (first[32] & 0xf) << 4);
  }
}

void pack_fifth_bits_of(const std::uint8_t* levels, std::uint8_t* qh) {
  for (int i = 0; i < kGroup; ++i) {
    unsigned bits = 0;
    for (int group = 0; group < kGroups; ++group)
      bits |= static_cast<unsigned>(levels[group * kGroup + i] >> 4) << group;
    qh[i] = static_cast<std::uint8_t>(bits);
  }
}

template <class Block>
void pack_scales(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* minimums, Block& block) {
  Codes codes;
  std::copy_n(scales, kGroups, codes.scales);
  std::copy_n(minimums, kGroups, codes.minimums);
  block.d.store(d);
  block.dmin.store(dmin);
  pack_codes(codes, block.scales);
}

int nibble(const std::uint8_t* qs, int group, int i) {
  return group % 2 == 0 ? qs[group / 2 * 32 + i] & 0xf : qs[group / 2 * 32 + i] >> 4;
}

// Decodes the block to x; `level`(group, i) returns the level of an element.
template <class Block, class Level>
void decode_groups(const Block& block, const Level& level, float* x) {
  const Codes codes = unpack_codes(block.scales);
  const float d = block.d.load();
  const float dmin = block.dmin.load();
  for (int group = 0; group < kGroups; ++group, x += kGroup) {
    const float scale = d * static_cast<float>(codes.scales[group]);
    const float minimum = dmin * static_cast<float>(codes.minimums[group]);
    for (int i = 0; i < kGroup; ++i) x[i] = scale * static_cast<float>(level(group, i)) - minimum;
  }
}

template <class Block>
void lines_of(const Block& block, float* scales, float* offsets) {
  const Codes codes = unpack_codes(block.scales);
  for (int group = 0; group < kGroups; ++group) {
    scales[group] = block.d.load() * static_cast<float>(codes.scales[group]);
    offsets[group] = -(block.dmin.load() * static_cast<float>(codes.minimums[group]));
  }
}

}  // namespace

void Q4_K::encode(const float* x, const float* importance, Block& block) {
  Fitted fitted;
  encode_scales(x, importance, 15, {-1.0f, 0.1f, 20, ErrorMeasure::kSquared}, false, block, fitted);
  put_levels(fitted.levels, block);
}

void Q4_K::pack(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* minimums,
                const std::uint8_t* levels, Block& block) {
  pack_scales(d, dmin, scales, minimums, block);
  put_levels(levels, block);
}

void Q4_K::decode(const Block& block, float* x) {
  decode_groups(
      block, [&](int group, int i) { return nibble(block.qs, group, i); }, x);
}

void Q5_K::encode(const float* x, const float* importance, Block& block) {
  Fitted fitted;
  encode_scales(x, importance, 31, {-0.5f, 0.1f, 15, ErrorMeasure::kSquared}, true, block, fitted);
  put_levels(fitted.levels, block);
}

void Q5_K::pack(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* minimums,
                const std::uint8_t* levels, Block& block) {
  pack_scales(d, dmin, scales, minimums, block);
  put_levels(levels, block);
}

void Q5_K::decode(const Block& block, float* x) {
  decode_groups(
      block, [&](int group, int i) { return nibble(block.qs, group, i) + ((block.qh[i] >> group) & 1 ? 16 : 0); }, x);
}

void Q4_K::levels(const Block& block, std::uint8_t* levels) {
  for (int i = 0; i < kSuperBlock; ++i) levels[i] = static_cast<std::uint8_t>(nibble(block.qs, i / kGroup, i % kGroup));
}

void Q4_K::put_levels(const std::uint8_t* levels, Block& block) { pack_pairs(levels, block.qs); }

void Q4_K::lines(const Block& block, float* scales, float* offsets) { lines_of(block, scales, offsets); }

void Q5_K::levels(const Block& block, std::uint8_t* levels) {
  for (int i = 0; i < kSuperBlock; ++i)
    levels[i] = static_cast<std::uint8_t>(nibble(block.qs, i / kGroup, i % kGroup) |
                                          ((block.qh[i % kGroup] >> (i / kGroup)) & 1) << 4);
}

void Q5_K::put_levels(const std::uint8_t* levels, Block& block) {
  pack_pairs(levels, block.qs);
  pack_fifth_bits_of(levels, block.qh);
}

void Q5_K::lines(const Block& block, float* scales, float* offsets) { lines_of(block, scales, offsets); }

}  // namespace ggufmill::reference
