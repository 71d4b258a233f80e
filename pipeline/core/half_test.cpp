#include "pipeline/core/half.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("halves are exact as floats") {
  CHECK(float_of_half(0x3c00) == 1);
  CHECK(float_of_half(0xc000) == -2);
  CHECK(float_of_half(0x7bff) == 65504);
  CHECK(float_of_half(0x0001) == std::ldexp(1.0f, -24));
  CHECK(float_of_half(0x0400) == std::ldexp(1.0f, -14));
  CHECK(std::signbit(float_of_half(0x8000)));
  CHECK(float_of_half(0xfc00) == -INFINITY);
  CHECK(std::isnan(float_of_half(0x7e00)));
}
