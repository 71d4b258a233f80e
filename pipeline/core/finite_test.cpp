#include "pipeline/core/finite.h"

#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Calls first_bad_block() on `count` zero blocks of `type`, with `bytes` at `offset` of block `at`.
std::size_t first_bad_with(const char* name, std::size_t count, std::size_t at, std::size_t offset,
                           std::vector<std::uint8_t> bytes) {
  const TypeInfo& type = type_named(name);
  std::vector<std::byte> blocks(count * type.block_bytes);
  std::memcpy(blocks.data() + at * type.block_bytes + offset, bytes.data(), bytes.size());
  return first_bad_block(type, blocks.data(), count);
}

}  // namespace

TEST_CASE("values beyond what blocks represent are found with those that are not finite") {
  const TypeInfo& f32 = type_named("F32");
  for (const char* type : {"Q6_K", "IQ4_XS", "Q3_K", "Q8_0", "IQ1_M"})
    CHECK(exponent_limit(type_named(type)) == (127 + 28) << 7);
  CHECK(exponent_limit(type_named("NVFP4")) == (127 + 12) << 7);
  for (const char* type : {"F32", "F16", "BF16", "MXFP4"}) CHECK(exponent_limit(type_named(type)) == 0x7f80);
  std::vector<float> values(3000, 65504.0f * 127 * 32);
  const auto first = [&](const char* into) {
    return first_beyond(f32, reinterpret_cast<const std::byte*>(values.data()), values,
                        exponent_limit(type_named(into)));
  };
  CHECK(first("Q6_K") == values.size());
  CHECK(first("NVFP4") == 0);
  values[2999] = -268435456.0f;  // 2^28
  CHECK(first("Q6_K") == 2999);
  CHECK(first("F16") == values.size());
  values[1234] = kNan;
  CHECK(first("F16") == 1234);
  std::vector<std::uint16_t> brains(700, 0x3f80);  // 1 in BF16
  std::vector<float> ones(700, 1.0f);
  brains[650] = 0x4e00;  // 2^29
  CHECK(first_beyond(type_named("BF16"), reinterpret_cast<const std::byte*>(brains.data()), ones,
                     exponent_limit(type_named("Q6_K"))) == 650);
}

TEST_CASE("a row is bad where its header or one of its blocks is") {
  TypeInfo type{0x10100, "TEST_ROWS", TypeClass::kForeign, 4, 3, {{FieldFormat::kE8m0, 2, 1}}};
  type.fields[1] = {FieldFormat::kF32, 1, 1, true};
  type.row_header_bytes = 5;
  constexpr std::size_t kColumns = 12, kRow = 5 + 3 * 3, kRows = 4;
  std::vector<std::byte> rows(kRows * kRow);
  const auto next = [&](std::size_t from) { return next_bad_block(type, kColumns, rows, from); };
  CHECK(next(0) == 12);
  std::memcpy(&rows[kRow + 1], &kInfinity, sizeof kInfinity);
  rows[kRow + 5 + 3 + 2] = std::byte{0xff};
  rows[3 * kRow + 5 + 2 * 3 + 2] = std::byte{0xff};
  CHECK(next(0) == 3);
  CHECK(next(4) == 4);
  CHECK(next(5) == 11);
  CHECK(next(12) == 12);
  const auto bad = [&](std::size_t block) { return bytes_of_bad_block(type, kColumns, rows, block); };
  CHECK(bad(3).data() == &rows[kRow]);
  CHECK(bad(3).size() == kRow);
  CHECK(bad(11).data() == &rows[3 * kRow + 5 + 2 * 3]);
  CHECK(bad(11).size() == 3);
}

TEST_CASE("the first value that is not finite is found at any position") {
  const std::size_t count = GENERATE(1, 127, 128, 129, 300);
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    std::vector<float> values(count, std::numeric_limits<float>::max());
    CHECK(first_not_finite(values) == count);
    for (std::size_t i = count; i-- > 0;) {
      values[i] = bad;
      CHECK(first_not_finite(values) == i);
    }
  }
}

TEST_CASE("the greatest, least and subnormal numbers are finite") {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> values = {0.0f, -0.0f, Limits::max(), Limits::lowest(), Limits::denorm_min(), Limits::min()};
  CHECK(first_not_finite(values) == values.size());
}

TEST_CASE("a block is bad when one of its scales is") {
  struct Case {
    const char* type;
    std::size_t offset;
    std::vector<std::uint8_t> bytes;
    bool bad;
  };
  const std::vector<Case> cases = {
      {"F16", 0, {0x00, 0x7c}, true},                             // infinity
      {"F16", 0, {0xff, 0x7b}, false},                            // 65504
      {"BF16", 0, {0x80, 0xff}, true},                            // -infinity
      {"BF16", 0, {0x7f, 0x7f}, false},                           // largest finite number
      {"F32", 0, {0, 0, 0xc0, 0x7f}, true},                       // NaN
      {"F64", 0, {0, 0, 0, 0, 0, 0, 0xf0, 0x7f}, true},           // infinity
      {"F64", 0, {0, 0, 0, 0, 0, 0, 0, 0x7f}, false},             // 2^1009
      {"F8_E4M3", 0, {0xff}, true},                               // NaN
      {"F8_E4M3", 0, {0x7e}, false},                              // 448
      {"F8_E5M2", 0, {0x7c}, true},                               // infinity
      {"F8_E5M2", 0, {0xfb}, false},                              // -57344
      {"Q8_0", 0, {0x00, 0xfc}, true},                            // scale
      {"Q8_0", 2, {0x00, 0xfc}, false},                           // elements may be anything
      {"Q4_1", 2, {0x01, 0x7c}, true},                            // minimum
      {"Q2_K", 82, {0x00, 0x7c}, true},                           // second of two
      {"Q6_K", 208, {0x00, 0x7c}, true},                          // at the end of the block
      {"MXFP4", 0, {0xff}, true},                                 // E8M0 NaN
      {"MXFP4", 0, {0xfe}, false},                                // 2^127
      {"IQ1_M", 48, {0, 0, 0, 0, 0x00, 0xc0, 0x00, 0x70}, true},  // 0x7c00 in the high nibbles
      {"IQ1_M", 48, {0, 0, 0, 0, 0x00, 0xb0, 0x00, 0x70}, false},
      {"I32", 0, {0, 0, 0xc0, 0x7f}, false},
  };
  for (const Case& c : cases) {
    INFO(c.type << " at " << c.offset);
    // Enough blocks for several iterations of the vector loop, which processes 512 bytes each, and a remainder.
    constexpr std::size_t kCount = 1100;
    for (std::size_t at : {0, 1, 70, 255, 256, 511, 512, 700, 1023, 1024, 1099})
      CHECK(first_bad_with(c.type, kCount, at, c.offset, c.bytes) == (c.bad ? at : kCount));
  }
}

TEST_CASE("the largest value is the first one of the largest magnitude") {
  CHECK(largest_of({}) == 0);
  CHECK(largest_of(std::array{1.0f, -3.0f, 3.0f, 0.0f}) == 1);
}
