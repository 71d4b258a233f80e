#pragma once
// The levels of the 4-bit floats: the code of a sign and a magnitude.

#include <cmath>
#include <cstdint>

namespace ggufmill::reference {

// Twice the value of each level.
inline constexpr float kDoubledFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline float greatest_magnitude(const float* x, int count) {
  float greatest = 0;
  for (int i = 0; i < count; ++i) greatest = greatest < std::fabs(x[i]) ? std::fabs(x[i]) : greatest;
  return greatest;
}

// Returns the level nearest to x; the first one if there are several.
inline std::uint8_t nearest_fp4(float x, float scale) {
  int best = 0;
  float least = std::fabs(kDoubledFp4[0] * scale - x);
  for (int level = 1; level < 16; ++level) {
    const float error = std::fabs(kDoubledFp4[level] * scale - x);
    if (error < least) {
      best = level;
      least = error;
    }
  }
  return static_cast<std::uint8_t>(best);
}

// Writes `bytes` bytes of levels, with the first half of the elements in the low nibbles.
inline void encode_fp4(const float* x, float scale, int bytes, std::uint8_t* qs) {
  for (int i = 0; i < bytes; ++i)
    qs[i] = static_cast<std::uint8_t>(nearest_fp4(x[i], scale) | nearest_fp4(x[i + bytes], scale) << 4);
}

}  // namespace ggufmill::reference
