#pragma once
// Scales of the 4-bit float types. The values of the levels are stored doubled, which makes them integers, so a scale
// decodes to half of its value in the format. Source: ggml, src/ggml-impl.h and src/ggml-quants.c; the formats are
// those of the OCP MX specification 1.0.

#include <bit>
#include <cstdint>

#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// Returns floor(log2(x)) for finite x > 0, with log2 first rounded to float, as in the source: up to a few units in the
// last place below a power of two, the logarithm already rounds up to the integer. This happens within a distance of
// ln(2) * 2^m units, where 2^m is the binade of the numbers just below that integer. Computed with integers, so that
// the result does not depend on the math library.
inline int floor_of_log2(float x) {
  static constexpr std::uint32_t kReach[] = {0, 0, 1, 2, 5, 11, 22, 44, 88};  // indexed by m + 1
  const bool subnormal = x < 0x1p-126f;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(subnormal ? x * 0x1p64f : x);
  const int exponent = static_cast<int>(bits >> 23) - (subnormal ? 127 + 64 : 127);
  const int next = exponent + 1;
  const unsigned below = static_cast<unsigned>(next > 0 ? next - 1 : -next);
  const std::uint32_t distance = 0x00800000u - (bits & 0x007fffffu);
  return distance <= kReach[std::bit_width(below)] ? next : exponent;
}

// Returns the power of two (E8M0) that scales `greatest` into the binade of the greatest level. Wraps below 2^-125.
inline std::uint8_t e8m0_for(float greatest) {
  if (!(greatest > 0) || std::isinf(greatest)) return 0;
  return static_cast<std::uint8_t>(floor_of_log2(greatest) - 2 + 127);
}

// Returns half of 2^(e - 127); the result is subnormal for the two smallest codes.
constexpr float half_of_e8m0(std::uint8_t e) { return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1u) << 23); }

// Returns the unsigned E4M3 code nearest to x, with ties rounded up. Values that round to 256 or more get the greatest
// code, 448 (0x7e), although the format has values in between. Returns 0 if x is not positive.
inline std::uint8_t to_ue4m3(float x) {
  if (!(x > 0)) return 0;
  if (x < 0x1p-6f) {  // subnormal: multiples of 2^-9
    const int multiple = to_int32(x * 512.0f + 0.5f);
    return static_cast<std::uint8_t>(multiple < 7 ? multiple : 7);
  }
  // The exponent of the float, followed by the upper three bits of its mantissa.
  const std::uint32_t rounded = ((std::bit_cast<std::uint32_t>(x) >> 19) + 1) >> 1;
  const std::uint32_t code = rounded - ((127u - 7u) << 3);
  return static_cast<std::uint8_t>(code < 0x78u ? code : 0x7eu);
}

// Returns half of the value. The NaN code 0x7f decodes to 0, and the uppermost bit is ignored.
constexpr float half_of_ue4m3(std::uint8_t code) {
  if (code == 0x7f) return 0;
  const std::uint32_t exponent = (code >> 3) & 0xfu;
  const std::uint32_t mantissa = code & 7u;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 127 - 8) << 23 | mantissa << 20);
}

}  // namespace ggufmill::reference
