// Results that lie as close to the middle between two floats as any of some million random arguments, and those at the
// ends of the range. The expected values were computed with 200 bits.
#include "pipeline/core/rounded.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("exp is the nearest float") {
  CHECK(rounded::exp(0x1.112856p+6f) == 0x1.6f498ap+98f);
  CHECK(rounded::exp(0x1.15298ap+6f) == 0x1.f3c832p+99f);
  CHECK(rounded::exp(-0x1.fab1b2p+5f) == 0x1.8aa1b2p-92f);
  CHECK(rounded::exp(0x1.76527cp+4f) == 0x1.af26a6p+33f);
  CHECK(rounded::exp(0x1.7a38bep+5f) == 0x1.278fa0p+68f);
  CHECK(rounded::exp(0.0f) == 1);
}

TEST_CASE("exp at the ends of the range") {
  CHECK(std::isfinite(rounded::exp(88.72283f)));
  CHECK(rounded::exp(88.72284f) == INFINITY);
  CHECK(rounded::exp(-103.97207f) == 0x1p-149f);
  CHECK(rounded::exp(-104.5f) == 0);
  CHECK(rounded::exp(INFINITY) == INFINITY);
  CHECK(rounded::exp(-INFINITY) == 0);
  CHECK(std::isnan(rounded::exp(NAN)));
}

TEST_CASE("sine and cosine are the nearest floats") {
  CHECK(rounded::sin(0x1.96259cp+5f) == 0x1.ed84e8p-2f);
  CHECK(rounded::sin(0x1.32f992p+10f) == 0x1.c98762p-2f);
  CHECK(rounded::sin(0x1.09dea4p+9f) == -0x1.72e9c8p-1f);
  CHECK(rounded::sin(0x1.4869c8p+10f) == 0x1.cd1bcep-2f);
  CHECK(rounded::cos(0x1.9d1a70p+9f) == -0x1.ffbb88p-1f);
  CHECK(rounded::cos(0x1.ed82f6p+9f) == 0x1.b0f750p-1f);
  CHECK(rounded::cos(0x1.35a41ep+10f) == 0x1.6d2104p-1f);
  CHECK(rounded::cos(0x1.bb2d24p+7f) == -0x1.b0e340p-4f);
  CHECK(rounded::cos(0.0f) == 1);
  CHECK(std::signbit(rounded::sin(-0.0f)));
}

TEST_CASE("angles that are not reduced accurately have no sine") {
  CHECK(!std::isnan(rounded::sin(65536.0f)));
  CHECK(std::isnan(rounded::sin(65537.0f)));
  CHECK(std::isnan(rounded::cos(-INFINITY)));
}

TEST_CASE("the inverse of the error function is the nearest float") {
  CHECK(rounded::inverse_erf(0x1.ccccccp-1f) == 0x1.29c014p+0f);
  CHECK(rounded::inverse_erf(-0.5f) == -0x1.e861fcp-2f);
  CHECK(rounded::inverse_erf(0x1.99999ap-4f) == 0x1.6bf442p-4f);
  CHECK(rounded::inverse_erf(0x1.ff7ceep-1f) == 0x1.29d326p+1f);
  CHECK(rounded::inverse_erf(0x1.0c6f7ap-20f) == 0x1.dbca1ap-21f);
  CHECK(rounded::inverse_erf(0x1.fffffep-1f) == 0x1.ea8f96p+1f);
  CHECK(rounded::inverse_erf(0.0f) == 0);
  CHECK(rounded::inverse_erf(-1.0f) == -INFINITY);
  CHECK(std::isnan(rounded::inverse_erf(1.5f)));
}

TEST_CASE("softplus is the nearest float") {
  CHECK(rounded::softplus(0.0f) == 0x1.62e43p-1f);
  CHECK(rounded::softplus(-0x1.9p-7f) == 0x1.5fc6ap-1f);
  CHECK(rounded::softplus(-17.5f) == 0x1.af62e8p-26f);
  CHECK(rounded::softplus(-105.0f) == 0);
  CHECK(rounded::softplus(1000.0f) == 1000);
  CHECK(std::isnan(rounded::softplus(NAN)));
}
