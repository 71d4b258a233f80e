#pragma once
// Decodes 32 five-bit levels. 16 bytes contain the nibbles, with levels 0 to 15 in the low ones; bit i of four more
// bytes is the fifth bit of level i.

#include <cstring>

#include "plugins/simd/bytes.h"
#include "plugins/simd/pick.h"
#include "plugins/simd/spread.h"

namespace ggufmill::simd {

#if HWY_TARGET == HWY_AVX3

// Writes the decoded values to x; value(levels) returns the values of levels, which depend only on the level.
template <class Value>
HWY_INLINE void decode_fives(const std::uint8_t* qs, const std::uint8_t* qh, const Value& value, float* x) {
  const Words lanes = hn::Iota(kWords, 0);
  const Floats lower = value(lanes), upper = value(lanes + words(16));
  std::uint32_t fifths;
  std::memcpy(&fifths, qh, sizeof fifths);
  const auto store = [&](Words nibbles, std::uint32_t first) {  // moves the fifth bits to bit 4
    const Words turned{_mm512_rorv_epi32(words(fifths).raw, (lanes + words(28 + first)).raw)};
    hn::StoreU(pick(lower, upper, hn::IfVecThenElse(words(16), turned, nibbles)), kFloats, x + first);
  };
  const Words bytes = load_bytes(qs);
  store(bytes, 0);
  store(hn::ShiftRight<4>(bytes), 16);
}

#else

template <class Value>
HWY_INLINE void decode_fives(const std::uint8_t* qs, const std::uint8_t* qh, const Value& value, float* x) {
  const hn::Repartition<std::uint8_t, decltype(kWords)> wide{};
  for (int first = 0; first < 32; first += kWide) {
    std::uint8_t bits[8] = {};
    std::memcpy(bits, qh + first / 8, kWide / 8);
    const auto fifths = hn::IfThenElseZero(hn::LoadMaskBits(wide, bits), hn::Set(wide, 16));
    spread(nibble_bytes(qs, first) | hn::BitCast(kWords, fifths), [&](int part, Ints levels) {
      hn::StoreU(value(as_words(levels)), kFloats, x + first + part * static_cast<int>(kLanes));
    });
  }
}

#endif

}  // namespace ggufmill::simd
