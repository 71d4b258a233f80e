#include "plugins/reference/number_types.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill::reference;

namespace {

template <class T>
std::vector<float> decoded(ggufmill_run run, const std::vector<T>& codes) {
  std::vector<float> values(codes.size());
  const ggufmill_call call{codes.data(), values.data(), 1, codes.size(), nullptr, sizeof(ggufmill_call), 0, 0, 0};
  CHECK(run(&call) == GGUFMILL_OK);
  return values;
}

template <class T>
std::vector<T> encoded(ggufmill_run run, const std::vector<float>& values) {
  std::vector<T> numbers(values.size());
  const ggufmill_call call{values.data(), numbers.data(), 1, values.size(), nullptr, sizeof(ggufmill_call), 0, 0, 0};
  CHECK(run(&call) == GGUFMILL_OK);
  return numbers;
}

template <class T>
int32_t status(ggufmill_run run, float value) {
  T number{};
  const ggufmill_call call{&value, &number, 1, 1, nullptr, sizeof(ggufmill_call), 0, 0, 0};
  return run(&call);
}

std::vector<std::uint8_t> all_codes() {
  std::vector<std::uint8_t> codes;
  for (unsigned code = 0; code < 256; ++code) codes.push_back(static_cast<std::uint8_t>(code));
  return codes;
}

// Computes the value as described in the standard: sign, exponent, fraction.
float float_of_bits(unsigned code, int exponent_bits, bool has_infinities) {
  const int fraction_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned exponent = (code & 0x7f) >> fraction_bits, fraction = code & ((1u << fraction_bits) - 1);
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if (has_infinities && exponent == (1u << exponent_bits) - 1)
    return fraction == 0 ? sign * INFINITY : std::numeric_limits<float>::quiet_NaN();
  if (!has_infinities && (code & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  const float part = std::ldexp(static_cast<float>(fraction), -fraction_bits);
  return sign * (exponent == 0 ? std::ldexp(part, 1 - bias) : std::ldexp(1 + part, static_cast<int>(exponent) - bias));
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

TEST_CASE("every code of the floats of 8 bits is what the standard says") {
  const std::vector<float> e4m3 = decoded(decode_e4m3, all_codes()), e5m2 = decoded(decode_e5m2, all_codes());
  for (unsigned code = 0; code < 256; ++code) {
    CAPTURE(code);
    CHECK(same(e4m3[code], float_of_bits(code, 4, false)));
    CHECK(same(e5m2[code], float_of_bits(code, 5, true)));
  }
  CHECK(e4m3[0x7e] == 448);
  CHECK(e4m3[0x01] == 0x1p-9f);
  CHECK(e5m2[0x7b] == 57344);
  CHECK(e5m2[0x01] == 0x1p-16f);
}

TEST_CASE("integers become the nearest number, ties to even") {
  CHECK(decoded<std::int8_t>(decode_i8, {-128, -1, 0, 127}) == std::vector<float>{-128, -1, 0, 127});
  CHECK(decoded<std::int16_t>(decode_i16, {-32768, 32767}) == std::vector<float>{-32768, 32767});
  CHECK(decoded<std::uint16_t>(decode_u16, {0, 65535}) == std::vector<float>{0, 65535});
  CHECK(decoded<std::int32_t>(decode_i32, {16777217, 16777219, -16777217, INT32_MAX, INT32_MIN}) ==
        std::vector<float>{16777216, 16777220, -16777216, 0x1p31f, -0x1p31f});
  CHECK(decoded<std::uint32_t>(decode_u32, {4294967295u, 4294967040u, 4294967167u, 4294967168u}) ==
        std::vector<float>{0x1p32f, 4294967040.0f, 4294967040.0f, 0x1p32f});
  // 2^53 + 2^29 + 1 is just above a tie, but as a double it would be exactly on the tie. Checks that the conversion
  // rounds only once.
  const std::int64_t above_tie = (std::int64_t{1} << 53) + (std::int64_t{1} << 29) + 1;
  CHECK(decoded<std::int64_t>(decode_i64, {above_tie, -above_tie, INT64_MAX, INT64_MIN}) ==
        std::vector<float>{0x1.000002p53f, -0x1.000002p53f, 0x1p63f, -0x1p63f});
  const std::uint64_t high_tie = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 39);
  CHECK(decoded<std::uint64_t>(decode_u64, {high_tie, high_tie + 1, UINT64_MAX}) ==
        std::vector<float>{0x1p63f, 0x1.000002p63f, 0x1p64f});
}

TEST_CASE("numbers become the nearest integer, ties to even") {
  CHECK(encoded<std::int8_t>(encode_i8, {-128.5f, -1.5f, -0.5f, 0.5f, 1.5f, 126.5f, 127.25f}) ==
        std::vector<std::int8_t>{-128, -2, 0, 0, 2, 126, 127});
  CHECK(encoded<std::int16_t>(encode_i16, {-32768, 32767}) == std::vector<std::int16_t>{-32768, 32767});
  CHECK(encoded<std::int32_t>(encode_i32, {-0x1p31f, 0x1.fffffep30f}) ==
        std::vector<std::int32_t>{INT32_MIN, 2147483520});
  CHECK(encoded<std::int64_t>(encode_i64, {-0x1p63f, 0x1.fffffep62f}) ==
        std::vector<std::int64_t>{INT64_MIN, 9223371487098961920});
}

TEST_CASE("what is beyond the integers of a type cannot be represented") {
  CHECK(status<std::int8_t>(encode_i8, 127.5f) == GGUFMILL_CANNOT_REPRESENT);
  CHECK(status<std::int8_t>(encode_i8, -129.0f) == GGUFMILL_CANNOT_REPRESENT);
  CHECK(status<std::int16_t>(encode_i16, 32768.0f) == GGUFMILL_CANNOT_REPRESENT);
  CHECK(status<std::int32_t>(encode_i32, 0x1p31f) == GGUFMILL_CANNOT_REPRESENT);
  CHECK(status<std::int64_t>(encode_i64, 0x1p63f) == GGUFMILL_CANNOT_REPRESENT);
  CHECK(status<std::int64_t>(encode_i64, NAN) == GGUFMILL_CANNOT_REPRESENT);
}

TEST_CASE("bytes and truth values are numbers") {
  const std::vector<float> bytes = decoded(decode_u8, all_codes()), truths = decoded(decode_bool, all_codes());
  for (unsigned code = 0; code < 256; ++code) {
    CHECK(bytes[code] == static_cast<float>(code));
    CHECK(truths[code] == (code == 0 ? 0.0f : 1.0f));
  }
}
