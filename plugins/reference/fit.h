#pragma once
// Searches for the scale and levels of one group of values: 16 or 32 weights of a block, or the scales of a
// super-block. Every sum runs in element order, because the output bytes depend on it. Source: ggml, src/ggml-quants.c.

#include <cmath>
#include <cstdint>
#include <span>

#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// A group whose greatest magnitude is below this value counts as all zero.
inline constexpr float kZeroGroup = 1e-15f;
inline constexpr int kMaxInGroup = 32;

// Returns the value of greatest magnitude of a group, with its sign: the first of several; 0 if the group is all zero.
inline float extreme_or_zero(std::span<const float> group) {
  const float extreme = extreme_of(group);
  return std::fabs(extreme) < kZeroGroup ? 0 : extreme;
}

// Fits x ~ scale * (level - limit), with levels in [0, 2 * limit). Tries 19 inverse scales around the one that maps the
// extreme value to level 0, and keeps the one with the least weighted squared error. Null weights mean x * x. For an
// all-zero group, the scale and the levels are 0. Source: make_qx_quants with rmse_type 1.
float fit_symmetric(int count, int limit, const float* x, const float* weights, std::uint8_t* levels);

// Like fit_symmetric(), but starts from a single inverse scale and then improves its levels one at a time, in at most
// five rounds. The weights are x * x. Source: make_q3_quants.
float fit_symmetric_by_steps(int count, int limit, const float* x, std::uint8_t* levels);

// Fits x ~ scale * level, with levels in [0, limit], for non-negative x. Tries nine inverse scales, then improves one
// level at a time. Levels are kept as bytes throughout, even if a value below zero wraps. Source: make_qp_quants.
// Values below `zero` count as zero.
float fit_positive(int count, int limit, const float* x, const float* weights, std::uint8_t* levels,
                   float zero = kZeroGroup);

// x ~ scale * level + minimum, with levels in [0, limit] and minimum <= 0.
struct AffineFit {
  float scale;
  float minimum;
};

enum class ErrorMeasure { kSquared, kAbsolute };

// Parameters of the search in fit_affine(). The inverse scales tried are (limit + first + step * i) / (greatest value -
// best minimum so far), for i in [0, last].
struct AffineSearch {
  float first;
  float step;
  int last;
  ErrorMeasure measure;
  float least_range = 0;  // values that differ by less are all alike
  // After the first line, bounds what becomes a level to [0, limit] before it is rounded, not after. This differs only
  // beyond the range of nearest_int(), and for infinity.
  bool bounds_first = false;
};

// Search parameters used by all types with a minimum when importance is given. Source: the callers of
// make_qkx3_quants.
inline constexpr AffineSearch kWeightedSearch = {-0.9f, 0.05f, 36, ErrorMeasure::kSquared, 0, true};

// For each inverse scale, computes the levels and then the least-squares scale and minimum for them; keeps the best fit
// according to search.measure. count is at most kMaxInGroup. Source: make_qkx2_quants, and make_qkx3_quants if
// search.bounds_first.
AffineFit fit_affine(int count, int limit, const float* x, const float* weights, const AffineSearch& search,
                     std::uint8_t* levels);

}  // namespace ggufmill::reference
