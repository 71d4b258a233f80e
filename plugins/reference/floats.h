#pragma once
// Bit-level float arithmetic shared by all reference kernels. It is exact and gives the same results on every machine.
// Source of the rules: ggml, src/ggml-impl.h and src/ggml-quants.c (nearest_int).

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

namespace ggufmill::reference {

// Converts an IEEE half to float, exactly. A signalling NaN becomes quiet and keeps its other bits, as in the hardware
// conversion.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(float(mantissa) * 0x1p-24f));
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x00400000u : 0u));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// Converts a float to an IEEE half: rounds to nearest, ties to even; preserves subnormals; overflows to infinity. Every
// NaN becomes 0x7e00 with the sign of the input.
inline std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 or more: rounds to infinity, not to 65504
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 rounds to a multiple of 2^-24
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// Converts a bfloat16, which is the upper half of a float, to float. NaNs keep their bits.
inline float bfloat_to_float(std::uint16_t bfloat) { return std::bit_cast<float>(std::uint32_t{bfloat} << 16); }

// Converts a float to bfloat16: rounds to nearest, ties to even. NaNs become quiet.
inline std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Rounds to nearest, ties to even, with an addition that leaves no fraction bits. Correct within +-4194303. Outside
// this range, the result is made of the low bits of the sum; kernels depend on these exact results.
inline int nearest_int(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value + 12582912.0f);
  return static_cast<int>(bits & 0x007fffffu) - 0x00400000;
}

// Returns the value of greatest magnitude, with its sign: the first of several. It is 0 if no value is above 0 or below
// it. `value_of` takes the value from an element, as a function or a data member.
template <class Elements, class ValueOf = std::identity>
float extreme_of(const Elements& elements, ValueOf value_of = {}) {
  float magnitude = 0, extreme = 0;
  for (const auto& element : elements)
    if (const float value = std::invoke(value_of, element); std::fabs(value) > magnitude) {
      magnitude = std::fabs(value);
      extreme = value;
    }
  return extreme;
}

// Truncates toward zero. Returns INT32_MIN if the value does not fit or is NaN, like the x86 conversion instruction.
inline std::int32_t to_int32(float value) {
  return value >= -0x1p31f && value < 0x1p31f ? static_cast<std::int32_t>(value) : INT32_MIN;
}

// Rounds to nearest, ties away from zero. std::round() of one C library makes 1 of the greatest float below one half.
// That float, added (to nearest, ties to even) before the fraction is cut off, carries a tie to the next integer and
// nothing less.
inline float round_away(float value) {
  if (!(std::fabs(value) < 0x1p23f)) return value;  // an integer, or not a number
  return static_cast<float>(static_cast<std::int32_t>(value + std::copysign(0x1.fffffep-2f, value)));
}

// Rounds to nearest, ties away from zero, and returns the low 32 bits of the result as a 64-bit integer; 0 if it does
// not fit in 64 bits or is NaN.
inline std::int32_t round_to_int(float value) {
  const float rounded = round_away(value);
  return rounded >= -0x1p63f && rounded < 0x1p63f ? static_cast<std::int32_t>(static_cast<std::int64_t>(rounded)) : 0;
}

// Returns the low 8 bits as a signed number.
inline int signed_byte(int value) { return static_cast<int>(static_cast<std::int8_t>(value)); }

// Clamps `value` to [low, high].
inline int clamp_level(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

// A half as stored in a block: little-endian, unaligned.
struct StoredHalf {
  std::uint8_t bytes[2];

  float load() const { return half_to_float(static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8)); }
  void store(float value) {
    const std::uint16_t half = float_to_half(value);
    bytes[0] = static_cast<std::uint8_t>(half);
    bytes[1] = static_cast<std::uint8_t>(half >> 8);
  }
};

}  // namespace ggufmill::reference
