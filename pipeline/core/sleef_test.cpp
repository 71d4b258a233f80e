// Results of Sleef's functions where they differ from the nearest float.
#include "pipeline/core/sleef.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the logarithm of 1 + x equals that of torch's vectors") {
  CHECK(sleef::log1p(0.0f) == 0);
  CHECK(sleef::log1p(372.717194f) == 5.92349958f);
  CHECK(sleef::log1p(453.376129f) == 6.11892509f);
  CHECK(std::isnan(sleef::log1p(-0.5f)));
  CHECK(std::isnan(sleef::log1p(INFINITY)));
}
