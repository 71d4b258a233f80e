#pragma once
// The searches for scales and levels of one group of weights (16 or 32 of one block, or the scales of a super-block).
// Every sum is in the order of the elements: the bytes depend on it.
// Source: ggml, src/ggml-quants.c.

#include <cstdint>

namespace ggufmill::reference {

// Below this greatest magnitude a group is all zero.
inline constexpr float kZeroGroup = 1e-15f;
inline constexpr int kMostInGroup = 32;

// x ~ scale * (level - limit), levels in [0, 2 * limit): 19 inverse scales around the one that maps the extreme value
// to level 0, the best by weighted squared error. Null weights stand for x * x. An all-zero group gives scale 0, levels
// 0. Source: make_qx_quants with rmse_type 1.
float fit_symmetric(int count, int limit, const float* x, const float* weights, std::uint8_t* levels);

// As above but from one inverse scale, whose levels are then improved one at a time, at most five rounds; weights are
// x * x. Source: make_q3_quants.
float fit_symmetric_by_steps(int count, int limit, const float* x, std::uint8_t* levels);

// x ~ scale * level, levels in [0, limit], for x that are not negative: nine inverse scales, then improvement one level
// at a time. Levels are kept as bytes all along, also where a value below zero wraps. Source: make_qp_quants.
float fit_positive(int count, int limit, const float* x, const float* weights, std::uint8_t* levels);

// x ~ scale * level + minimum, levels in [0, limit], minimum not above 0.
struct AffineFit {
  float scale;
  float minimum;
};

enum class ErrorMeasure { kSquared, kAbsolute };

// The inverse scales tried: (limit + first + step * i) / (greatest value - best minimum so far), i in [0, last].
struct AffineSearch {
  float first;
  float step;
  int last;
  ErrorMeasure measure;
};

// What all types with importance use.
inline constexpr AffineSearch kWeightedSearch = {-0.9f, 0.05f, 36, ErrorMeasure::kSquared};

// For each inverse scale the levels, then the least-squares scale and minimum for them; the best by the measure.
// count at most kMostInGroup. Source: make_qkx2_quants and make_qkx3_quants, which agree when weights are given.
AffineFit fit_affine(int count, int limit, const float* x, const float* weights, const AffineSearch& search,
                     std::uint8_t* levels);

}  // namespace ggufmill::reference
