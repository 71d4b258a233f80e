#include "plugins/reference/number_types.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace ggufmill::reference {
namespace {

// Row boundaries do not matter for these types, so one loop covers all elements.
template <class From, class Convert>
int32_t convert(const ggufmill_call* call, const Convert& value_of) {
  const auto* from = static_cast<const From*>(call->src);
  auto* to = static_cast<float*>(call->dst);
  const std::uint64_t count = call->rows * call->cols;
  for (std::uint64_t i = 0; i < count; ++i) to[i] = value_of(from[i]);
  return GGUFMILL_OK;
}

template <class From>
int32_t round_all(const ggufmill_call* call) {
  return convert<From>(call, [](From value) { return static_cast<float>(value); });
}

template <class To>
int32_t to_integers(const ggufmill_call* call) {
  const auto* from = static_cast<const float*>(call->src);
  auto* to = static_cast<To*>(call->dst);
  const std::uint64_t count = call->rows * call->cols;
  constexpr float kLowest = static_cast<float>(std::numeric_limits<To>::min());  // a power of two, so exact
  for (std::uint64_t i = 0; i < count; ++i) {
    const float nearest = std::nearbyint(from[i]);
    if (!(nearest >= kLowest && nearest < -kLowest)) return GGUFMILL_CANNOT_REPRESENT;
    to[i] = static_cast<To>(nearest);
  }
  return GGUFMILL_OK;
}

// Returns the value of every code of an 8-bit float. The exponent has a bias like that of IEEE formats; exponent 0
// means subnormal.
template <int kFractionBits, bool kInfinities>
constexpr std::array<float, 256> values_of_codes() {
  constexpr int kExponentBits = 7 - kFractionBits, kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr int kLast = (1 << kExponentBits) - 1, kOne = 1 << kFractionBits;
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = (code & 0x7f) >> kFractionBits, fraction = code & (kOne - 1);
    const int power = (exponent == 0 ? 1 : exponent) - kBias - kFractionBits;
    float value = static_cast<float>(exponent == 0 ? fraction : fraction + kOne);
    for (int i = 0; i < power; ++i) value *= 2;
    for (int i = 0; i > power; --i) value /= 2;
    if (exponent == kLast && kInfinities)
      value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    if (!kInfinities && (code & 0x7f) == 0x7f) value = std::numeric_limits<float>::quiet_NaN();
    values[static_cast<std::size_t>(code)] = code < 0x80 ? value : -value;
  }
  return values;
}

constexpr std::array<float, 256> kE4m3 = values_of_codes<3, false>();
constexpr std::array<float, 256> kE5m2 = values_of_codes<2, true>();

// Unpacks unsigned integers of kBits bits each from blocks of whole bytes, starting at the low bits of the first.
template <unsigned kBits>
int32_t unpack(const ggufmill_call* call) {
  constexpr unsigned kBytes = kBits / std::gcd(kBits, 8u), kInBlock = 8 * kBytes / kBits, kMask = (1u << kBits) - 1;
  const auto* from = static_cast<const std::uint8_t*>(call->src);
  auto* into = static_cast<float*>(call->dst);
  const std::uint64_t blocks = call->rows * call->cols / kInBlock;
  for (std::uint64_t block = 0; block < blocks; ++block, from += kBytes) {
    std::uint64_t word = 0;
    for (unsigned i = 0; i < kBytes; ++i) word |= std::uint64_t{from[i]} << (8 * i);
    for (unsigned i = 0; i < kInBlock; ++i) *into++ = static_cast<float>(word >> (i * kBits) & kMask);
  }
  return GGUFMILL_OK;
}

}  // namespace

int32_t decode_u4(const ggufmill_call* call) { return unpack<4>(call); }
int32_t decode_u2(const ggufmill_call* call) { return unpack<2>(call); }
int32_t decode_u3(const ggufmill_call* call) { return unpack<3>(call); }
int32_t decode_u5(const ggufmill_call* call) { return unpack<5>(call); }
int32_t decode_u6(const ggufmill_call* call) { return unpack<6>(call); }
int32_t decode_i8(const ggufmill_call* call) { return round_all<std::int8_t>(call); }
int32_t decode_i16(const ggufmill_call* call) { return round_all<std::int16_t>(call); }
int32_t decode_i32(const ggufmill_call* call) { return round_all<std::int32_t>(call); }
int32_t decode_i64(const ggufmill_call* call) { return round_all<std::int64_t>(call); }
int32_t encode_i8(const ggufmill_call* call) { return to_integers<std::int8_t>(call); }
int32_t encode_i16(const ggufmill_call* call) { return to_integers<std::int16_t>(call); }
int32_t encode_i32(const ggufmill_call* call) { return to_integers<std::int32_t>(call); }
int32_t encode_i64(const ggufmill_call* call) { return to_integers<std::int64_t>(call); }
int32_t decode_u8(const ggufmill_call* call) { return round_all<std::uint8_t>(call); }
int32_t decode_u16(const ggufmill_call* call) { return round_all<std::uint16_t>(call); }
int32_t decode_u32(const ggufmill_call* call) { return round_all<std::uint32_t>(call); }
int32_t decode_u64(const ggufmill_call* call) { return round_all<std::uint64_t>(call); }
int32_t decode_bool(const ggufmill_call* call) {
  return convert<std::uint8_t>(call, [](std::uint8_t value) { return value != 0 ? 1.0f : 0.0f; });
}
int32_t decode_e4m3(const ggufmill_call* call) {
  return convert<std::uint8_t>(call, [](std::uint8_t code) { return kE4m3[code]; });
}
int32_t decode_e5m2(const ggufmill_call* call) {
  return convert<std::uint8_t>(call, [](std::uint8_t code) { return kE5m2[code]; });
}

}  // namespace ggufmill::reference
