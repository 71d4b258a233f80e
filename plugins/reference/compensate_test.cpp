#include "plugins/reference/compensate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "plugins/reference/reference.h"
#include "plugins/reference/search_types.h"
#include "tests/support/catch.h"

namespace {

constexpr std::uint64_t kColumns = 512;
constexpr std::uint64_t kTogether = GGUFMILL_ROWS_TOGETHER;

using Floats = std::vector<float>;
using Bytes = std::vector<unsigned char>;

std::vector<ggufmill_kernel> compensating() {
  std::vector<ggufmill_kernel> found;
  for (const ggufmill_kernel& kernel : ggufmill::reference::kSearchKernels)
    if (kernel.flags & GGUFMILL_COMPENSATES) found.push_back(kernel);
  return found;
}

std::uint64_t row_bytes(const ggufmill_kernel& kernel) { return kColumns / kernel.block_elements * kernel.block_bytes; }

// Rows whose columns are alike in groups of eight, as those of trained networks are alike in some directions.
Floats correlated_rows(std::uint64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  const auto even = [&] { return static_cast<float>(double(random()) / 4294967296.0 - 0.5); };
  Floats values(rows * kColumns);
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint64_t i = 0; i < kColumns; i += 8) {
      const float common = even();
      for (std::uint64_t k = i; k < i + 8; ++k) values[row * kColumns + k] = common + 0.5f * even();
    }
  return values;
}

Bytes encoded(const ggufmill_kernel& kernel, const float* x, std::uint64_t rows, std::uint32_t compensate,
              const float* importance = nullptr) {
  Bytes bytes(rows * row_bytes(kernel));
  const ggufmill_call call{x, bytes.data(),           rows,      kColumns, importance, sizeof(ggufmill_call),
                           2, GGUFMILL_WEIGHTS_PLAIN, compensate};
  REQUIRE(kernel.run(&call) == GGUFMILL_OK);
  return bytes;
}

Floats decoded(const ggufmill_kernel& kernel, const Bytes& bytes) {
  Floats values(bytes.size() / row_bytes(kernel) * kColumns);
  const std::uint64_t rows = values.size() / kColumns;
  const ggufmill_call call{bytes.data(), values.data(), rows, kColumns, nullptr, sizeof(ggufmill_call), 0, 0, 0};
  for (std::uint32_t i = 0; i < ggufmill_reference_module.kernel_count; ++i) {
    const ggufmill_kernel& decoder = ggufmill_reference_module.kernels[i];
    if (decoder.operation == GGUFMILL_DECODE && decoder.type_id == kernel.type_id)
      REQUIRE(decoder.run(&call) == GGUFMILL_OK);
  }
  return values;
}

// Returns the sum of the squares of the groups' errors, which are errors of the output for inputs that are alike.
double error_of_groups(const Floats& x, const Floats& y) {
  double all = 0;
  for (std::size_t i = 0; i < x.size(); i += 8) {
    double error = 0;
    for (std::size_t k = i; k < i + 8; ++k) error += double{y[k]} - double{x[k]};
    all += error * error;
  }
  return all;
}

template <class Codec>
void check_levels() {
  using Block = typename Codec::Block;
  std::mt19937 random(3);
  float x[256];
  for (float& value : x) value = static_cast<float>(double(random()) / 4294967296.0 - 0.4);
  for (const float scale : {1.0f, -1.0f, 0.0f}) {
    for (float& value : x) value *= scale;
    Block block;
    REQUIRE(ggufmill::reference::encode_row<Codec>(x, Codec::kElements, nullptr, &block) == GGUFMILL_OK);
    std::uint8_t levels[256];
    float y[256], scales[16], offsets[16];
    Codec::decode(block, y);
    Codec::levels(block, levels);
    Codec::lines(block, scales, offsets);
    INFO(Codec::kName);
    for (std::uint32_t i = 0; i < Codec::kElements; ++i) {
      const int group = static_cast<int>(i) / Codec::kGroup;
      float point = levels[i];
      if constexpr (requires { Codec::kHasTable; }) point = ggufmill::reference::kIq4Values[levels[i]];
      CHECK(levels[i] <= Codec::kMaxLevel);
      CHECK(std::fabs(scales[group] * point + offsets[group] - y[i]) <= 1e-6);
    }
    Block other = block;
    std::uint8_t least[256] = {};
    Codec::put_levels(least, other);
    Codec::put_levels(levels, other);
    CHECK(std::memcmp(&other, &block, sizeof block) == 0);
  }
}

}  // namespace

TEST_CASE("levels and lines are those that a codec decodes, and levels can be put back") {
  using namespace ggufmill::reference;
  check_levels<Q4_0>();
  check_levels<Q4_1>();
  check_levels<Q5_0>();
  check_levels<Q5_1>();
  check_levels<Q2_K>();
  check_levels<Q3_K>();
  check_levels<Q4_K>();
  check_levels<Q5_K>();
  check_levels<Q6_K>();
  check_levels<Iq4Nl>();
  check_levels<Iq4Xs>();
}

TEST_CASE("compensation makes errors of columns that are alike cancel") {
  const Floats x = correlated_rows(kTogether, 1);
  for (const ggufmill_kernel& kernel : compensating()) {
    const double without = error_of_groups(x, decoded(kernel, encoded(kernel, x.data(), kTogether, 0)));
    const double with = error_of_groups(x, decoded(kernel, encoded(kernel, x.data(), kTogether, 1)));
    INFO(kernel.name << ": " << with / without);
    CHECK(with < 0.75 * without);
  }
}

TEST_CASE("compensation changes no scale") {
  const Floats x = correlated_rows(kTogether, 1);
  for (const ggufmill_kernel& kernel : compensating()) {
    if (kernel.type_id != ggufmill::reference::Q4_0::kTypeId) continue;
    const Bytes with = encoded(kernel, x.data(), kTogether, 1), without = encoded(kernel, x.data(), kTogether, 0);
    for (std::size_t block = 0; block < with.size(); block += kernel.block_bytes)
      CHECK(std::equal(with.begin() + static_cast<std::ptrdiff_t>(block),
                       with.begin() + static_cast<std::ptrdiff_t>(block) + 2,
                       without.begin() + static_cast<std::ptrdiff_t>(block)));
  }
}

TEST_CASE("rows of other groups do not change what a compensated row becomes") {
  const std::uint64_t rows = kTogether + 21;  // the last group is smaller
  const Floats x = correlated_rows(rows, 2);
  for (const ggufmill_kernel& kernel : compensating()) {
    Bytes apart = encoded(kernel, x.data(), kTogether, 1);
    const Bytes last = encoded(kernel, x.data() + kTogether * kColumns, rows - kTogether, 1);
    apart.insert(apart.end(), last.begin(), last.end());
    INFO(kernel.name);
    CHECK(encoded(kernel, x.data(), rows, 1) == apart);
  }
}

TEST_CASE("rows without error remain as they are") {
  for (const ggufmill_kernel& kernel : compensating()) {
    const Floats x = correlated_rows(8, 4);
    const Floats exact = decoded(kernel, encoded(kernel, x.data(), 8, 0));
    const Bytes without = encoded(kernel, exact.data(), 8, 0);
    if (decoded(kernel, without) != exact) continue;  // the search does not find all of these values again
    INFO(kernel.name);
    CHECK(encoded(kernel, exact.data(), 8, 1) == without);
  }
}

TEST_CASE("columns without importance keep their levels") {
  const Floats x = correlated_rows(16, 5);
  Floats importance(kColumns, 1.0f);
  std::fill_n(importance.begin(), 32, 0.0f);
  for (const ggufmill_kernel& kernel : compensating()) {
    if (kernel.block_elements != 32) continue;
    const Bytes with = encoded(kernel, x.data(), 16, 1, importance.data());
    const Bytes without = encoded(kernel, x.data(), 16, 0, importance.data());
    INFO(kernel.name);
    for (std::size_t row = 0; row < 16; ++row)
      CHECK(std::equal(with.begin() + static_cast<std::ptrdiff_t>(row * row_bytes(kernel)),
                       with.begin() + static_cast<std::ptrdiff_t>(row * row_bytes(kernel) + kernel.block_bytes),
                       without.begin() + static_cast<std::ptrdiff_t>(row * row_bytes(kernel))));
  }
}

TEST_CASE("columns whose squares overflow keep their levels") {
  Floats x = correlated_rows(4, 6);
  for (std::uint64_t row = 0; row < 4; ++row)
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(row * kColumns), 32, 3e4f * 1e17f);
  for (const ggufmill_kernel& kernel : compensating()) {
    if (kernel.type_id != ggufmill::reference::Q4_0::kTypeId) continue;
    const Bytes with = encoded(kernel, x.data(), 4, 1), without = encoded(kernel, x.data(), 4, 0);
    CHECK(std::equal(with.begin(), with.begin() + kernel.block_bytes, without.begin()));
  }
}
