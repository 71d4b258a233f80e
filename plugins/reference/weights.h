#pragma once
// The weights that the fits are given, from values and importance. Source: ggml, src/ggml-quants.c.

#include <cmath>

namespace ggufmill::reference {

inline float sum_of_squares(const float* x, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

// weights = importance * sqrt(spread + x * x), `spread` being a mean square around x. Returns their sum.
inline float weigh(int count, const float* x, const float* importance, float spread, float* weights) {
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    weights[i] = importance[i] * std::sqrt(spread + x[i] * x[i]);
    sum += weights[i];
  }
  return sum;
}

}  // namespace ggufmill::reference
