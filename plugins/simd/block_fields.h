#pragma once
// Fields of the IQ1, IQ2 and IQ3 types, extracted for an entire super-block at a time: point indices as 16-bit
// integers, and scales.

#include <cstring>

#include "plugins/simd/group_floats.h"

namespace ggufmill::simd {

inline constexpr hn::Repartition<std::uint16_t, decltype(kWords)> kShorts{};
inline constexpr hn::Repartition<std::uint8_t, decltype(kWords)> kWideBytes{};
using Shorts = hn::Vec<decltype(kShorts)>;
inline constexpr int kShortLanes = static_cast<int>(hn::MaxLanes(kShorts));

inline Shorts shorts(unsigned value) { return hn::Set(kShorts, static_cast<std::uint16_t>(value)); }

// Loads one byte per short.
inline Shorts load_as_shorts(const std::uint8_t* bytes) {
  return hn::PromoteTo(kShorts, hn::LoadU(hn::Half<decltype(kWideBytes)>(), bytes));
}

// Tables that move consecutive fields of kBits bits, starting at the lowest bit of a byte, to bit 8 of shorts.
template <int kBits, int kCount>
struct HighFields {
  alignas(64) std::uint8_t bytes[2 * kCount];      // source byte; 0x80 gives a zero
  alignas(64) std::uint16_t factors[kShortLanes];  // move the field to bit 8

  constexpr HighFields() : bytes(), factors() {
    for (int i = 0; i < 2 * kCount; ++i) bytes[i] = i % 2 == 0 ? static_cast<std::uint8_t>(i / 2 * kBits / 8) : 0x80;
    for (int i = 0; i < kShortLanes; ++i) factors[i] = static_cast<std::uint16_t>(256 >> (i * kBits % 8));
  }
};

// Assembles kCount indices from their lower 8 bits in `low` and their upper kBits bits in `high`. 16 bytes of `high`
// must be readable. Calls take(i, indices) for each vector of indices.
template <int kBits, int kCount, class Take>
HWY_INLINE void each_index(const std::uint8_t* low, const std::uint8_t* high, const Take& take) {
  static constexpr HighFields<kBits, kCount> kFields;
  const auto source = hn::LoadDup128(kWideBytes, high);
  for (int i = 0; i < kCount; i += kShortLanes) {
    const auto bytes = hn::TableLookupBytesOr0(source, hn::Load(kWideBytes, kFields.bytes + 2 * i));
    const Shorts fields = hn::BitCast(kShorts, bytes) * hn::Load(kShorts, kFields.factors);
    take(i, load_as_shorts(low + i) | (fields & shorts(((1 << kBits) - 1) << 8)));
  }
}

// Values for up to kCount sub-blocks, but at least one full vector.
template <int kCount>
using SubFloats = GroupFloats < kCount<static_cast<int>(kLanes) ? static_cast<int>(kLanes) : kCount>;

// Loads the words from number i on, out of eight; lanes past the eighth word are zero.
template <class D = decltype(kWords)>
HWY_INLINE hn::Vec<D> load_eight_words(const std::uint8_t* bytes, int i) {
  constexpr std::size_t kUsed = hn::MaxLanes(D()) < 8 ? hn::MaxLanes(D()) : 8;
  const hn::Repartition<std::uint8_t, hn::CappedTag<std::uint32_t, kUsed>> used{};
  const auto four = hn::BitCast(hn::CappedTag<std::uint32_t, kUsed>(), hn::LoadU(used, bytes + 4 * i));
  if constexpr (kUsed == hn::MaxLanes(D()))
    return four;
  else
    return hn::ZeroExtendVector(D(), four);
}

// Loads the shorts from number i on, out of eight; lanes past the eighth short are zero.
template <class D = decltype(kWords)>
HWY_INLINE hn::Vec<D> load_eight_shorts(const std::uint8_t* bytes, int i) {
  constexpr std::size_t kUsed = hn::MaxLanes(D()) < 8 ? hn::MaxLanes(D()) : 8;
  const hn::CappedTag<std::uint16_t, kUsed> shorts{};
  const auto loaded = hn::BitCast(shorts, hn::LoadU(hn::Repartition<std::uint8_t, decltype(shorts)>(), bytes + 2 * i));
  const auto promoted = hn::PromoteTo(hn::CappedTag<std::uint32_t, kUsed>(), loaded);
  if constexpr (kUsed == hn::MaxLanes(D()))
    return promoted;
  else
    return hn::ZeroExtendVector(D(), promoted);
}

// Loads the nibbles from number i on, the lower one of each byte first. `count` is the number of nibbles stored.
HWY_INLINE Ints load_nibbles(const std::uint8_t* bytes, int i, int count) {
  const auto eight = [&](int first) {
    std::uint32_t four;
    std::memcpy(&four, bytes + first / 2, 4);
    return words(four);
  };
  const Words shifts = hn::ShiftLeft<2>(hn::Iota(kWords, static_cast<std::uint32_t>(i)) & words(7));
  Words nibbles = eight(i / 8 * 8);
  if (kLanes > 8 && count > 8) nibbles = hn::IfThenElse(hn::FirstN(kWords, 8), nibbles, eight(8));
  return as_ints((nibbles >> shifts) & words(15));
}

// Four positions in a table, read with one load, because loads dominate the decoders of these types.
class FourPlaces {
 public:
  explicit FourPlaces(const std::uint16_t* places) { std::memcpy(&places_, places, sizeof places_); }
  std::size_t operator[](int i) const { return places_ >> (16 * i) & 0xffff; }

 private:
  std::uint64_t places_;
};

// Returns a vector composed of pieces of kPiece table entries, each with its own position, starting at entry `from` of
// all pieces. If a piece is larger than a vector, returns part of it.
template <int kPiece, class D, class T>
HWY_INLINE hn::Vec<D> load_pieces(D d, const T* table, FourPlaces places, int from) {
  if constexpr (hn::MaxLanes(d) <= kPiece) {
    return hn::LoadU(d, table + places[from / kPiece] + from % kPiece);
  } else {
    const hn::Half<D> half;
    const auto low = load_pieces<kPiece>(half, table, places, from);
    return hn::Combine(d, load_pieces<kPiece>(half, table, places, from + static_cast<int>(hn::MaxLanes(half))), low);
  }
}

}  // namespace ggufmill::simd
