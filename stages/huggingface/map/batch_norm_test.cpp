#include "stages/huggingface/map/computed_tensors.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

ExpressionRef floats(std::vector<float> values) {
  const Shape shape{1, {values.size(), 1, 1, 1}};
  return expressions::constant(shape, std::move(values)).value();
}

}  // namespace

TEST_CASE("statistics of a batch normalization are folded into its weight and bias") {
  const ExpressionRef scale = floats({3, 1, 8.99999f, 0.99999f});  // two weights, two variances
  const auto folded = batch_norm_scale(scale, {});
  REQUIRE(folded);
  CHECK(folded.value()->values == std::vector<float>{3 / std::sqrt(8.99999f + 1e-5f), 1});
  const auto shift = batch_norm_shift(expressions::concat({scale, floats({1, 2, 4, -2})}, 0).value(), {});
  REQUIRE(shift);
  CHECK(shift.value()->values == std::vector<float>{1 - 4 * folded.value()->values[0], 4});
}

TEST_CASE("a statistic that is not finite is not hidden by folding it") {
  const float infinity = std::numeric_limits<float>::infinity();
  const ExpressionRef scale = floats({3, 1, infinity, 4});
  CHECK(batch_norm_scale(scale, {}).value()->values[0] == infinity);
  const auto shift = batch_norm_shift(expressions::concat({scale, floats({1, 2, 0, -infinity})}, 0).value(), {});
  CHECK_FALSE(std::isfinite(shift.value()->values[0]));
  CHECK_FALSE(std::isfinite(shift.value()->values[1]));
}

TEST_CASE("parts of a batch normalization have equal lengths") {
  CHECK(batch_norm_scale(floats({1, 2, 3}), {}).error().what == "3 is not 2 tensors of one dimension");
  CHECK(batch_norm_shift(floats({1, 2}), {}).error().what == "2 is not 4 tensors of one dimension");
}
