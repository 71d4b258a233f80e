// Q2_K. Source: ggml, src/ggml-quants.c (quantize_row_q2_K_ref, quantize_row_q2_K_impl, dequantize_row_q2_K).

#include <algorithm>
#include <cmath>

#include "plugins/reference/crumbs.h"
#include "plugins/reference/fit.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {
namespace {

constexpr int kGroups = 16;
constexpr int kGroup = 16;
constexpr AffineSearch kPlainSearch = {-0.5f, 0.1f, 15, ErrorMeasure::kAbsolute};

// A super-block before its scales are quantized. Minimums are subtracted, so they are not negative.
struct Fitted {
  float scales[kGroups];
  float minimums[kGroups];
  float weight_sums[kGroups];
  std::uint8_t levels[kSuperBlock];

  void fit(int group, const float* x, const float* weights, const AffineSearch& search) {
    const AffineFit line = fit_affine(kGroup, 3, x, weights, search, levels + group * kGroup);
    scales[group] = line.scale;
    minimums[group] = -line.minimum;
  }
};

void fit_plain(const float* x, Fitted& fitted) {
  float weights[kGroup];
  for (int group = 0; group < kGroups; ++group, x += kGroup) {
    for (int i = 0; i < kGroup; ++i) weights[i] = std::fabs(x[i]);
    fitted.fit(group, x, weights, kPlainSearch);
  }
}

void fit_weighted(const float* x, const float* importance, Fitted& fitted) {
  const float spread = sum_of_squares(x, kSuperBlock) / float{kSuperBlock};
  float weights[kGroup];
  for (int group = 0; group < kGroups; ++group, x += kGroup, importance += kGroup) {
    fitted.weight_sums[group] = weigh(kGroup, x, importance, spread, weights);
    fitted.fit(group, x, weights, kWeightedSearch);
  }
}

// Computes 4-bit codes; the greatest value gets 15. Returns the scale of the codes.
float code_plain(const float* values, std::uint8_t* codes) {
  float greatest = 0;
  for (int i = 0; i < kGroups; ++i) greatest = values[i] > greatest ? values[i] : greatest;
  std::fill_n(codes, kGroups, std::uint8_t{0});
  if (!(greatest > 0)) return 0;
  const float inverse = 15.0f / greatest;
  for (int i = 0; i < kGroups; ++i) codes[i] = static_cast<std::uint8_t>(nearest_int(inverse * values[i]));
  return greatest / 15.0f;
}

// Computes the best levels for the scales as stored. A group with scale 0 keeps its levels.
void settle_levels(const float* x, const Q2_K::Block& block, std::uint8_t* levels) {
  for (int group = 0; group < kGroups; ++group, x += kGroup, levels += kGroup) {
    const float scale = block.d.load() * static_cast<float>(block.scales[group] & 0xf);
    const float minimum = block.dmin.load() * static_cast<float>(block.scales[group] >> 4);
    if (scale == 0) continue;
    for (int i = 0; i < kGroup; ++i)
      levels[i] = static_cast<std::uint8_t>(clamp_level(nearest_int((x[i] + minimum) / scale), 0, 3));
  }
}

}  // namespace

void Q2_K::encode(const float* x, const float* importance, Block& block) {
  Fitted fitted;
  std::uint8_t scales[kGroups];
  std::uint8_t minimums[kGroups];
  if (importance) {
    fit_weighted(x, importance, fitted);
    block.d.store(fit_positive(kGroups, 15, fitted.scales, fitted.weight_sums, scales));
    block.dmin.store(fit_positive(kGroups, 15, fitted.minimums, fitted.weight_sums, minimums));
  } else {
    fit_plain(x, fitted);
    block.d.store(code_plain(fitted.scales, scales));
    block.dmin.store(code_plain(fitted.minimums, minimums));
  }
  for (int i = 0; i < kGroups; ++i) block.scales[i] = static_cast<std::uint8_t>(scales[i] | minimums[i] << 4);
  settle_levels(x, block, fitted.levels);
  put_levels(fitted.levels, block);
}

void Q2_K::pack(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* minimums,
                const std::uint8_t* levels, Block& block) {
  block.d.store(d);
  block.dmin.store(dmin);
  for (int i = 0; i < kGroups; ++i) block.scales[i] = static_cast<std::uint8_t>(scales[i] | minimums[i] << 4);
  put_levels(levels, block);
}

void Q2_K::decode(const Block& block, float* x) {
  const float d = block.d.load();
  const float dmin = block.dmin.load();
  for (int group = 0; group < kGroups; ++group) {
    const float scale = d * static_cast<float>(block.scales[group] & 0xf);
    const float minimum = dmin * static_cast<float>(block.scales[group] >> 4);
    for (int i = group * kGroup; i < (group + 1) * kGroup; ++i)
      x[i] = scale * static_cast<float>(crumb(block.qs, i)) - minimum;
  }
}

void Q2_K::levels(const Block& block, std::uint8_t* levels) {
  for (int i = 0; i < kSuperBlock; ++i) levels[i] = static_cast<std::uint8_t>(crumb(block.qs, i));
}

void Q2_K::put_levels(const std::uint8_t* levels, Block& block) { pack_crumbs(levels, 0, block.qs); }

void Q2_K::lines(const Block& block, float* scales, float* offsets) {
  for (int group = 0; group < kGroups; ++group) {
    scales[group] = block.d.load() * static_cast<float>(block.scales[group] & 0xf);
    offsets[group] = -(block.dmin.load() * static_cast<float>(block.scales[group] >> 4));
  }
}

}  // namespace ggufmill::reference
