#include "pipeline/report/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "pipeline/report/row_sums.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

ErrorSums sums_of(const std::vector<float>& a, const std::vector<float>& b, std::uint64_t columns,
                  const std::vector<float>& weights = {}) {
  DifferenceSums sums;
  sums.add_rows(a, b, columns, weights.empty() ? nullptr : weights.data());
  return sums.rounded();
}

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("the results match their formulas") {
  const ErrorFigures statistics = statistics_of(sums_of({3, 4, 0, 0}, {3, 2, 1, 0}, 2));
  CHECK(statistics.rmse == std::sqrt(5.0 / 4));
  CHECK(statistics.largest == 2);
  CHECK(statistics.cosine == (9.0 + 8) / (std::sqrt(25.0) * std::sqrt(14.0)));
  CHECK(statistics.relative == std::sqrt(5.0 / 25));
  CHECK(std::isnan(statistics.weighted));
}

TEST_CASE("weights count by column") {
  const ErrorFigures statistics = statistics_of(sums_of({3, 4, 0, 1}, {3, 2, 1, 0}, 2, {10, 0.5}));
  CHECK(statistics.weighted ==
        std::sqrt((10 * 0 + 0.5 * 4 + 10 * 1 + 0.5 * 1) / (10 * 9 + 0.5 * 16 + 10 * 0 + 0.5 * 1)));
  CHECK(statistics.rmse == std::sqrt((4.0 + 1 + 1) / 4));
}

TEST_CASE("equal values have no error, zeros included") {
  const std::vector<float> values = GENERATE(std::vector<float>{1, -2, 3}, std::vector<float>{0, 0, 0});
  const ErrorFigures statistics = statistics_of(sums_of(values, values, 3, {1, 1, 1}));
  CHECK(statistics.rmse == 0);
  CHECK(statistics.largest == 0);
  CHECK(statistics.cosine == 1);
  CHECK(statistics.relative == 0);
  CHECK(statistics.weighted == 0);
}

TEST_CASE("values without a direction or size have no result") {
  const ErrorFigures statistics = statistics_of(sums_of({0, 0}, {1, 1}, 2));
  CHECK(statistics.rmse == 1);
  CHECK(std::isnan(statistics.cosine));
  CHECK(std::isnan(statistics.relative));
  CHECK(std::isnan(statistics_of(ErrorSums{}).rmse));
}

TEST_CASE("values that are not finite are counted and skipped") {
  const ErrorSums sums = sums_of({1, kNan, 3, kInfinity, 5, 6}, {1, 2, kInfinity, kInfinity, 4, 6}, 3, {1, 2, 3});
  CHECK(sums.not_finite == 3);
  CHECK(sums.count == 3);
  CHECK(sums.difference == 1);
  CHECK(sums.weighted_difference == 2);
  CHECK(sums_of({kNan, kNan}, {1, 1}, 2).count == 0);
}

TEST_CASE("the largest floats do not overflow") {
  const float most = std::numeric_limits<float>::max();
  const ErrorFigures statistics = statistics_of(sums_of({most, -most}, {-most, most}, 2, {most, most}));
  CHECK(statistics.largest == 2 * static_cast<double>(most));
  CHECK(statistics.rmse == 2 * static_cast<double>(most));
  CHECK(statistics.cosine == -1);
  CHECK(statistics.weighted == 2);
}

TEST_CASE("sums near those of plain additions, for columns of any number") {
  const std::uint64_t columns = GENERATE(1u, 7u, 8u, 9u, 31u, 256u);
  const std::vector<float> a = random_values(columns * 5, 1), b = random_values(columns * 5, 2);
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
  const ErrorSums sums = sums_of(a, b, columns);
  CHECK(std::fabs(sums.difference - difference) <= 1e-14 * difference);
  CHECK(sums.count == a.size());
}

TEST_CASE("a row is summed in eight lanes, which are added in pairs") {
  const std::uint64_t columns = GENERATE(0u, 1u, 7u, 8u, 9u, 31u, 256u, 1001u);
  const std::vector<float> a = random_values(columns, 1), b = random_values(columns, 2), w = random_values(columns, 3);
  double lanes[6][8] = {}, largest = 0;
  for (std::uint64_t i = 0; i < columns; ++i) {
    const double x = a[i], y = b[i], d = x - y, weight = w[i];
    const double terms[6] = {d * d, x * x, y * y, x * y, weight * (d * d), weight * (x * x)};
    for (int sum = 0; sum < 6; ++sum) lanes[sum][i % 8] += terms[sum];
    largest = std::max(largest, std::fabs(d));
  }
  const bool weighted = GENERATE(true, false);
  const RowSums row = sum_row({a.data(), b.data(), columns, weighted ? w.data() : nullptr});
  for (int sum = 0; sum < (weighted ? 6 : 4); ++sum) {
    const double* lane = lanes[sum];
    CHECK(row.sum[sum] == ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])));
  }
  CHECK(row.largest == largest);
}

TEST_CASE("sums are unchanged after conversion to numbers and back, and numbers that are not sums are refused") {
  constexpr std::uint64_t kColumns = 100, kRows = 64;
  std::vector<float> a = random_values(kColumns * kRows, 3);
  const std::vector<float> b = random_values(kColumns * kRows, 4), weights = random_values(kColumns, 5);
  a[7] = std::numeric_limits<float>::infinity();
  const ErrorSums expected = sums_of(a, b, kColumns, weights);
  DifferenceSums all;
  for (const std::uint64_t first : {std::uint64_t{0}, kRows / 4}) {
    const std::uint64_t rows = first == 0 ? kRows / 4 : kRows - first;
    DifferenceSums rows_sums, read;
    rows_sums.add_rows(std::span(a).subspan(first * kColumns, rows * kColumns),
                       std::span(b).subspan(first * kColumns, rows * kColumns), kColumns, weights.data());
    REQUIRE(read.set(rows_sums.numbers()));
    CHECK(read.numbers() == rows_sums.numbers());
    all.add(read);
  }
  CHECK(all.rounded().not_finite == 1);
  CHECK(all.rounded().count == expected.count);
  CHECK(all.rounded().difference == expected.difference);
  CHECK(all.rounded().weighted_difference == expected.weighted_difference);
  CHECK(all.rounded().largest == expected.largest);
  DifferenceSums::Numbers wrong = all.numbers();
  wrong.back() = 2;
  CHECK_FALSE(all.set(wrong));
  wrong = all.numbers();
  wrong[wrong.size() - 2] = std::bit_cast<std::uint64_t>(std::nan(""));
  CHECK_FALSE(all.set(wrong));
}

TEST_CASE("of a run of some rows alone the sums are given, and not rounded") {
  const std::vector<float> a = random_values(200, 3), b = random_values(200, 4);
  TargetMeasure measure(2, true);
  CHECK_FALSE(measure.result().partial);
  DifferenceSums sums;
  sums.add_rows(a, b, 100, nullptr);
  measure.add_error(sums, 0, 2);
  CHECK_FALSE(measure.result().error);
  REQUIRE(measure.result().partial);
  CHECK(measure.result().partial->numbers() == sums.numbers());
}

TEST_CASE("rows may come in any order and any groups") {
  constexpr std::uint64_t kColumns = 100, kRows = 64;
  const std::vector<float> a = random_values(kColumns * kRows, 3), b = random_values(kColumns * kRows, 4);
  const std::vector<float> weights = random_values(kColumns, 5);
  const ErrorSums expected = sums_of(a, b, kColumns, weights);
  const std::uint64_t group = GENERATE(1u, 4u, 16u, 32u);
  TargetMeasure measure(kRows);
  for (std::uint64_t first = kRows; first > 0; first -= group) {
    DifferenceSums part;
    const std::uint64_t begin = (first - group) * kColumns, size = group * kColumns;
    part.add_rows(std::span(a).subspan(begin, size), std::span(b).subspan(begin, size), kColumns, weights.data());
    CHECK_FALSE(measure.result().error);
    measure.add_error(part, first - group, group);
  }
  REQUIRE(measure.result().error);
  CHECK(measure.result().error->difference == expected.difference);
  CHECK(measure.result().error->product == expected.product);
  CHECK(measure.result().error->weighted_reference == expected.weighted_reference);
  CHECK(measure.result().error->largest == expected.largest);
}

TEST_CASE("matrices are measured individually, and their total is unchanged") {
  constexpr std::uint64_t kColumns = 100, kRows = 64, kOfMatrix = 16;
  const std::vector<float> a = random_values(kColumns * kRows, 3), b = random_values(kColumns * kRows, 4);
  const std::vector<float> weights = random_values(kColumns, 5);
  TargetMeasure measure(kRows, false, kOfMatrix);
  for (std::uint64_t row = 0; row < kRows; ++row) {
    const std::uint64_t mixed = row * 27 % kRows;  // alternates between the matrices
    DifferenceSums part;
    part.add_rows(std::span(a).subspan(mixed * kColumns, kColumns), std::span(b).subspan(mixed * kColumns, kColumns),
                  kColumns, weights.data());
    CHECK(measure.result().matrices.empty());
    measure.add_error(part, mixed, 1);
  }
  const TargetResult result = measure.result();
  CHECK(result.error->difference == sums_of(a, b, kColumns, weights).difference);
  REQUIRE(result.matrices.size() == kRows / kOfMatrix);
  for (std::uint64_t m = 0; m < result.matrices.size(); ++m) {
    const auto of_matrix = [&](const std::vector<float>& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(m * kOfMatrix * kColumns);
      return std::vector<float>(begin, begin + kOfMatrix * kColumns);
    };
    const ErrorSums expected = sums_of(of_matrix(a), of_matrix(b), kColumns, weights);
    CHECK(result.matrices[m].difference == expected.difference);
    CHECK(result.matrices[m].weighted_difference == expected.weighted_difference);
    CHECK(result.matrices[m].weighted_reference == expected.weighted_reference);
    CHECK(result.matrices[m].count == kOfMatrix * kColumns);
  }
}
