#pragma once
// 32 levels of five bits: nibbles in 16 bytes, the low ones those of levels 0 to 15; bit i of four bytes: the fifth bit
// of level i.

#include <cstring>

#include "plugins/simd/bytes.h"
#include "plugins/simd/spread.h"

namespace ggufmill::simd {
namespace detail {

#if HWY_TARGET == HWY_AVX3

// kSet goes to levels whose fifth bit is set, kClear to the others.
template <std::uint32_t kSet, std::uint32_t kClear, class Take>
HWY_INLINE void each_five(const std::uint8_t* qs, const std::uint8_t* qh, const Take& take) {
  const Words bytes = load_bytes(qs);
  const auto level = [&](Words nibbles, const std::uint8_t* bits) {
    const auto set = hn::LoadMaskBits(kWords, bits);
    return to_floats(as_ints(hn::IfThenElse(set, nibbles | words(kSet), nibbles | words(kClear))));
  };
  take(0, level(bytes & words(0xf), qh));
  take(16, level(hn::ShiftRight<4>(bytes), qh + 2));
}

#else

// Bytes of levels: kSet goes to those whose fifth bit is set, kClear to the others.
template <std::uint8_t kSet, std::uint8_t kClear>
HWY_INLINE Words five_bytes(const std::uint8_t* qs, const std::uint8_t* qh, int first) {
  constexpr hn::Repartition<std::uint8_t, decltype(kWords)> wide{};
  std::uint8_t bits[8] = {};
  std::memcpy(bits, qh + first / 8, kWide / 8);
  const auto set = hn::LoadMaskBits(wide, bits);
  const auto upper = hn::IfThenElse(set, hn::Set(wide, kSet), hn::Set(wide, kClear));
  return nibble_bytes(qs, first) | hn::BitCast(kWords, upper);
}

#endif

}  // namespace detail

// take(i, levels): the levels from i on as numbers, 16 below what is stored.
template <class Take>
HWY_INLINE void each_signed_five(const std::uint8_t* qs, const std::uint8_t* qh, const Take& take) {
#if HWY_TARGET == HWY_AVX3
  detail::each_five<0, 0xfffffff0>(qs, qh, take);
#else
  for (int first = 0; first < 32; first += kWide)
    spread_signed(detail::five_bytes<0, 0xf0>(qs, qh, first), [&](int part, Ints level) {
      take(first + part * static_cast<int>(kLanes), to_floats(hn::ShiftRight<24>(level)));
    });
#endif
}

// The same of the levels as they are.
template <class Take>
HWY_INLINE void each_five(const std::uint8_t* qs, const std::uint8_t* qh, const Take& take) {
#if HWY_TARGET == HWY_AVX3
  detail::each_five<16, 0>(qs, qh, take);
#else
  for (int first = 0; first < 32; first += kWide)
    spread(detail::five_bytes<16, 0>(qs, qh, first),
           [&](int part, Ints level) { take(first + part * static_cast<int>(kLanes), to_floats(level)); });
#endif
}

}  // namespace ggufmill::simd
