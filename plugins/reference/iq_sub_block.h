#pragma once
// The sub-block that the IQ2 and IQ3 encoders work on: magnitudes and signs apart, each weight with its importance.
// Source: ggml-quants.c, the first part of quantize_row_iq2_* and quantize_row_iq3_*.

#include <cmath>
#include <cstdint>

namespace ggufmill::reference {

template <class SpaceType, int Count>
struct SubBlock {
  using Space = SpaceType;
  static constexpr int kCount = Count;
  static constexpr int kGroups = Count / Space::kDims;
  static constexpr int kSigns = Count / 8;

  float x[Count];       // magnitudes; with even signs, the least of eight may be below zero
  float weight[Count];  // of the squared differences
  float root[Count];    // the weights' square roots, which the search for a neighbour uses instead
  std::uint8_t levels[Count] = {};
  std::uint8_t signs[kSigns];  // bit i: element i is negative
  float scale = 0;
};

// Eight values to magnitudes and sign bits.
inline std::uint8_t split_signs(const float* values, float* magnitudes) {
  unsigned signs = 0;
  for (int i = 0; i < 8; ++i) {
    const bool negative = !(values[i] >= 0);
    magnitudes[i] = negative ? -values[i] : values[i];
    signs |= unsigned{negative} << i;
  }
  return static_cast<std::uint8_t>(signs);
}

// The same with an even number of negatives, so that seven bits tell all eight: where the number is odd, the value that
// matters least changes its sign. Returns the seven bits.
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

// All eight bits from the seven that are stored.
inline std::uint8_t expand_even_signs(unsigned seven) {
  return static_cast<std::uint8_t>(seven | unsigned(__builtin_parity(seven)) << 7);
}

inline float largest(const float* values, int count) {
  float most = values[0];
  for (int i = 1; i < count; ++i) most = most > values[i] ? most : values[i];
  return most;
}

inline float sum_of_squares(const float* values, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] * values[i];
  return sum;
}

// Weights from the importance of the columns: `mean_square` is that of the super-block, times a factor of the type.
inline void weigh(const float* values, const float* importance, float mean_square, int count, float* weight) {
  for (int i = 0; i < count; ++i) weight[i] = importance[i] * std::sqrt(mean_square + values[i] * values[i]);
}

}  // namespace ggufmill::reference
