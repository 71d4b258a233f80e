#pragma once
// The bit-level float arithmetic that all reference kernels share, exact and the same on every machine.
// Source of the rules: ggml, src/ggml-impl.h and src/ggml-quants.c (nearest_int).

#include <bit>
#include <cmath>
#include <cstdint>

namespace ggufmill::reference {

// IEEE half -> float, exact. A signalling NaN becomes quiet and keeps its other bits, as the hardware conversion does.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(float(mantissa) * 0x1p-24f));
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x00400000u : 0u));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// float -> IEEE half, to nearest, ties to even, subnormals kept, overflow to infinity. Every NaN becomes 0x7e00 with
// its sign.
inline std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more: nearer to infinity than to 65504, or as near
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves multiples of 2^-24, rounded by the addition
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// bfloat16 -> float: the upper half of its bits, NaNs included.
inline float bfloat_to_float(std::uint16_t bfloat) { return std::bit_cast<float>(std::uint32_t{bfloat} << 16); }

// float -> bfloat16, to nearest, ties to even; NaNs become quiet.
inline std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// To nearest, ties to even, by an addition that leaves no fraction bits. Right within +-4194303; beyond, the low bits
// of the sum come back, and kernels depend on which.
inline int nearest_int(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value + 12582912.0f);
  return static_cast<int>(bits & 0x007fffffu) - 0x00400000;
}

// Toward zero; INT32_MIN where the value does not fit or is NaN, as the x86 conversion gives it.
inline std::int32_t to_int32(float value) {
  return value >= -0x1p31f && value < 0x1p31f ? static_cast<std::int32_t>(value) : INT32_MIN;
}

// To nearest, ties away from zero, then the low 32 bits of the 64-bit conversion; 0 where that does not fit or is NaN.
inline std::int32_t round_to_int(float value) {
  const float rounded = std::round(value);
  return rounded >= -0x1p63f && rounded < 0x1p63f ? static_cast<std::int32_t>(static_cast<std::int64_t>(rounded)) : 0;
}

// The low 8 bits as a signed number.
inline int signed_byte(int value) { return static_cast<int>(static_cast<std::int8_t>(value)); }

// `value` within [low, high].
inline int clamp_level(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

// A half as it lies in a block: little-endian, not aligned.
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
