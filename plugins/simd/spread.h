#pragma once
// Spreads levels in bytes to levels in words. If a level consists of fields of several bytes, they are merged while
// four levels share a word, and then spread: byte b of the 4 * kLanes bytes goes to lane b % kLanes of part b / kLanes.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

inline constexpr int kWide = 4 * static_cast<int>(kLanes);  // bytes per vector

// Returns words with the same byte in all positions.
inline Words bytes_of(std::uint8_t byte) { return words(byte * 0x01010101u); }

// Merges the bits of `a` selected by kMask with the other bits of `b`. Of the result, only the bits in kUsed are
// needed, and those in kFlipped are inverted. The masks apply to each byte.
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

// Loads kWide bytes, unaligned.
inline Words load_wide(const std::uint8_t* bytes) {
  const hn::Repartition<std::uint8_t, decltype(kWords)> wide{};
  return hn::BitCast(kWords, hn::LoadU(wide, bytes));
}

// Reads 32 bytes twice, as 64 bytes, and returns those from byte `first` on. The second copy is shifted right by
// kShift, which moves bits between neighbouring bytes.
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

// Returns the levels from number `first` on, out of 32, with one byte per level. The low nibbles of 16 bytes are the
// first 16 levels, the high nibbles are the others. Not for 16 lanes.
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

// Source of the bytes of each word of a part, within the 128-bit parts of a vector; 0x80 gives a zero.
struct SpreadOrder {
  alignas(64) std::uint8_t lowest[4][64];   // puts the level in the lowest byte of the word
  alignas(64) std::uint8_t highest[4][64];  // puts it in the highest byte
  alignas(64) std::int32_t words[kLanes];   // moves the bytes of a part to its words
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
  constexpr int kParts = static_cast<int>(kLanes) / 4;  // 128-bit parts
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

// Calls take(part, levels) for each of the four parts in order, with the levels as unsigned 8-bit integers.
template <class Take>
HWY_INLINE void spread(Words levels, const Take& take) {
  detail::spread(levels, kSpreadOrder.lowest, take);
}

// Like spread(), but with the levels as signed 8-bit integers, multiplied by 2^24.
template <class Take>
HWY_INLINE void spread_signed(Words levels, const Take& take) {
  detail::spread(levels, kSpreadOrder.highest, take);
}

}  // namespace ggufmill::simd
