#pragma once
// The scales and levels that ik_llama.cpp finds for llama.cpp's types: a search over inverse scales, then a walk that
// changes one level by one as long as that helps. Source: ik_llama.cpp, ggml/src/ggml-quants.c (make_qx_quants,
// make_qkx3_quants, quantize_row_iq4_nl_impl), MIT.

#include <cstdint>

#include "plugins/reference/fit.h"

namespace ggufmill::ik {

inline constexpr int kMaxValues = 32;

// In types with minimums, groups whose values differ by less are one value, and scales below count as zero.
inline constexpr float kMinRange = 1e-10F, kMinScale = 1e-16F;

// Fits x ~ scale * (level - limit) for at most kMaxValues values, with levels in [0, 2 * limit). Returns the scale; 0,
// with levels of 0, for values that count as zero.
float fit_symmetric(int count, int limit, const float* x, const float* weights, std::uint8_t* levels);

// Fits x ~ scale * level + minimum, with levels in [0, limit] and minimum <= 0. Sums are of doubles.
reference::AffineFit fit_affine(int count, int limit, const float* x, const float* weights, std::uint8_t* levels);

// Returns the scale of 32 values, each about the scale times one of the 16 levels of IQ4_NL; 0 for values that count as
// zero.
float fit_unequal(const float* x, const float* weights);

}  // namespace ggufmill::ik
