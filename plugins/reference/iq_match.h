#pragma once
// The search for the best of a point's neighbours in a code book, and how the encoders report that there is none.
// Source: ggml-quants.c, iq2_find_best_neighbour, iq3_find_best_neighbour and iq1_find_best_neighbour2, which differ in
// the values of the levels only.

#include <array>
#include <cfloat>

#include "plugins/abi/ggufmill_kernels.h"
#include "plugins/reference/iq_lattice.h"

namespace ggufmill::reference {

// The status of an encoder where weights or importance are so large (or no numbers) that no book point has a finite
// distance, or a scale is no number. Smaller than about 1e15, nothing fails. ggml ends the process there.
inline constexpr std::int32_t kNoBookPoint = GGUFMILL_CANNOT_REPRESENT;

// What each level stands for, times a scale.
template <class Space>
using ScaledLevels = std::array<float, Space::kLevels>;

template <class Space>
ScaledLevels<Space> scaled_levels(float scale, const std::array<float, Space::kLevels>& values) {
  ScaledLevels<Space> scaled;
  for (int i = 0; i < Space::kLevels; ++i) scaled[i] = scale * values[i];
  return scaled;
}

// The index of the neighbour of `code` with the least sum of weight * difference^2, the first of equals; -1 where no
// sum is below FLT_MAX. x, weight: kDims values.
template <class Space>
int nearest_neighbour(const Lattice<Space>& lattice, int code, const ScaledLevels<Space>& scaled, const float* x,
                      const float* weight) {
  float least = FLT_MAX;
  int nearest = -1;
  for (std::uint32_t n = lattice.first[code]; n < lattice.first[code + 1]; ++n) {
    const typename Space::Point& point = lattice.book[lattice.neighbours[n]];
    float sum = 0;
    for (int i = 0; i < Space::kDims; ++i) {
      const float difference = scaled[point[i]] - x[i];
      sum += weight[i] * difference * difference;
    }
    if (sum < least) {
      least = sum;
      nearest = lattice.neighbours[n];
    }
  }
  return nearest;
}

}  // namespace ggufmill::reference
