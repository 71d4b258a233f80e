#pragma once
// Search for the best neighbour of a point in a code book, and the status that encoders return if there is none.
// Source: ggml-quants.c, iq2_find_best_neighbour, iq3_find_best_neighbour and iq1_find_best_neighbour2, which differ
// only in the values of the levels.

#include <array>
#include <cfloat>

#include "plugins/abi/ggufmill_kernels.h"
#include "plugins/reference/iq_lattice.h"

namespace ggufmill::reference {

// Status of an encoder if weights or importance are so large (or NaN) that no book point has a finite distance, or that
// a scale is NaN. Values below about 1e15 never cause it. ggml aborts the process in this case.
inline constexpr std::int32_t kNoBookPoint = GGUFMILL_CANNOT_REPRESENT;

// Value of each level, multiplied by a scale.
template <class Space>
using ScaledLevels = std::array<float, Space::kLevels>;

template <class Space>
ScaledLevels<Space> scaled_levels(float scale, const std::array<float, Space::kLevels>& values) {
  ScaledLevels<Space> scaled;
  for (int i = 0; i < Space::kLevels; ++i) scaled[i] = scale * values[i];
  return scaled;
}

// Returns the index of the neighbour of `code` with the least sum of weight * difference^2; the first one on a tie, or
// -1 if no sum is below FLT_MAX. x and weight point to kDims values each.
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
