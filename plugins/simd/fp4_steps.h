#pragma once
// The levels of MXFP4 and NVFP4, with weights in the lanes.

#include <cstring>

#include "plugins/simd/lanes.h"
#include "plugins/simd/nibble_book.h"

namespace ggufmill::simd {

inline constexpr int kPositiveFp4 = 8;  // number of non-negative levels; the negative ones have the same magnitudes

// Twice the value of each level.
inline constexpr std::int8_t kDoubledFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The levels, multiplied by a scale.
class Fp4Steps {
 public:
  explicit Fp4Steps(float scale) {
    for (int level = 1; level < kPositiveFp4; ++level) values_[level] = floats(kDoubledFp4[level] * scale);
  }

  // Returns, for each value, the nearest level; the first one on a tie. Levels of the opposite sign are never nearer
  // than level 0, and the distance to a level of the same sign is that of the magnitude to the positive level.
  Words nearest(Floats x) const {
    const Floats magnitude = hn::Abs(x);
    Floats least = magnitude;
    Words best = words(0);
    for (int level = 1; level < kPositiveFp4; ++level) {
      const Floats error = hn::Abs(values_[level] - magnitude);
      const Mask nearer = error < least;
      best = choose(nearer, words(static_cast<std::uint32_t>(level)), best);
      least = lesser(error, least);
    }
    const Words sign = hn::ShiftRight<28>(as_words(x)) & words(8);
    return best | choose(mask_of(best == words(0)), best, sign);
  }

 private:
  Floats values_[kPositiveFp4];
};

// The same for a scale that is a power of two and at least kMin, and values below 2^16 scales. Then dividing by it is
// exact, but for results near 0, and so are the distances to the two levels around a value: the nearest level follows
// from the quotient.
class Fp4Powers {
 public:
  static constexpr float kMin = 0x1p-127f;  // its inverse is finite

  explicit Fp4Powers(float scale) : inverse_(floats(1.0f / scale)) {}

  // Returns the nearest level; the first one on a tie.
  Words nearest(Floats x) const {
    const Floats quotient = hn::Abs(x) * inverse_;
    // From 2 on, a level is an exponent and a bit of the mantissa; half of that bit is rounded down. Below 2, this is
    // at most the nearest level.
    const Ints rounded = hn::ShiftRight<22>(as_ints(quotient) + ints(0x1fffff)) - ints(254);
    const Ints one = ints(1), zero = ints(0);
    const Ints below = choose(quotient > floats(0.5f), one, zero) + choose(quotient > floats(1.5f), one, zero);
    const Words best = as_words(hn::Min(hn::Max(rounded, below), ints(kPositiveFp4 - 1)));
    const Words sign = hn::ShiftRight<28>(as_words(x)) & words(8);
    return best | choose(mask_of(best == words(0)), best, sign);
  }

 private:
  Floats inverse_;
};

// Writes the levels of 32 values to 16 bytes, with the first half of the values in the low nibbles.
template <class Steps>
void put_fp4_levels_of_32(const float* x, const Steps& steps, std::uint8_t* qs) {
  for (int i = 0; i < 16; i += static_cast<int>(kLanes)) {
    const Words low = steps.nearest(hn::LoadU(kFloats, x + i));
    const Words high = steps.nearest(hn::LoadU(kFloats, x + 16 + i));
    store_bytes(low | hn::ShiftLeft<4>(high), qs + i);
  }
}

// The scale is a power of two.
inline void put_fp4_of_32(const float* x, float scale, std::uint8_t* qs) {
  if (scale >= Fp4Powers::kMin)
    put_fp4_levels_of_32(x, Fp4Powers(scale), qs);
  else
    put_fp4_levels_of_32(x, Fp4Steps(scale), qs);
}

// The same for 16 values and 8 bytes.
inline void put_fp4_of_16(const float* x, float scale, std::uint8_t* qs) {
  const Fp4Steps steps(scale);
  std::uint8_t levels[16];
  for (int i = 0; i < 16; i += static_cast<int>(kLanes))
    store_bytes(steps.nearest(hn::LoadU(kFloats, x + i)), levels + i);
  std::uint64_t low, high;  // eight levels each; the shift does not carry between bytes
  std::memcpy(&low, levels, 8);
  std::memcpy(&high, levels + 8, 8);
  low |= high << 4;
  std::memcpy(qs, &low, 8);
}

}  // namespace ggufmill::simd
