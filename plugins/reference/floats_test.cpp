// Compares the conversions with their definitions, which are reimplemented here with exact functions of the C library.

#include "plugins/reference/floats.h"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace ggufmill::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// Returns the value of a finite half according to the definition of the format. For infinity, returns 65536, the value
// that would follow the greatest finite half.
float magnitude_of_half(unsigned half) {
  const int exponent = static_cast<int>(half >> 10);
  const auto mantissa = static_cast<float>(half & 0x3ff);
  return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
}

}  // namespace

TEST_CASE("every half becomes its float") {
  int wrong = 0;
  for (unsigned half = 0; half < 0x7c00; ++half) {
    const float expected = magnitude_of_half(half);
    wrong += bits(half_to_float(static_cast<std::uint16_t>(half))) != bits(expected);
    wrong += bits(half_to_float(static_cast<std::uint16_t>(half | 0x8000))) != bits(-expected);
  }
  CHECK(wrong == 0);
  CHECK(half_to_float(0x7c00) == kInfinity);
  CHECK(half_to_float(0xfc00) == -kInfinity);
}

TEST_CASE("every half NaN becomes a quiet float NaN with its sign and bits") {
  int wrong = 0;
  for (unsigned mantissa = 1; mantissa < 0x400; ++mantissa) {
    const std::uint32_t expected = 0x7fc00000u | mantissa << 13;
    wrong += bits(half_to_float(static_cast<std::uint16_t>(0x7c00 | mantissa))) != expected;
    wrong += bits(half_to_float(static_cast<std::uint16_t>(0xfc00 | mantissa))) != (expected | 0x80000000u);
  }
  CHECK(wrong == 0);
}

TEST_CASE("every half that is a number survives the way to float and back") {
  int wrong = 0;
  for (unsigned half = 0; half < 0x10000; ++half)
    if ((half & 0x7fff) <= 0x7c00) wrong += float_to_half(half_to_float(static_cast<std::uint16_t>(half))) != half;
  CHECK(wrong == 0);
}

TEST_CASE("floats between two halves go to the nearer, the middle to the even one") {
  int wrong = 0;
  for (unsigned half = 0; half < 0x7c00; ++half) {
    const float middle = (magnitude_of_half(half) + magnitude_of_half(half + 1)) / 2;  // exact
    wrong += float_to_half(std::nextafter(middle, 0.0f)) != half;
    wrong += float_to_half(middle) != half + half % 2;
    wrong += float_to_half(std::nextafter(middle, kInfinity)) != half + 1;
    wrong += float_to_half(-middle) != (0x8000 | (half + half % 2));
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats beyond halves and NaNs") {
  CHECK(float_to_half(65519.996f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(std::numeric_limits<float>::max()) == 0x7c00);
  CHECK(float_to_half(-kInfinity) == 0xfc00);
  CHECK(float_to_half(std::bit_cast<float>(0x7f800001u)) == 0x7e00);
  CHECK(float_to_half(std::bit_cast<float>(0xffffffffu)) == 0xfe00);
  CHECK(float_to_half(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(float_to_half(-0.0f) == 0x8000);
}

TEST_CASE("bfloats are the upper halves of floats, rounded to even") {
  int wrong = 0;
  for (std::uint32_t upper = 0; upper < 0x7f80; ++upper) {
    wrong += bits(bfloat_to_float(static_cast<std::uint16_t>(upper))) != upper << 16;
    wrong += float_to_bfloat(std::bit_cast<float>(upper << 16)) != upper;
    wrong += float_to_bfloat(std::bit_cast<float>(upper << 16 | 0x7fff)) != upper;
    wrong += float_to_bfloat(std::bit_cast<float>(upper << 16 | 0x8000)) != upper + upper % 2;
    wrong += float_to_bfloat(std::bit_cast<float>(upper << 16 | 0x8001)) != upper + 1;
  }
  CHECK(wrong == 0);
  CHECK(float_to_bfloat(-kInfinity) == 0xff80);
  CHECK(float_to_bfloat(std::bit_cast<float>(0x7f800001u)) == 0x7fc0);  // truncation alone would give infinity
  CHECK(float_to_bfloat(std::bit_cast<float>(0xffa12345u)) == 0xffe1);
}

TEST_CASE("nearest_int rounds ties to even within its range") {
  int wrong = 0;
  for (int quarter = -40000; quarter <= 40000; ++quarter) {
    const float value = static_cast<float>(quarter) * 0.25f;
    wrong += nearest_int(value) != static_cast<int>(std::nearbyint(value));
  }
  CHECK(wrong == 0);
  CHECK(nearest_int(4194303.0f) == 4194303);
  CHECK(nearest_int(-4194303.0f) == -4194303);
}

TEST_CASE("nearest_int beyond its range gives the low bits of the sum") {
  CHECK(nearest_int(4194304.0f) == -4194304);
  CHECK(nearest_int(kInfinity) == -4194304);
  CHECK(nearest_int(std::numeric_limits<float>::quiet_NaN()) == 0);
}

TEST_CASE("to_int32 cuts toward zero and marks what does not fit") {
  CHECK(to_int32(-1.9f) == -1);
  CHECK(to_int32(-0x1p31f) == INT32_MIN);
  CHECK(to_int32(2147483520.0f) == 2147483520);
  CHECK(to_int32(0x1p31f) == INT32_MIN);
  CHECK(to_int32(std::numeric_limits<float>::quiet_NaN()) == INT32_MIN);
}

TEST_CASE("round_away rounds as std::round is defined, whatever the C library does") {
  for (float tie = 0.5f; tie < 0x1p24f; tie = 2 * tie + 0.5f) {
    volatile float value = tie;  // not computed by the compiler
    CHECK(round_away(value) == tie + 0.5f);
    CHECK(round_away(-value) == -tie - 0.5f);
    value = std::nextafter(tie, 0.0f);
    CHECK(round_away(value) == tie - 0.5f);
    CHECK(round_away(-value) == -(tie - 0.5f));
  }
  CHECK(round_away(kInfinity) == kInfinity);
}

TEST_CASE("round_to_int rounds ties away from zero and drops what does not fit") {
  CHECK(round_to_int(0.5f) == 1);
  CHECK(round_to_int(-0.5f) == -1);
  CHECK(round_to_int(0.49999997f) == 0);
  CHECK(round_to_int(0x1.8p32f) == INT32_MIN);  // 0x1_8000_0000
  CHECK(round_to_int(kInfinity) == 0);
}

}  // namespace ggufmill::reference
