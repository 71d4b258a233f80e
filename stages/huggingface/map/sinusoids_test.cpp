#include "stages/huggingface/map/computed_tensors.h"

#include <boost/json/array.hpp>

#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

Result<ExpressionRef> make(std::initializer_list<boost::json::value> arguments) {
  const std::vector<boost::json::value> values(arguments);
  return sinusoids(values);
}

}  // namespace

TEST_CASE("a position has the sines, then the cosines, of its multiples of the frequencies") {
  const auto made = make({3, 4});
  REQUIRE(made);
  CHECK(made.value()->shape == Shape{2, {4, 3, 1, 1}});
  // Sines and cosines at position 2, with the frequencies 1 and 1/10000.
  const std::vector<float> expected{
      0, 0, 1, 1, 0.84147096f, 9.9999997e-05f, 0.54030228f, 1, 0.90929741f, 0.00019999999f, -0.41614684f, 1};
  REQUIRE(made.value()->values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(made.value()->values[i] == Approx(expected[i]));
}

TEST_CASE("a table of sinusoids has a bounded size") {
  CHECK(make({3, 5}).error().what ==
        "'3' positions of '5' values; expected at most 32768 positions, an even number of at most 16384 values, and "
        "16777216 values in all");
  CHECK(!make({32768, 16384}));
  CHECK(!make({0, 4}));
  CHECK(!make({3, 2}));
  CHECK(!make({"x", 4}));
}
