#include "pipeline/core/covariance.h"

#include <cmath>
#include <limits>
#include <vector>

#include "pipeline/core/half.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("correlations are packed block after block, row after row") {
  const CorrelationPacking packing(40, 16);
  CHECK(packing.length() == 2u * 120 + 28);
  CHECK(packing.blocks() == 3);
  CHECK(packing.columns_of(2).first == 32);
  CHECK(packing.columns_of(2).count == 8);
  CHECK(packing.columns_of(2).packed == 240);
  CHECK(CorrelationPacking::row_start(16, 0) == 0);
  CHECK(CorrelationPacking::row_start(16, 1) == 15);
  CHECK(CorrelationPacking::row_start(16, 15) == 120);
  CHECK(CorrelationPacking(5, 0).length() == 10u);
  CHECK(CorrelationPacking(5, 9).length() == 10u);
  CHECK(CorrelationPacking(1, 0).length() == 0u);
  CHECK(CorrelationPacking(1, 0).columns_of(0).count == 1);
}

TEST_CASE("more correlations than 64 bits count are none") {
  CHECK(CorrelationPacking(std::uint64_t{1} << 33, 0).length() == std::nullopt);
  CHECK(CorrelationPacking(std::numeric_limits<std::uint64_t>::max(), 0).length() == std::nullopt);
  CHECK(CorrelationPacking(std::uint64_t{1} << 62, 64).length() == std::nullopt);
  CHECK(CorrelationPacking(std::uint64_t{1} << 31, 0).length().has_value());
}

TEST_CASE("correlations are decoded as half-precision numbers, and invalid ones are found") {
  std::vector<std::uint16_t> halves;
  for (std::uint32_t bits = 0; bits <= 0x3c00; ++bits)
    for (const std::uint32_t sign : {0u, 0x8000u}) halves.push_back(static_cast<std::uint16_t>(bits | sign));
  std::vector<float> numbers(halves.size());
  REQUIRE(decode_correlations(halves, numbers) == halves.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < halves.size(); ++i)
    wrong += numbers[i] != float_of_half(halves[i]) || half_of_correlation(double{numbers[i]}) != halves[i];
  CHECK(wrong == 0);
  for (const std::uint16_t bad : {0x3c01, 0x7c00, 0x7e00, 0xbc01, 0xfc00, 0xffff}) {
    halves[7] = bad;
    CHECK(decode_correlations(halves, numbers) == 7);
    CHECK_FALSE(std::fabs(numbers[7]) <= 1);
  }
}

TEST_CASE("a correlation is rounded to the nearest half, to the even one of two") {
  CHECK(half_of_correlation(1.0 - 0x1p-13) == 0x3c00);
  CHECK(half_of_correlation(1.0 - 0x1p-12) == 0x3c00);
  CHECK(half_of_correlation(1.0 - 0x1.8p-12) == 0x3bff);
  CHECK(half_of_correlation(-0.5) == 0xb800);
  CHECK(half_of_correlation(0x1p-25) == 0);
  CHECK(half_of_correlation(0x1.8p-25) == 1);
  CHECK(half_of_correlation(0x1p-14 - 0x1p-26) == 0x0400);
}

TEST_CASE("the memory of a metric is that of two triangles of 32-bit numbers, and saturates") {
  Covariance covariance;
  covariance.columns = 4096;
  covariance.matrices = 1;
  CHECK(covariance.metric_bytes() > 4 * 4096 * 4096);
  CHECK(covariance.metric_bytes() < 4.2 * 4096 * 4096);
  covariance.block = 256;
  CHECK(covariance.metric_bytes() < 16 * 10 * 32768 + 256 * 64 * 2 + 4096 * 32 + 1);
  covariance.block = 0;
  covariance.columns = std::uint64_t{1} << 60;
  CHECK(covariance.metric_bytes() == std::numeric_limits<std::uint64_t>::max());
}
