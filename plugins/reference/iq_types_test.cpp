#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "plugins/reference/iq1_types.h"
#include "plugins/reference/iq4_types.h"
#include "plugins/reference/lattice_types.h"
#include "tests/support/catch.h"
#include "tests/support/synth.h"

using namespace ggufmill;
using namespace ggufmill::reference;

namespace {

std::vector<ggufmill_kernel> kernels_for(std::uint32_t operation) {
  std::vector<ggufmill_kernel> kernels;
  auto append = [&](const auto& family) {
    std::copy_if(family.begin(), family.end(), std::back_inserter(kernels),
                 [&](const ggufmill_kernel& kernel) { return kernel.operation == operation; });
  };
  append(kIq1Kernels), append(kLatticeKernels), append(kIq4Kernels);
  return kernels;
}

// Encodes 256 values as blocks of the kernel's type. Returns no bytes if the kernel fails.
std::vector<std::uint8_t> encode(const ggufmill_kernel& kernel, const std::vector<float>& x, const float* importance) {
  std::vector<std::uint8_t> bytes(x.size() / kernel.block_elements * kernel.block_bytes);
  const ggufmill_call call{x.data(), bytes.data(), 1, x.size(), importance, sizeof(ggufmill_call), 0, 0, 0};
  if (kernel.run(&call) != GGUFMILL_OK) bytes.clear();
  return bytes;
}

// Counts failures to read back a field after writing it, for every index at every group together with signs and a
// scale.
template <class Format>
int lost_fields() {
  int lost = 0;
  constexpr int kGroups = static_cast<int>(256 / Format::kBook[0].size());
  for (int group = 0; group < kGroups; ++group) {
    for (int index = 0; index < static_cast<int>(Format::kBook.size()); ++index) {
      typename Format::Block block{};
      Format::put_index(block, group, static_cast<unsigned>(index));
      Format::put_signs(block, group % 32, 85);
      Format::put_scale(block, group % (256 / Format::kSubBlock), 9);
      lost += Format::get_index(block, group) != index || Format::get_signs(block, group % 32) != 85 ||
              Format::get_scale(block, group % (256 / Format::kSubBlock)) != 9;
    }
  }
  return lost;
}

}  // namespace

TEST_CASE("fields come back from a block", "[iq]") {
  CHECK(lost_fields<Iq2XxsFormat>() == 0);
  CHECK(lost_fields<Iq2XsFormat>() == 0);
  CHECK(lost_fields<Iq2SFormat>() == 0);
  CHECK(lost_fields<Iq3XxsFormat>() == 0);
  CHECK(lost_fields<Iq3SFormat>() == 0);
}

TEST_CASE("seven bits of signs tell an even number of eight", "[iq]") {
  int odd = 0;
  for (unsigned seven = 0; seven < 128; ++seven) odd += __builtin_parity(expand_even_signs(seven));
  CHECK(odd == 0);
}

TEST_CASE("any bytes decode within the tables", "[iq]") {
  std::mt19937 random(1);
  for (const ggufmill_kernel& kernel : kernels_for(GGUFMILL_DECODE)) {
    CAPTURE(kernel.name);
    std::vector<std::uint8_t> bytes(200 * kernel.block_bytes);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::fill_n(bytes.begin(), kernel.block_bytes, std::uint8_t{0xff});
    std::vector<float> x(200 * kernel.block_elements);
    const ggufmill_call call{bytes.data(), x.data(), 1, x.size(), nullptr, sizeof(ggufmill_call), 0, 0, 0};
    CHECK(kernel.run(&call) == GGUFMILL_OK);
  }
}

TEST_CASE("any floats are encoded or refused", "[iq]") {
  std::mt19937 random(1);
  for (const ggufmill_kernel& kernel : kernels_for(GGUFMILL_ENCODE)) {
    CAPTURE(kernel.name);
    int other = 0;
    for (int round = 0; round < 100; ++round) {
      std::vector<std::uint32_t> bits(512);
      for (std::uint32_t& word : bits) word = static_cast<std::uint32_t>(random());
      std::vector<float> x(256), importance(256, 1.0f);
      std::memcpy(x.data(), bits.data(), 1024);
      std::vector<std::uint8_t> bytes(256 / kernel.block_elements * kernel.block_bytes);
      const ggufmill_call call{x.data(), bytes.data(), 1, 256, importance.data(), sizeof(ggufmill_call), 0, 0, 0};
      const std::int32_t status = kernel.run(&call);
      other += status != GGUFMILL_OK && status != kNoBookPoint;
    }
    CHECK(other == 0);
  }
}

TEST_CASE("weights too large for a distance are refused", "[iq]") {
  const std::vector<float> x = synth::values("normal", 1, 0, 256);
  std::vector<float> huge(x);
  for (float& value : huge) value *= 1e30f;
  const ggufmill_kernel& iq3_s = kLatticeKernels.back();
  REQUIRE_FALSE(encode(iq3_s, x, nullptr).empty());
  CHECK(encode(iq3_s, huge, nullptr).empty());
}

TEST_CASE("zeros become zero bytes in the types with code books", "[iq]") {
  const std::vector<float> importance(256, 1.0f);
  for (const ggufmill_kernel& kernel : kernels_for(GGUFMILL_ENCODE)) {
    if (kernel.type_id == Iq4Nl::kTypeId || kernel.type_id == Iq4Xs::kTypeId) continue;
    CAPTURE(kernel.name);
    const auto bytes = encode(kernel, std::vector<float>(256), importance.data());
    REQUIRE_FALSE(bytes.empty());
    CHECK(std::count(bytes.begin(), bytes.end(), 0) == static_cast<std::ptrdiff_t>(bytes.size()));
  }
}

TEST_CASE("IQ3_S leaves no room for a sub-block of zeros", "[iq]") {
  std::vector<float> last = synth::values("normal", 5, 0, 256);  // zeros in the last sub-block; below, in the first
  std::fill(last.end() - 32, last.end(), 0.0f);
  std::vector<float> first(last);
  std::rotate(first.begin(), first.end() - 32, first.end());
  Iq3SFormat::Block expected, block;
  REQUIRE(LatticeCodec<Iq3SFormat>::encode(last.data(), nullptr, expected) == GGUFMILL_OK);
  REQUIRE(LatticeCodec<Iq3SFormat>::encode(first.data(), nullptr, block) == GGUFMILL_OK);
  CHECK(std::equal(block.qs, block.qs + 64, expected.qs));
  CHECK(std::equal(block.signs, block.signs + 32, expected.signs));
  CHECK(std::equal(block.qh + 1, block.qh + 8, expected.qh));
}
