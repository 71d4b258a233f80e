#pragma once
// The search of IQ2_K, and one of IQ2_KS: the sorted values of a sub-block are divided among the four levels of two
// bits. Source: ik_llama.cpp, ggml/src/iqk/iqk_quantize.cpp (MIT).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "plugins/ik/nonlinear.h"

namespace ggufmill::ik {

// Finds the scale of kCount values by trying ways of dividing the sorted values among the four levels. The part of the
// first level ends before value kFirstEnd, that of the third one not before value kThirdBegin.
template <int kCount, int kFirstEnd = kCount, int kThirdBegin = 0>
SubBlockScale search_divisions(const float* x, const float* weights) {
  std::pair<float, int> sorted[kCount];
  for (int i = 0; i < kCount; ++i) sorted[i] = {x[i], i};
  SubBlockScale found;
  if (std::ranges::all_of(sorted, [](const auto& each) { return std::fabs(each.first) < kZero; })) return found;
  std::sort(sorted, sorted + kCount);
  float of_weights[kCount + 1] = {}, of_values[kCount + 1] = {};  // sums of the values before each
  for (int i = 0; i < kCount; ++i) {
    const float weight = weights[sorted[i].second];
    of_weights[i + 1] = of_weights[i] + weight;
    of_values[i + 1] = of_values[i] + weight * sorted[i].first;
  }
  Best best;
  const auto try_levels = [&](const int(&ends)[5], const Table<4>& table, bool is_shifted, bool descends) {
    Sums sums;
    for (int k = 0; k < 4; ++k) {
      const float level = table[static_cast<std::size_t>(descends ? 3 - k : k)];
      sums.qx += (of_values[ends[k + 1]] - of_values[ends[k]]) * level;
      sums.q2 += (of_weights[ends[k + 1]] - of_weights[ends[k]]) * level * level;
    }
    if (best.take(sums)) found.is_shifted = is_shifted;
  };
  for (int first = 0; first < kFirstEnd; ++first)
    for (int second = first; second < kCount; ++second)
      for (int third = std::max(second, kThirdBegin); third < kCount; ++third) {
        const int ends[5] = {0, first, second, third, kCount};
        try_levels(ends, kValues2.plain, false, false);
        try_levels(ends, kValues2.shifted, true, false);
        try_levels(ends, kValues2.plain, false, true);
        try_levels(ends, kValues2.shifted, true, true);
      }
  found.scale = best.scale;
  return found;
}

}  // namespace ggufmill::ik
