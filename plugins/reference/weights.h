#pragma once
// Weights for the fits, computed from values and importance. Source: ggml, src/ggml-quants.c.

#include <cmath>

namespace ggufmill::reference {

inline float sum_of_squares(const float* x, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

// Computes weights = importance * sqrt(spread + x * x), where `spread` is the mean square of the values around x.
// Returns the sum of the weights.
inline float weigh(int count, const float* x, const float* importance, float spread, float* weights) {
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    weights[i] = importance[i] * std::sqrt(spread + x[i] * x[i]);
    sum += weights[i];
  }
  return sum;
}

}  // namespace ggufmill::reference
