#pragma once
// 16-bit floats that metadata and small tensors contain. The kernels decode whole tensors.

#include <cmath>
#include <cstdint>

namespace ggufmill {

// Returns the value of an IEEE 754 binary16 number.
inline float float_of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float size = exponent == 31  ? (mantissa == 0 ? INFINITY : NAN)
                     : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                     : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return bits >> 15 ? -size : size;
}

}  // namespace ggufmill
