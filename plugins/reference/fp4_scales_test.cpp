#include "plugins/reference/fp4_scales.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace ggufmill::reference {

TEST_CASE("the floor of the logarithm is that of a float logarithm, near every power of two") {
  int wrong = 0;
  for (int exponent = -148; exponent <= 127; ++exponent) {
    float below = std::ldexp(1.0f, exponent);
    for (int i = 0; i < 100 && below > 0; ++i, below = std::nextafter(below, 0.0f))
      wrong += floor_of_log2(below) != static_cast<int>(std::floor(static_cast<float>(std::log2(double{below}))));
    const float above = std::nextafter(std::ldexp(1.0f, exponent), 1e30f);
    wrong += floor_of_log2(above) != static_cast<int>(std::floor(static_cast<float>(std::log2(double{above}))));
  }
  CHECK(wrong == 0);
  CHECK(floor_of_log2(std::numeric_limits<float>::denorm_min()) == -149);
  CHECK(floor_of_log2(std::numeric_limits<float>::max()) == 128);
}

TEST_CASE("E8M0 scales are half powers of two") {
  CHECK(half_of_e8m0(0) == std::ldexp(1.0f, -128));
  CHECK(half_of_e8m0(1) == std::ldexp(1.0f, -127));
  for (int e = 2; e < 256; ++e) CHECK(half_of_e8m0(static_cast<std::uint8_t>(e)) == std::ldexp(1.0f, e - 128));
}

TEST_CASE("the E8M0 scale of what has none is 0") {
  CHECK(e8m0_for(0) == 0);
  CHECK(e8m0_for(std::numeric_limits<float>::infinity()) == 0);
  CHECK(e8m0_for(6.0f) == 127);
  CHECK(e8m0_for(std::ldexp(1.0f, -126)) == 255);  // wraps
}

TEST_CASE("every E4M3 scale survives the way to float and back, up to the gap below the greatest") {
  for (int code = 0; code < 0x78; ++code) {
    const float value = 2 * half_of_ue4m3(static_cast<std::uint8_t>(code));
    CHECK(to_ue4m3(value) == code);
  }
  CHECK(2 * half_of_ue4m3(0x7e) == 448.0f);
  CHECK(half_of_ue4m3(0x7f) == 0.0f);
}

TEST_CASE("E4M3 rounds halves up and ends at 448") {
  CHECK(to_ue4m3(-1.0f) == 0);
  CHECK(to_ue4m3(std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(to_ue4m3(0x1p-10f) == 1);
  CHECK(to_ue4m3(1.0625f) == 0x39);
  CHECK(to_ue4m3(std::nextafter(1.0625f, 0.0f)) == 0x38);
  CHECK(to_ue4m3(247.9f) == 0x77);
  CHECK(to_ue4m3(248.0f) == 0x7e);
  CHECK(to_ue4m3(1e30f) == 0x7e);
}

}  // namespace ggufmill::reference
