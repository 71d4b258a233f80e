#include "pipeline/report/exact_sum.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

double sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.value();
}

// Returns numbers of any magnitude and sign.
std::vector<double> wild_numbers(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>(random() % 1800) - 900;
    values.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), exponent));
  }
  return values;
}

}  // namespace

TEST_CASE("the sum of nothing is zero") { CHECK(ExactSum().value() == 0); }

TEST_CASE("one number comes back as it is") {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const double value =
      GENERATE_COPY(1.0, -1.0, 0.1, -0.1, most, -most, least, -least, 5 * least, 0x1p-1022, 0x1p64, 0.0);
  CHECK(sum_of({value}) == value);
}

TEST_CASE("what doubles would lose is kept") {
  CHECK(sum_of({1e300, 1, -1e300}) == 1);
  CHECK(sum_of({1, 0x1p-1074, -1}) == 0x1p-1074);
  CHECK(sum_of({-1e-300, 1e300, 1e-300, -1e300}) == 0);
}

TEST_CASE("the result is rounded once, ties to even") {
  CHECK(sum_of({0x1p53, 1}) == 0x1p53);
  CHECK(sum_of({0x1p53, 1, 0x1p-1000}) == 0x1p53 + 2);
  CHECK(sum_of({0x1p53, 3}) == 0x1p53 + 4);
  CHECK(sum_of({-0x1p53, -1}) == -0x1p53);
}

TEST_CASE("a sum beyond all doubles is infinite, and comes back from there") {
  const double most = std::numeric_limits<double>::max();
  CHECK(std::isinf(sum_of({most, most})));
  CHECK(sum_of({most, most, -most}) == most);
}

TEST_CASE("order and groups do not matter") {
  std::vector<double> values = wild_numbers(2000);
  const double expected = sum_of(values);
  ExactSum groups;
  for (std::size_t first = 0; first < values.size(); first += 250) {
    ExactSum group;
    for (std::size_t i = first; i < first + 250; ++i) group.add(values[values.size() - 1 - i]);
    groups.add(group);
  }
  CHECK(groups.value() == expected);
  for (const double value : values) groups.add(-value);
  CHECK(groups.value() == 0);
}
