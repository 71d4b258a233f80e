// Tests which rows are recognised as values of a type.

#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "plugins/reference/floats.h"
#include "plugins/reference/reference.h"
#include "tests/support/catch.h"

namespace {

using ggufmill::reference::bfloat_to_float;
using ggufmill::reference::float_to_bfloat;
using ggufmill::reference::float_to_half;
using ggufmill::reference::half_to_float;

constexpr std::uint64_t kCount = 512;
constexpr std::uint32_t kQ4_0 = 2, kQ4_1 = 3, kQ5_0 = 6, kQ5_1 = 7, kQ8_0 = 8, kQ4_K = 12, kIq4Nl = 20;

using Row = std::vector<float>;

std::span<const ggufmill_lattice_kernel> lattices() {
  return {ggufmill_reference_lattices.kernels, ggufmill_reference_lattices.count};
}

const ggufmill_lattice_kernel& lattice_kernel(std::uint32_t type) {
  for (const ggufmill_lattice_kernel& kernel : lattices())
    if (kernel.type_id == type) return kernel;
  throw std::string("no lattice kernel");
}

const ggufmill_kernel& codec(std::uint32_t operation, std::uint32_t type) {
  for (std::uint32_t i = 0; i < ggufmill_reference_module.kernel_count; ++i) {
    const ggufmill_kernel& kernel = ggufmill_reference_module.kernels[i];
    if (kernel.operation == operation && kernel.type_id == type) return kernel;
  }
  throw std::string("no kernel");
}

std::vector<unsigned char> room_for(std::uint32_t type) {
  const ggufmill_kernel& kernel = codec(GGUFMILL_ENCODE, type);
  return std::vector<unsigned char>(kCount / kernel.block_elements * kernel.block_bytes);
}

Row decoded_row(std::uint32_t type, const std::vector<unsigned char>& bytes) {
  Row row(kCount);
  const ggufmill_call call{bytes.data(), row.data(), 1, kCount, nullptr, sizeof(ggufmill_call), 0, 0, 0};
  REQUIRE(codec(GGUFMILL_DECODE, type).run(&call) == GGUFMILL_OK);
  return row;
}

struct Recognised {
  std::int32_t found;
  Row values;
};

Recognised recognise(std::uint32_t type, const Row& row) {
  std::vector<unsigned char> bytes = room_for(type);
  const std::int32_t found = lattice_kernel(type).run(row.data(), kCount, bytes.data());
  return {found, found == GGUFMILL_LATTICE_NONE ? Row{} : decoded_row(type, bytes)};
}

bool is_exact(std::uint32_t type, const Row& row) {
  const Recognised recognised = recognise(type, row);
  return recognised.found == GGUFMILL_LATTICE_EXACT && recognised.values == row;
}

double any_number(std::mt19937& random) { return double(random()) / 4294967296.0; }

// A row of random values, encoded by the type's own encoder and decoded.
Row quantized_row(std::uint32_t type, unsigned seed) {
  std::mt19937 random(seed);
  Row row(kCount);
  for (float& value : row) value = static_cast<float>(any_number(random) - 0.4);
  std::vector<unsigned char> bytes = room_for(type);
  const ggufmill_call call{row.data(), bytes.data(), 1, kCount, nullptr, sizeof(ggufmill_call), 0, 0, 0};
  REQUIRE(codec(GGUFMILL_ENCODE, type).run(&call) == GGUFMILL_OK);
  return decoded_row(type, bytes);
}

// Whole numbers from -most to most in groups of 32, times a scale of each group.
Row whole_numbers(int most, const std::function<float(std::mt19937&)>& scale, unsigned seed = 1) {
  std::mt19937 random(seed);
  Row row(kCount);
  for (std::size_t at = 0; at < kCount; at += 32) {
    const float step = scale(random);
    for (std::size_t i = at; i < at + 32; ++i)
      row[i] = step * static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * most + 1)) - most);
  }
  return row;
}

float half_scale(std::mt19937& random) {
  return half_to_float(float_to_half(static_cast<float>(0.001 + 0.01 * any_number(random))));
}
// A scale whose products with 4-bit numbers are exact in BF16.
float short_scale(std::mt19937& random) { return static_cast<float>(16 + random() % 16) * 0x1p-12f; }

Row as_bfloats(Row row) {
  for (float& value : row) value = bfloat_to_float(float_to_bfloat(value));
  return row;
}

}  // namespace

TEST_CASE("what a type's encoder has made is recognised as exact") {
  for (const ggufmill_lattice_kernel& kernel : lattices()) {
    INFO(codec(GGUFMILL_ENCODE, kernel.type_id).name);
    for (const unsigned seed : {1u, 2u, 3u}) CHECK(is_exact(kernel.type_id, quantized_row(kernel.type_id, seed)));
  }
}

TEST_CASE("whole numbers whose greatest magnitude is not the type's are recognised as exact") {
  for (const int most : {1, 2, 3, 4, 5, 6, 7}) {
    INFO(most);
    for (const std::uint32_t type : {kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0})
      CHECK(is_exact(type, whole_numbers(most, half_scale)));
  }
}

TEST_CASE("symmetric 4-bit numbers in groups of 32, stored as BF16, are exact in Q4_0") {
  const Row row = whole_numbers(7, short_scale);
  REQUIRE(as_bfloats(row) == row);
  CHECK(is_exact(kQ4_0, row));
}

TEST_CASE("the value -128 is exact in Q8_0") {
  Row row = whole_numbers(127, short_scale);
  row[0] = -128 * 0x1p-8f;
  for (std::size_t i = 1; i < 32; ++i) row[i] = static_cast<float>(i) * 0x1p-8f;
  CHECK(is_exact(kQ8_0, row));
}

TEST_CASE("a block of zeros within a row is exact") {
  Row row = whole_numbers(7, half_scale);
  std::fill_n(row.begin() + 32, 32, 0.0f);
  for (const std::uint32_t type : {kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0}) CHECK(is_exact(type, row));
  Row table = quantized_row(kIq4Nl, 4);
  std::fill_n(table.begin() + 32, 32, 0.0f);
  CHECK(is_exact(kIq4Nl, table));
}

TEST_CASE("a group of equal values within a super-block is exact") {
  Row row = quantized_row(kQ4_K, 5);
  std::fill_n(row.begin() + 64, 32, 0.0f);
  CHECK(is_exact(kQ4_K, row));
}

TEST_CASE("a scale that no half can hold is not exact") {
  const Row row = whole_numbers(7, [](std::mt19937&) { return 1.0f + 0x1p-20f; });
  for (const ggufmill_lattice_kernel& kernel : lattices()) {
    INFO(codec(GGUFMILL_ENCODE, kernel.type_id).name);
    CHECK(recognise(kernel.type_id, row).found != GGUFMILL_LATTICE_EXACT);
  }
}

TEST_CASE("arbitrary values are not recognised") {
  std::mt19937 random(6);
  Row row(kCount);
  for (float& value : row) value = static_cast<float>(any_number(random) - 0.4);
  for (const ggufmill_lattice_kernel& kernel : lattices()) {
    INFO(codec(GGUFMILL_ENCODE, kernel.type_id).name);
    CHECK(recognise(kernel.type_id, row).found == GGUFMILL_LATTICE_NONE);
    CHECK(recognise(kernel.type_id, as_bfloats(row)).found == GGUFMILL_LATTICE_NONE);
  }
}

TEST_CASE("one value off the lattice is enough for a row not to be exact") {
  for (const ggufmill_lattice_kernel& kernel : lattices()) {
    Row row = quantized_row(kernel.type_id, 7);
    row[kCount - 1] = std::nextafter(row[kCount - 1], 1.0f);
    INFO(codec(GGUFMILL_ENCODE, kernel.type_id).name);
    CHECK(recognise(kernel.type_id, row).found != GGUFMILL_LATTICE_EXACT);
  }
}

TEST_CASE("values that are rounded to BF16 are near the lattice of types with few levels") {
  for (const std::uint32_t type : {kQ4_0, kQ5_0, kIq4Nl}) {
    const Row row = quantized_row(type, 8), rounded = as_bfloats(row);
    REQUIRE(rounded != row);
    const Recognised recognised = recognise(type, rounded);
    CHECK(recognised.found == GGUFMILL_LATTICE_NEAR);
    for (std::size_t i = 0; i < kCount; ++i)
      CHECK(std::fabs(recognised.values[i] - rounded[i]) <= 0x1p-7f * std::fabs(rounded[i]));
  }
}

TEST_CASE("a part of a row is recognised as the row is") {
  const Row row = as_bfloats(quantized_row(kQ4_0, 9));
  std::vector<unsigned char> all = room_for(kQ4_0), parts = room_for(kQ4_0);
  const auto run = lattice_kernel(kQ4_0).run;
  REQUIRE(run(row.data(), kCount, all.data()) == GGUFMILL_LATTICE_NEAR);
  for (std::size_t at = 0; at < kCount; at += 64) CHECK(run(row.data() + at, 64, parts.data() + at / 32 * 18) != 0);
  CHECK(parts == all);
}

TEST_CASE("a row is recognised alike with and without room for its bytes") {
  for (const ggufmill_lattice_kernel& kernel : lattices()) {
    const Row row = quantized_row(kernel.type_id, 10);
    CHECK(kernel.run(row.data(), kCount, nullptr) == recognise(kernel.type_id, row).found);
  }
}
