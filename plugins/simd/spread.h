#pragma once
// Bytes of levels to words of levels. Where fields of several bytes make one level, they are put together while four
// levels share a word, and then spread: byte b of the 4 * kLanes bytes goes to lane b % kLanes of part b / kLanes.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

inline constexpr int kWide = 4 * static_cast<int>(kLanes);  // bytes in a vector

// The same byte in all places.
inline Words bytes_of(std::uint8_t byte) { return words(byte * 0x01010101u); }

// The bits of `a` where kMask has them and those of `b` elsewhere, of which only kUsed are wanted; kFlipped of them
// turned over. Masks are of a byte.
template <std::uint8_t kMask, std::uint8_t kUsed, std::uint8_t kFlipped = 0>
HWY_INLINE Words merge_bits(Words a, Words b) {
#if HWY_TARGET == HWY_AVX3
  const Words merged = hn::IfVecThenElse(bytes_of(kMask), a, b);
  if constexpr (kUsed == 0xff && kFlipped == 0) return merged;
  return Words{_mm512_ternarylogic_epi32(merged.raw, bytes_of(kUsed).raw, bytes_of(kFlipped).raw, 0x6a)};
#else
  const Words merged = (a & bytes_of(kMask)) | (b & bytes_of(static_cast<std::uint8_t>(kUsed & ~kMask)));
  if constexpr (kFlipped == 0) return merged;
  return merged ^ bytes_of(kFlipped);
#endif
}

// kWide bytes from byte `first` on.
inline Words load_wide(const std::uint8_t* bytes) {
  const hn::Repartition<std::uint8_t, decltype(kWords)> wide{};
  return hn::BitCast(kWords, hn::LoadU(wide, bytes));
}

// 32 bytes read twice, of the 64 those from byte `first` on; the second time their bits are kShift lower. Bits of one
// byte come into another.
template <int kShift, class D = decltype(kWords)>
HWY_INLINE hn::Vec<D> load_twice(const std::uint8_t* bytes, int first) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::Half<D> half{};
    const hn::Repartition<std::uint8_t, hn::Half<D>> half_bytes{};
    const auto once = hn::BitCast(half, hn::LoadU(half_bytes, bytes));
    return hn::Combine(D(), hn::ShiftRight<kShift>(once), once);
  } else {
    const Words once = load_wide(bytes + first % 32);
    return first < 32 ? once : hn::ShiftRight<kShift>(once);
  }
}

// Of 32 levels, which are the low nibbles of 16 bytes and after them the high ones, those from level `first` on, a byte
// each. Not for 16 lanes.
template <class D = decltype(kWords)>
HWY_INLINE hn::Vec<D> nibble_bytes(const std::uint8_t* qs, int first) {
  const hn::Full128<std::uint32_t> part{};
  const hn::Full128<std::uint8_t> bytes{};
  const auto both = hn::BitCast(part, hn::LoadU(bytes, qs));
  if constexpr (hn::MaxLanes(D()) == 8)
    return hn::Combine(D(), hn::ShiftRight<4>(both), both) & hn::Set(D(), 0x0f0f0f0f);
  else
    return hn::And(first == 0 ? both : hn::ShiftRight<4>(both), hn::Set(part, 0x0f0f0f0f));
}

// Where the bytes of each word of a part come from, in the 128-bit parts of a vector; 0x80: nowhere, a zero.
struct SpreadOrder {
  alignas(64) std::uint8_t lowest[4][64];   // the level in the word's lowest byte
  alignas(64) std::uint8_t highest[4][64];  // in its highest
  alignas(64) std::int32_t words[kLanes];   // so that a part's bytes are where its words will be
};

inline constexpr SpreadOrder kSpreadOrder = [] {
  SpreadOrder order{};
  for (int part = 0; part < 4; ++part) {
    for (int i = 0; i < 64; ++i) {
      const auto from = static_cast<std::uint8_t>(4 * part + i % 16 / 4);
      order.lowest[part][i] = i % 4 == 0 ? from : 0x80;
      order.highest[part][i] = i % 4 == 3 ? from : 0x80;
    }
  }
  constexpr int kParts = static_cast<int>(kLanes) / 4;  // of 128 bits
  for (int i = 0; i < static_cast<int>(kLanes); ++i) order.words[i] = i % 4 * kParts + i / 4;
  return order;
}();

namespace detail {

template <class Take, class Order>
HWY_INLINE void spread(Words levels, const Order& order, const Take& take) {
  const hn::Repartition<std::uint8_t, decltype(kWords)> wide{};
  if constexpr (kLanes > 4) levels = hn::TableLookupLanes(levels, hn::SetTableIndices(kWords, kSpreadOrder.words));
  const auto bytes = hn::BitCast(wide, levels);
  GGUFMILL_UNROLL
  for (int part = 0; part < 4; ++part)
    take(part, hn::BitCast(kInts, hn::TableLookupBytesOr0(bytes, hn::Load(wide, order[part]))));
}

}  // namespace detail

// take(part, levels): for each of the four parts in turn, its levels as numbers of 8 bits without sign.
template <class Take>
HWY_INLINE void spread(Words levels, const Take& take) {
  detail::spread(levels, kSpreadOrder.lowest, take);
}

// The same of 8 bits with a sign, times 2^24.
template <class Take>
HWY_INLINE void spread_signed(Words levels, const Take& take) {
  detail::spread(levels, kSpreadOrder.highest, take);
}

}  // namespace ggufmill::simd
