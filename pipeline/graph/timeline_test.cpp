#include "pipeline/graph/timeline.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

bool is_near(double a, double b) { return std::abs(a - b) < 1e-9; }

}  // namespace

TEST_CASE("spans overlap") {
  Timeline line;
  line.add(0.125, 0.25);
  line.add(0.125, 0.375);
  CHECK(is_near(line.between(0, 0.5), 0.375));
  CHECK(is_near(line.between(0.125, 0.25), 0.25));
  CHECK(is_near(line.between(0.25, 0.375), 0.125));
  CHECK(is_near(line.between(0.375, 100), 0));
}

TEST_CASE("a long run loses no time") {
  Timeline line;
  for (int second = 0; second < 3000; ++second) line.add(second, second + 0.5);
  CHECK(is_near(line.between(0, 1e6), 1500));
  CHECK(std::abs(line.between(0, 1500) - 750) < 2);
}

TEST_CASE("lines of threads that began to work at different times are added") {
  Timeline early, late;
  early.add(0, 0.25);
  late.add(0, 0.25);
  late.add(99.75, 100);
  early.add(late);
  CHECK(is_near(early.between(0, 0.5), 0.5));
  CHECK(is_near(early.between(50, 101), 0.25));
}

TEST_CASE("a span without length, or of a clock that was set back, counts nothing") {
  Timeline line;
  line.add(1, 1);
  line.add(2, 1);
  line.add(-1, 1);
  CHECK(is_near(line.between(0, 10), 0));
}
