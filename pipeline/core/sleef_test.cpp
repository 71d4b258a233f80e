// Results of Sleef's functions for AVX2 where they differ from the nearest float.
#include "pipeline/core/sleef.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

float sine(float x) {
  sleef::sin({&x, 1});
  return x;
}

float cosine(float x) {
  sleef::cos({&x, 1});
  return x;
}

}  // namespace

TEST_CASE("the sine and cosine equal those of torch's vectors") {
  CHECK(sine(0) == 0);
  CHECK(sine(1.61000001f) == 0.999231696f);
  CHECK(sine(537.349976f) == -0.137197733f);
  CHECK(cosine(0.5f) == 0.87758261f);
  CHECK(cosine(1222.60999f) == -0.862582922f);
  CHECK(std::isnan(sine(40000.0f)));
  CHECK(std::isnan(cosine(INFINITY)));
}

TEST_CASE("a large argument changes how the others of its vector are reduced") {
  std::vector<float> values{15.7450743f, 0, 0, 0, 0, 0, 0, 126, 15.7450743f};
  sleef::sin(values);
  CHECK(values[0] == -0.0371024907f);
  CHECK(values[8] == -0.0371024869f);
}

TEST_CASE("the logarithm of 1 + x equals that of torch's vectors") {
  CHECK(sleef::log1p(0.0f) == 0);
  CHECK(sleef::log1p(372.717194f) == 5.92349958f);
  CHECK(sleef::log1p(453.376129f) == 6.11892509f);
  CHECK(std::isnan(sleef::log1p(-0.5f)));
  CHECK(std::isnan(sleef::log1p(INFINITY)));
}
