#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "plugins/reference/reference.h"
#include "plugins/reference/search_types.h"
#include "tests/support/catch.h"
#include "tests/support/synth.h"

namespace {

constexpr std::uint64_t kColumns = 512, kRows = 24;

using Floats = std::vector<float>;

std::span<const ggufmill_kernel> searches() { return ggufmill::reference::kSearchKernels; }

const ggufmill_kernel& kernel_of(std::uint32_t operation, std::uint32_t type) {
  for (std::uint32_t i = 0; i < ggufmill_reference_module.kernel_count; ++i) {
    const ggufmill_kernel& kernel = ggufmill_reference_module.kernels[i];
    if (kernel.operation == operation && kernel.type_id == type && !kernel.encoder) return kernel;
  }
  throw std::string("no kernel");
}

constexpr std::uint32_t kIq2Xxs = 16, kIq2Xs = 17, kIq3Xxs = 18, kIq1S = 19, kIq1M = 29, kMxfp4 = 39, kNvfp4 = 40;

enum class Tails { kLight, kHeavy };

// Sums of uniform numbers, which every library makes alike; heavy tails are cubed.
Floats random_rows(Tails tails, std::uint64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  Floats values(rows * kColumns);
  for (float& value : values) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += double(random()) / 4294967296.0;
    value = static_cast<float>(tails == Tails::kLight ? 0.02 * sum : 0.01 * sum * sum * sum);
  }
  return values;
}

Floats random_importance() {
  std::mt19937 random(7);
  Floats values(kColumns);
  for (float& value : values) value = static_cast<float>(std::exp(double(random()) / 4294967296.0 * 4));
  return values;
}

struct Encoded {
  std::vector<unsigned char> bytes;
  Floats values;
};

std::uint64_t row_bytes(std::uint32_t type) {
  const ggufmill_kernel& kernel = kernel_of(GGUFMILL_ENCODE, type);
  return kColumns / kernel.block_elements * kernel.block_bytes;
}

Floats decoded(std::uint32_t type, const std::vector<unsigned char>& bytes, std::uint64_t rows) {
  Floats values(rows * kColumns);
  const ggufmill_call call{bytes.data(), values.data(), rows, kColumns, nullptr, sizeof(ggufmill_call), 0, 0, 0};
  REQUIRE(kernel_of(GGUFMILL_DECODE, type).run(&call) == GGUFMILL_OK);
  return values;
}

Encoded searched(const ggufmill_kernel& kernel, const Floats& x, const float* importance, std::uint32_t effort,
                 std::uint32_t weights) {
  const std::uint64_t rows = x.size() / kColumns;
  Encoded encoded;
  encoded.bytes.resize(rows * row_bytes(kernel.type_id));
  const ggufmill_call call{
      x.data(), encoded.bytes.data(), rows, kColumns, importance, sizeof(ggufmill_call), effort, weights, 0};
  REQUIRE(kernel.run(&call) == GGUFMILL_OK);
  encoded.values = decoded(kernel.type_id, encoded.bytes, rows);
  return encoded;
}

Floats by_reference(std::uint32_t type, const Floats& x, const float* importance) {
  const std::uint64_t rows = x.size() / kColumns;
  std::vector<unsigned char> bytes(rows * row_bytes(type));
  const ggufmill_call call{x.data(), bytes.data(), rows, kColumns, importance, sizeof(ggufmill_call), 0, 0, 0};
  REQUIRE(kernel_of(GGUFMILL_ENCODE, type).run(&call) == GGUFMILL_OK);
  return decoded(type, bytes, rows);
}

double error_of(const Floats& x, const Floats& y, const float* importance) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += (importance ? importance[i % kColumns] : 1.0) * (double(x[i]) - y[i]) * (double(x[i]) - y[i]);
  return sum;
}

bool needs_importance(const ggufmill_kernel& kernel) {
  return kernel_of(GGUFMILL_ENCODE, kernel.type_id).flags & GGUFMILL_NEEDS_IMPORTANCE;
}

const ggufmill_kernel& search_for(std::uint32_t type) {
  for (const ggufmill_kernel& kernel : searches())
    if (kernel.type_id == type) return kernel;
  throw std::string("no search");
}

Floats row_of(const Floats& values, std::size_t row) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
  return {begin, begin + kColumns};
}

std::string name_of(const ggufmill_kernel& kernel) { return kernel_of(GGUFMILL_ENCODE, kernel.type_id).name; }

void check_errors(Tails tails, const float* importance, std::uint32_t weights) {
  const Floats x = random_rows(tails, kRows, 1);
  for (const ggufmill_kernel& kernel : searches()) {
    if (needs_importance(kernel) && !importance) continue;
    const bool takes_importance = kernel_of(GGUFMILL_ENCODE, kernel.type_id).flags != 0;
    const double reference =
        error_of(x, by_reference(kernel.type_id, x, takes_importance ? importance : nullptr), importance);
    const double found = error_of(x, searched(kernel, x, importance, 2, weights).values, importance);
    INFO(name_of(kernel) << ": " << found / reference);
    CHECK(found <= reference);
  }
}

}  // namespace

TEST_CASE("a search has at most the reference's error") {
  check_errors(Tails::kLight, nullptr, GGUFMILL_WEIGHTS_PLAIN);
}

TEST_CASE("a search has at most the reference's error for values with heavy tails") {
  check_errors(Tails::kHeavy, nullptr, GGUFMILL_WEIGHTS_PLAIN);
}

TEST_CASE("a search has at most the reference's weighted error") {
  check_errors(Tails::kLight, random_importance().data(), GGUFMILL_WEIGHTS_IMPORTANCE);
}

TEST_CASE("a search has at most the reference's weighted error for values with heavy tails") {
  check_errors(Tails::kHeavy, random_importance().data(), GGUFMILL_WEIGHTS_IMPORTANCE);
}

TEST_CASE("more effort finds smaller errors") {
  const Floats x = random_rows(Tails::kHeavy, kRows, 2);
  for (const ggufmill_kernel& kernel : searches()) {
    double before = INFINITY;
    for (const std::uint32_t effort : {1u, 2u, 3u}) {
      const double error = error_of(x, searched(kernel, x, nullptr, effort, GGUFMILL_WEIGHTS_PLAIN).values, nullptr);
      INFO(name_of(kernel) << ", effort " << effort << ": " << error / before);
      CHECK(error <= before * 1.001);
      before = error;
    }
  }
}

TEST_CASE("a searched row does not depend on the other rows of the call") {
  const Floats x = random_rows(Tails::kHeavy, 3, 3), importance = random_importance();
  for (const ggufmill_kernel& kernel : searches())
    for (const std::uint32_t weights : {0u, 1u, 2u, 3u}) {
      const Encoded all = searched(kernel, x, importance.data(), 2, weights);
      const std::uint64_t bytes = row_bytes(kernel.type_id);
      for (std::size_t row = 0; row < 3; ++row) {
        const Floats one(x.begin() + row * kColumns, x.begin() + (row + 1) * kColumns);
        const Encoded alone = searched(kernel, one, importance.data(), 2, weights);
        INFO(name_of(kernel) << ", weights " << weights << ", row " << row);
        CHECK(std::memcmp(alone.bytes.data(), all.bytes.data() + row * bytes, bytes) == 0);
      }
    }
}

TEST_CASE("a search encodes zeros as zeros") {
  const Floats zeros(kColumns);
  for (const ggufmill_kernel& kernel : searches()) {
    INFO(name_of(kernel));
    CHECK(searched(kernel, zeros, nullptr, 2, GGUFMILL_WEIGHTS_PLAIN).values == zeros);
  }
}

TEST_CASE("a search of values without weights has the reference's bytes") {
  const Floats x = random_rows(Tails::kLight, 1, 4), none(kColumns);
  for (const ggufmill_kernel& kernel : searches()) {
    if (kernel_of(GGUFMILL_ENCODE, kernel.type_id).flags == 0) continue;
    INFO(name_of(kernel));
    CHECK(searched(kernel, x, none.data(), 2, GGUFMILL_WEIGHTS_IMPORTANCE).values ==
          by_reference(kernel.type_id, x, none.data()));
  }
}

TEST_CASE("a search of values that no scale can hold has the reference's bytes or failure") {
  for (const ggufmill_kernel& kernel : searches())
    for (const float size : {1e30f, 1e-30f}) {
      if (needs_importance(kernel)) continue;
      const Floats x(kColumns, size);
      std::vector<unsigned char> bytes(row_bytes(kernel.type_id)), expected(bytes.size());
      const ggufmill_call reference{x.data(), expected.data(), 1, kColumns, nullptr, sizeof(ggufmill_call), 0, 0, 0};
      const std::int32_t status = kernel_of(GGUFMILL_ENCODE, kernel.type_id).run(&reference);
      const ggufmill_call call{x.data(), bytes.data(),           1, kColumns, nullptr, sizeof(ggufmill_call),
                               2,        GGUFMILL_WEIGHTS_PLAIN, 0};
      INFO(name_of(kernel) << ", " << size);
      CHECK(kernel.run(&call) == status);
      if (status == GGUFMILL_OK) CHECK(bytes == expected);
    }
}

TEST_CASE("no row of a search that looks at the reference's scales has a larger error than the reference's") {
  const Floats importance = ggufmill::synth::importance(5, kColumns);
  for (const std::uint32_t type : {kIq3Xxs, kIq2Xs, kIq2Xxs, kIq1S, kIq1M, kMxfp4, kNvfp4})
    for (const char* distribution : {"normal", "outliers", "cubed", "positive", "sparse", "steps", "large", "norm"}) {
      const Floats x = ggufmill::synth::values(distribution, 3, 0, kRows * kColumns);
      const bool takes_importance = kernel_of(GGUFMILL_ENCODE, type).flags != 0;
      const Floats reference = by_reference(type, x, takes_importance ? importance.data() : nullptr);
      const Floats found = searched(search_for(type), x, importance.data(), 2, GGUFMILL_WEIGHTS_IMPORTANCE).values;
      for (std::size_t row = 0; row < kRows; ++row) {
        const double least = error_of(row_of(x, row), row_of(reference, row), importance.data());
        const double error = error_of(row_of(x, row), row_of(found, row), importance.data());
        INFO(name_of(search_for(type)) << ", " << distribution << ", row " << row << ": " << error / least);
        CHECK(error <= least * (1 + 1e-6));
      }
    }
}

TEST_CASE("values of 4-bit floats are found exactly") {
  for (const std::uint32_t type : {kMxfp4, kNvfp4}) {
    const Floats x = by_reference(type, random_rows(Tails::kLight, kRows, 6), nullptr);
    for (const std::uint32_t effort : {1u, 2u, 3u})
      CHECK(searched(search_for(type), x, nullptr, effort, GGUFMILL_WEIGHTS_PLAIN).values == x);
  }
}
