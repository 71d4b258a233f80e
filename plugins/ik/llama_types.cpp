#include "plugins/ik/llama_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/ik/llama_fit.h"
#include "plugins/ik/nonlinear.h"
#include "plugins/reference/weights.h"

namespace ggufmill::ik {
namespace {

using reference::AffineFit;
using reference::AffineSearch;
using reference::clamp_level;
using reference::ErrorMeasure;
using reference::StoredHalf;
using reference::sum_of_squares;

constexpr int kSuperBlock = reference::kSuperBlock;

// The value that is stored for a scale.
float stored(float scale) {
  StoredHalf half;
  half.store(scale);
  return half.load();
}

// ---- blocks of 32 ----

// Weights and levels of a block with importance.
struct WeightedBlock {
  float weights[kMaxValues];
  std::uint8_t levels[kMaxValues];

  WeightedBlock(const float* x, const float* importance, float row_mean_square) {
    reference::weigh(kMaxValues, x, importance, row_mean_square, weights);
  }
};

// ---- super-blocks with minimums ----

// Groups of a super-block: Q2_K has 16 of 16 values, Q4_K and Q5_K 8 of 32.
template <int kGroups, int kLimit, int kMaxCode>
class AffineBlock {
 public:
  static constexpr int kGroup = kSuperBlock / kGroups;

  // `spread` is added to the squares.
  void fit_weighted(const float* x, const float* importance, float spread) {
    float weights[kGroup];
    for (int group = 0; group < kGroups; ++group) {
      const int at = group * kGroup;
      weight_sums_[group] = reference::weigh(kGroup, x + at, importance + at, spread, weights);
      keep(group, fit_affine(kGroup, kLimit, x + at, weights, levels_ + at));
    }
    d_ = code_weighted(scales_, scale_codes_);
    dmin_ = code_weighted(minimums_, minimum_codes_);
  }

  // `weigh` computes the weights of a group.
  template <class Weigh>
  void fit_plain(const float* x, const AffineSearch& search, const Weigh& weigh) {
    float weights[kGroup];
    for (int group = 0; group < kGroups; ++group) {
      const int at = group * kGroup;
      weigh(x + at, weights);
      keep(group, reference::fit_affine(kGroup, kLimit, x + at, weights, search, levels_ + at));
    }
    d_ = code_plain(scales_, scale_codes_);
    dmin_ = code_plain(minimums_, minimum_codes_);
  }

  // Chooses the best levels for the scales as they are stored. A group with scale 0 keeps its levels.
  void settle(const float* x) {
    const float d = stored(d_), dmin = stored(dmin_);
    std::uint8_t scale_codes[kGroups], minimum_codes[kGroups];
    read_back(scale_codes, minimum_codes);
    for (int group = 0; group < kGroups; ++group) {
      const float scale = d * static_cast<float>(scale_codes[group]);
      const float minimum = dmin * static_cast<float>(minimum_codes[group]);
      if (scale == 0) continue;
      for (int i = group * kGroup; i < (group + 1) * kGroup; ++i)
        levels_[i] = static_cast<std::uint8_t>(clamp_level(nearest_int((x[i] + minimum) / scale), 0, kLimit));
    }
  }

  // Does the same with the scales before they are stored, and inverses.
  void settle_unrounded(const float* x) {
    for (int group = 0; group < kGroups; ++group) {
      const float scale = d_ * static_cast<float>(scale_codes_[group]);
      const float minimum = dmin_ * static_cast<float>(minimum_codes_[group]);
      const float inverse = scale != 0 ? 1 / scale : 0;
      for (int i = group * kGroup; i < (group + 1) * kGroup; ++i)
        levels_[i] = static_cast<std::uint8_t>(clamp_level(nearest_int((x[i] + minimum) * inverse), 0, kLimit));
    }
  }

  template <class Codec>
  void pack(typename Codec::Block& block) const {
    Codec::pack(d_, dmin_, scale_codes_, minimum_codes_, levels_, block);
  }

 private:
  // A minimum is stored with the opposite sign, so that it is not negative.
  void keep(int group, const AffineFit& fit) {
    scales_[group] = fit.scale;
    minimums_[group] = -fit.minimum;
  }

  float code_weighted(const float* values, std::uint8_t* codes) const {
    const float d = reference::fit_positive(kGroups, kMaxCode, values, weight_sums_, codes, kMinScale);
    if (kLimit == 31) bound(codes);
    return d;
  }

  // Codes below zero, of scales below zero, are great ones here. Only some types bound them.
  static void bound(std::uint8_t* codes) {
    for (int i = 0; i < kGroups; ++i) codes[i] = std::min<std::uint8_t>(kMaxCode, codes[i]);
  }

  // Returns the codes that a decoder reads: the excess bits of a code are part of others.
  void read_back(std::uint8_t* scales, std::uint8_t* minimums) const {
    if constexpr (kGroups == 16) {
      for (int i = 0; i < kGroups; ++i) {
        scales[i] = scale_codes_[i] & 15;
        minimums[i] = (scale_codes_[i] >> 4 | minimum_codes_[i]) & 15;
      }
    } else {
      const auto read = [](const std::uint8_t* codes, std::uint8_t* as_read) {
        for (int i = 0; i < 4; ++i) {
          as_read[i] = codes[i] & 63;
          as_read[i + 4] = static_cast<std::uint8_t>((codes[i + 4] & 63) | codes[i] >> 6 << 4);
        }
      };
      read(scale_codes_, scales);
      read(minimum_codes_, minimums);
    }
  }

  static float code_plain(const float* values, std::uint8_t* codes) {
    float greatest = 0;
    for (int i = 0; i < kGroups; ++i) greatest = values[i] > greatest ? values[i] : greatest;
    const float inverse = greatest > 0 ? float{kMaxCode} / greatest : 0;
    for (int i = 0; i < kGroups; ++i) codes[i] = static_cast<std::uint8_t>(nearest_int(inverse * values[i]));
    if (kGroups == 8) bound(codes);
    return greatest / float{kMaxCode};
  }

  float scales_[kGroups] = {}, minimums_[kGroups] = {}, weight_sums_[kGroups] = {}, d_ = 0, dmin_ = 0;
  std::uint8_t scale_codes_[kGroups] = {}, minimum_codes_[kGroups] = {}, levels_[kSuperBlock] = {};
};

constexpr AffineSearch search_of(float first, int last, ErrorMeasure measure) {
  return {first, 0.1F, last, measure, kMinRange};
}

template <class Codec, int kLimit>
void encode_with_minimums(const float* x, const float* importance, const AffineSearch& plain,
                          typename Codec::Block& block) {
  AffineBlock<8, kLimit, 63> fitted;
  if (importance) {
    fitted.fit_weighted(x, importance, 2 * sum_of_squares(x, kSuperBlock) / float{kSuperBlock});
  } else {
    fitted.fit_plain(x, plain, [](const float* group, float* weights) {
      const float average = std::sqrt(sum_of_squares(group, 32) / 32.0F);
      for (int i = 0; i < 32; ++i) weights[i] = average + std::fabs(group[i]);
    });
  }
  fitted.settle(x);
  fitted.template pack<Codec>(block);
}

// ---- ternary rows of Q2_K ----

// The greatest magnitude of a row whose values are next to that, its negative, and zero; else a negative number.
float ternary_magnitude(const float* x, std::uint64_t count) {
  float most = 0, squares = 0, errors = 0;
  for (std::uint64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(x[i]));
  for (std::uint64_t i = 0; i < count; ++i) {
    const float trit = x[i] < -0.5F * most ? -1.0F : x[i] < 0.5F * most ? 0.0F : 1.0F;
    const float off = x[i] - most * trit;
    squares += x[i] * x[i];
    errors += off * off;
  }
  return errors < 0.1F * squares ? most : -1;
}

void encode_ternary(const float* x, float magnitude, reference::Q2_K::Block& block) {
  std::uint8_t ones[16], levels[kSuperBlock];
  std::ranges::fill(ones, std::uint8_t{1});
  for (int i = 0; i < kSuperBlock; ++i) levels[i] = x[i] < -0.5F * magnitude ? 0 : x[i] < 0.5F * magnitude ? 1 : 2;
  reference::Q2_K::pack(magnitude, magnitude, ones, ones, levels, block);
}

// ---- super-blocks with scales ----

constexpr int kGroups = 16, kGroup = 16;

template <int kLimit>
void settle_symmetric(const float* x, float d, const int* codes, std::uint8_t* levels) {
  for (int group = 0; group < kGroups; ++group) {
    const float scale = d * static_cast<float>(codes[group]);
    if (scale == 0) continue;
    for (int i = group * kGroup; i < (group + 1) * kGroup; ++i)
      levels[i] = static_cast<std::uint8_t>(clamp_level(nearest_int(x[i] / scale), -kLimit, kLimit - 1) + kLimit);
  }
}

// ---- unequal levels ----

constexpr int kSub = 32, kSubs = 8;

float fit_unequal_block(const float* x, const float* importance, float spread) {
  float weights[kSub];
  if (importance)
    reference::weigh(kSub, x, importance, spread, weights);
  else
    for (int i = 0; i < kSub; ++i) weights[i] = x[i] * x[i];
  return fit_unequal(x, weights);
}

void unequal_levels(const float* x, float scale, std::uint8_t* levels) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  for (int i = 0; i < kSub; ++i) levels[i] = kValues4.plain.nearest(inverse * x[i]);
}

}  // namespace

void IkQ4_0::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  WeightedBlock b(x, importance, row_mean_square);
  const float d = fit_symmetric(kMaxValues, 8, x, b.weights, b.levels);
  pack(d, b.levels, block);
}

void IkQ5_0::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  WeightedBlock b(x, importance, row_mean_square);
  const float d = fit_symmetric(kMaxValues, 16, x, b.weights, b.levels);
  pack(d, b.levels, block);
}

void IkQ4_1::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  WeightedBlock b(x, importance, row_mean_square);
  const AffineFit fit = fit_affine(kMaxValues, 15, x, b.weights, b.levels);
  pack(fit.scale, fit.minimum, b.levels, block);
}

void IkQ5_1::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  WeightedBlock b(x, importance, row_mean_square);
  const AffineFit fit = fit_affine(kMaxValues, 31, x, b.weights, b.levels);
  pack(fit.scale, fit.minimum, b.levels, block);
}

void IkQ2_K::encode(const float* x, const float* importance, Block& block) {
  AffineBlock<16, 3, 15> fitted;
  if (importance) {
    fitted.fit_weighted(x, importance, 0.75F * sum_of_squares(x, kSuperBlock) / float{kSuperBlock});
    fitted.settle_unrounded(x);
  } else {
    fitted.fit_plain(x, search_of(-0.5F, 15, ErrorMeasure::kAbsolute), [](const float* group, float* weights) {
      for (int i = 0; i < 16; ++i) weights[i] = std::fabs(group[i]);
    });
    fitted.settle(x);
  }
  fitted.pack<reference::Q2_K>(block);
}

int32_t encode_q2_k_rows(const ggufmill_call* call) {
  const auto* x = static_cast<const float*>(call->src);
  auto* block = static_cast<IkQ2_K::Block*>(call->dst);
  const std::uint64_t blocks = call->cols / IkQ2_K::kElements;
  for (std::uint64_t row = 0; row < call->rows; ++row, x += call->cols, block += blocks) {
    const float magnitude = call->importance ? -1 : ternary_magnitude(x, call->cols);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t at = i * IkQ2_K::kElements;
      if (magnitude >= 0)
        encode_ternary(x + at, magnitude, block[i]);
      else
        IkQ2_K::encode(x + at, call->importance ? call->importance + at : nullptr, block[i]);
    }
  }
  return GGUFMILL_OK;
}

void IkQ3_K::encode(const float* x, const float* importance, Block& block) {
  if (!importance) return reference::Q3_K::encode(x, nullptr, block);
  const float spread = 2 * sum_of_squares(x, kSuperBlock) / float{kSuperBlock};
  float weights[kGroup], weight_sums[kGroups], scales[kGroups];
  std::uint8_t levels[kSuperBlock], stored_codes[kGroups];
  for (int group = 0; group < kGroups; ++group) {
    const int at = group * kGroup;
    weight_sums[group] = reference::weigh(kGroup, x + at, importance + at, spread, weights);
    scales[group] = fit_symmetric(kGroup, 4, x + at, weights, levels + at);
  }
  const float d = fit_symmetric(kGroups, 32, scales, weight_sums, stored_codes);
  int codes[kGroups];
  for (int i = 0; i < kGroups; ++i) codes[i] = stored_codes[i] - 32;
  settle_symmetric<4>(x, stored(d), codes, levels);
  pack(d, stored_codes, levels, block);
}

void IkQ4_K::encode(const float* x, const float* importance, Block& block) {
  encode_with_minimums<reference::Q4_K, 15>(x, importance, search_of(-1.0F, 20, ErrorMeasure::kSquared), block);
}

void IkQ5_K::encode(const float* x, const float* importance, Block& block) {
  encode_with_minimums<reference::Q5_K, 31>(x, importance, search_of(-0.5F, 15, ErrorMeasure::kSquared), block);
}

void IkQ6_K::encode(const float* x, const float* importance, Block& block) {
  std::uint8_t levels[kSuperBlock], stored_codes[kGroups];
  float weights[kGroup], scales[kGroups];
  for (int group = 0; group < kGroups; ++group) {
    const int at = group * kGroup;
    for (int i = 0; i < kGroup; ++i) weights[i] = importance ? importance[at + i] : x[at + i] * x[at + i];
    scales[group] = fit_symmetric(kGroup, 32, x + at, weights, levels + at);
  }
  const float extreme = reference::extreme_or_zero(scales);
  if (extreme == 0) {
    std::memset(&block, 0, sizeof block);
    return;
  }
  const float inverse = -128.0F / extreme, d = 1 / inverse;
  int codes[kGroups];
  for (int i = 0; i < kGroups; ++i) {
    stored_codes[i] = static_cast<std::uint8_t>(std::min(127, nearest_int(inverse * scales[i])));
    codes[i] = static_cast<std::int8_t>(stored_codes[i]);
  }
  settle_symmetric<32>(x, stored(d), codes, levels);
  pack(d, stored_codes, levels, block);
}

void IkIq4Nl::encode(const float* x, const float* importance, Block& block) {
  const float d = fit_unequal_block(x, importance, sum_of_squares(x, kSub) * (2.0F / kSub));
  std::uint8_t levels[kSub];
  unequal_levels(x, d, levels);
  pack(d, levels, block);
}

void IkIq4Xs::encode(const float* x, const float* importance, Block& block) {
  const float spread = sum_of_squares(x, kSuperBlock) * (2.0F / kSuperBlock);
  float scales[kSubs];
  for (int sub = 0; sub < kSubs; ++sub)
    scales[sub] = fit_unequal_block(x + kSub * sub, importance ? importance + kSub * sub : nullptr, spread);
  const float d = -reference::extreme_of(scales) / 32, inverse = d != 0 ? 1 / d : 0;
  std::uint8_t codes[kSubs], levels[kSuperBlock];
  for (int sub = 0; sub < kSubs; ++sub) {
    const int code = clamp_level(nearest_int(inverse * scales[sub]), -32, 31);
    unequal_levels(x + kSub * sub, d * static_cast<float>(code), levels + kSub * sub);
    codes[sub] = static_cast<std::uint8_t>(code + 32);
  }
  pack(d, codes, levels, block);
}

}  // namespace ggufmill::ik
