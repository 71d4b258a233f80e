#pragma once
// The sub-block that the IQ2 and IQ3 encoders work on, with magnitudes separated from signs and a weight for each
// value. Source: ggml-quants.c, the first part of quantize_row_iq2_* and quantize_row_iq3_*.

#include <cmath>
#include <cstdint>

#include "plugins/reference/weights.h"

namespace ggufmill::reference {

template <class SpaceType, int Count>
struct SubBlock {
  using Space = SpaceType;
  static constexpr int kCount = Count;
  static constexpr int kGroups = Count / Space::kDims;
  static constexpr int kSigns = Count / 8;

  float x[Count];       // magnitudes; with even signs, one of each eight can be negative
  float weight[Count];  // weights of the squared differences
  float root[Count];    // square roots of the weights, used by the neighbour search
  std::uint8_t levels[Count] = {};
  std::uint8_t signs[kSigns];  // bit i is set if element i is negative
  float scale = 0;
};

// Splits eight values into magnitudes and sign bits.
inline std::uint8_t split_signs(const float* values, float* magnitudes) {
  unsigned signs = 0;
  for (int i = 0; i < 8; ++i) {
    const bool negative = !(values[i] >= 0);
    magnitudes[i] = negative ? -values[i] : values[i];
    signs |= unsigned{negative} << i;
  }
  return static_cast<std::uint8_t>(signs);
}

// Like split_signs(), but with an even number of negatives, so that seven bits determine all eight. If the number is
// odd, the value that matters least gets its sign inverted. Returns the seven bits.
inline std::uint8_t split_even_signs(const float* values, const float* weight, float* magnitudes) {
  unsigned signs = split_signs(values, magnitudes);
  if (__builtin_parity(signs)) {
    int least = 0;
    float least_cost = weight[0] * values[0] * values[0];
    for (int i = 1; i < 8; ++i) {
      const float cost = weight[i] * values[i] * values[i];
      if (cost < least_cost) {
        least_cost = cost;
        least = i;
      }
    }
    magnitudes[least] = -magnitudes[least];
    signs ^= 1u << least;
  }
  return static_cast<std::uint8_t>(signs & 127);
}

// Restores all eight bits from the seven that are stored.
inline std::uint8_t expand_even_signs(unsigned seven) {
  return static_cast<std::uint8_t>(seven | unsigned(__builtin_parity(seven)) << 7);
}

inline float largest(const float* values, int count) {
  float most = values[0];
  for (int i = 1; i < count; ++i) most = most > values[i] ? most : values[i];
  return most;
}

// Computes weights from the importance of the columns. `mean_square` is that of the super-block, multiplied by a factor
// that depends on the type.
inline void weigh(const float* values, const float* importance, float mean_square, int count, float* weight) {
  for (int i = 0; i < count; ++i) weight[i] = importance[i] * std::sqrt(mean_square + values[i] * values[i]);
}

}  // namespace ggufmill::reference
