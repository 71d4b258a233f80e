#pragma once
// Weights of the squared errors that a search minimizes.

#include <cmath>
#include <cstdint>

#include "plugins/abi/ggufmill_kernels.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {

// The weights that the reference encoder of a type uses: with importance and without it. Source: ggml,
// src/ggml-quants.c.
struct GgmlWeights {
  enum Weighted : std::uint8_t {
    kRoot,       // importance times the root of the mean square of the block plus the square of the value
    kRoot2,      // the same with twice the mean square
    kRootOfRow,  // the same with the mean square of the row
    kAsGiven,    // importance
    kNever,      // 1
  };
  enum Plain : std::uint8_t {
    kSquare,     // the square of the value
    kMagnitude,  // its magnitude
    kAbove,      // its magnitude plus the root of the mean square of 32 values
    kHalfMean,   // half the mean square of the block plus the square of the value
    kOne,        // 1
  };
  Weighted weighted;
  Plain plain;
};

// The inputs of a search that are the same for a whole row.
struct SearchRow {
  std::uint32_t weights;  // GGUFMILL_WEIGHTS_*
  std::uint32_t effort;
  float mean_square;  // of the row; 0 unless needed
};

// Computes the weights of a block of `count` values. `importance` may be null. Sums are in element order.
inline void search_weights(const GgmlWeights& ggml, const SearchRow& row, int count, const float* x,
                           const float* importance, float* weights) {
  const auto given = [&](int i) { return importance ? importance[i] : 1.0f; };
  if (row.weights == GGUFMILL_WEIGHTS_IMPORTANCE || row.weights == GGUFMILL_WEIGHTS_PLAIN) {
    const bool is_plain = row.weights == GGUFMILL_WEIGHTS_PLAIN || !importance;
    for (int i = 0; i < count; ++i) weights[i] = is_plain ? 1.0f : importance[i];
    return;
  }
  const float mean = sum_of_squares(x, count) / static_cast<float>(count);
  const auto roots = [&](float spread) {
    for (int i = 0; i < count; ++i) weights[i] = given(i) * std::sqrt(spread + x[i] * x[i]);
  };
  if (row.weights == GGUFMILL_WEIGHTS_QUARTER) {
    for (int i = 0; i < count; ++i) weights[i] = given(i) * std::sqrt(std::sqrt(2 * mean + x[i] * x[i]));
  } else if (importance) {
    if (ggml.weighted == GgmlWeights::kRoot) return roots(mean);
    if (ggml.weighted == GgmlWeights::kRoot2) return roots(2 * mean);
    if (ggml.weighted == GgmlWeights::kRootOfRow) return roots(row.mean_square);
    for (int i = 0; i < count; ++i) weights[i] = ggml.weighted == GgmlWeights::kAsGiven ? importance[i] : 1.0f;
  } else {
    for (int i = 0; i < count; ++i) {
      if (ggml.plain == GgmlWeights::kSquare) weights[i] = x[i] * x[i];
      if (ggml.plain == GgmlWeights::kMagnitude) weights[i] = std::fabs(x[i]);
      if (ggml.plain == GgmlWeights::kAbove)
        weights[i] = std::sqrt(sum_of_squares(x + i / 32 * 32, 32) / 32.0f) + std::fabs(x[i]);
      if (ggml.plain == GgmlWeights::kHalfMean) weights[i] = 0.5f * mean + x[i] * x[i];
      if (ggml.plain == GgmlWeights::kOne) weights[i] = 1;
    }
  }
}

}  // namespace ggufmill::reference
