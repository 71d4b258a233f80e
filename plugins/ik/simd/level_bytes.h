#pragma once
// Decoding of super-blocks of levels. The values of all 256 levels are looked up as bytes first; then each sub-block is
// shifted, if it uses the shifted table, and scaled.

#include <array>
#include <type_traits>

#include "plugins/ik/simd/level_tables.h"
#include "plugins/simd/block_fields.h"
#include "plugins/simd/bytes.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {

// Vectors of up to 32 bytes.
inline constexpr hn::CappedTag<std::uint8_t, 32> kByteVectors{};
using ByteVector = hn::Vec<decltype(kByteVectors)>;
inline constexpr int kByteStep = static_cast<int>(hn::MaxLanes(kByteVectors));

inline ByteVector load_levels(const std::uint8_t* bytes) { return hn::LoadU(kByteVectors, bytes); }

// Return the bits of each byte from bit kShift on that are in kMask.
template <int kShift, std::uint8_t kMask>
HWY_INLINE ByteVector bits_of(ByteVector bytes) {
  const hn::RepartitionToWide<decltype(kByteVectors)> wide{};
  const auto shifted = hn::BitCast(kByteVectors, hn::ShiftRight<kShift>(hn::BitCast(wide, bytes)));
  return hn::And(shifted, hn::Set(kByteVectors, kMask));
}
// The same, moved to bit kTo.
template <int kShift, std::uint8_t kMask, int kTo>
HWY_INLINE ByteVector bits_to(ByteVector bytes) {
  const hn::RepartitionToWide<decltype(kByteVectors)> wide{};
  return hn::BitCast(kByteVectors, hn::ShiftLeft<kTo>(hn::BitCast(wide, bits_of<kShift, kMask>(bytes))));
}

// Calls take(i, bytes) with the bits from bit 2 * k on of 64 bytes, for the levels from i on: four parts of 32.
template <class Take>
HWY_INLINE void each_crumb(const std::uint8_t* bytes, const Take& take) {
  GGUFMILL_UNROLL
  for (int i = 0; i < 64; i += kByteStep) {
    const ByteVector four = load_levels(bytes + i);
    const int at = i / 32 * 128 + i % 32;
    take(at, bits_of<0, 3>(four));
    take(at + 32, bits_of<2, 3>(four));
    take(at + 64, bits_of<4, 3>(four));
    take(at + 96, bits_of<6, 3>(four));
  }
}

// Calls take(i, levels) with the nibbles of 128 bytes, in 32s.
template <class Take>
HWY_INLINE void each_nibble(const std::uint8_t* bytes, const Take& take) {
  GGUFMILL_UNROLL
  for (int i = 0; i < 128; i += kByteStep) {
    const ByteVector two = load_levels(bytes + i);
    const int at = i / 32 * 64 + i % 32;
    take(at, bits_of<0, 15>(two));
    take(at + 32, bits_of<4, 15>(two));
  }
}

// Calls take(i, levels) with the nibbles of 128 bytes, in 16s: the low ones of 16 bytes, followed by the high ones.
template <class Take>
HWY_INLINE void each_split_nibble(const std::uint8_t* bytes, const Take& take) {
  const hn::Full128<std::uint8_t> part{};
  const hn::Full128<std::uint16_t> wide{};
  const auto mask = hn::Set(part, 15);
  GGUFMILL_UNROLL
  for (int i = 0; i < 128; i += 16) {
    const auto two = hn::LoadU(part, bytes + i);
    take(2 * i, hn::And(two, mask));
    take(2 * i + 16, hn::And(hn::BitCast(part, hn::ShiftRight<4>(hn::BitCast(wide, two))), mask));
  }
}

// Returns bit i / 32 of 32 bytes at kTo, for the levels from i on.
template <int kTo>
HWY_INLINE ByteVector high_bit(const std::uint8_t* bytes, int i) {
  const hn::RepartitionToWide<decltype(kByteVectors)> wide{};
  const auto loaded = hn::BitCast(wide, load_levels(bytes + i % 32));
  const auto moved = hn::BitCast(kByteVectors, hn::ShiftLeft<kTo>(hn::ShiftRightSame(loaded, i / 32)));
  return hn::And(moved, hn::Set(kByteVectors, 1u << kTo));
}

// A table of up to 32 values, as bytes.
template <std::size_t kSize>
class ByteTable {
 public:
  constexpr explicit ByteTable(const ik::Table<kSize>& table) : values_() {
    for (std::size_t i = 0; i < kEntries; ++i) values_[i] = static_cast<std::int8_t>(table[i % kSize]);
  }

  // Returns the values of levels below kSize, for a vector of bytes.
  template <class Vector>
  HWY_INLINE Vector operator[](Vector levels) const {
    const hn::DFromV<Vector> bytes{};
    const Vector low = hn::TableLookupBytes(part(bytes, 0), levels);
    if constexpr (kSize <= 16) return low;
    const Vector high = hn::TableLookupBytes(part(bytes, 16 % kEntries), hn::And(levels, hn::Set(bytes, 15)));
    return hn::IfThenElse(levels < hn::Set(bytes, 16), low, high);
  }

 private:
  static constexpr std::size_t kEntries = kSize < 16 ? 16 : kSize;

  template <class Bytes>
  hn::Vec<Bytes> part(Bytes bytes, std::size_t first) const {
    return hn::BitCast(bytes, hn::LoadDup128(hn::RebindToSigned<Bytes>(), values_.data() + first));
  }

  alignas(16) std::array<std::int8_t, kEntries> values_;
};

inline constexpr ByteTable<4> kBytes2(ik::kValues2.plain);
inline constexpr ByteTable<8> kBytes3(ik::kValues3.plain);
inline constexpr ByteTable<16> kBytes4(ik::kValues4.plain);
inline constexpr ByteTable<32> kBytes5(ik::kValues5.plain);

// The values of the levels of a super-block.
struct ValueBytes {
  alignas(64) std::uint8_t at[256];

  template <class Vector>
  HWY_INLINE void set(int i, Vector values) {
    hn::Store(values, hn::DFromV<Vector>(), at + i);
  }
};

// The offset and the scale of the values of kCount sub-blocks.
template <int kCount>
struct SubScales {
  SubFloats<kCount> scale, shift;

  // Sets the shifts from one bit for each sub-block.
  template <std::size_t kSize>
  void set_shifts(std::uint32_t bits, const ik::Tables<kSize>& tables) {
    const Floats by = floats(tables.shifted[0] - tables.plain[0]);
    shift.set([&](int i) {
      const Words bit = (words(bits) >> hn::Iota(kWords, static_cast<std::uint32_t>(i))) & words(1);
      return to_floats(as_ints(bit)) * by;
    });
  }
  // Writes x for the values of a super-block.
  HWY_INLINE void write(const ValueBytes& values, float* x) const {
    constexpr int kSize = 256 / kCount, kStep = static_cast<int>(kLanes);
    GGUFMILL_UNROLL16
    for (int b = 0; b < kCount; ++b)
      for (int i = b * kSize; i < (b + 1) * kSize; i += kStep)
        hn::StoreU(scale[b] * (to_floats(load_signed(values.at + i)) + shift[b]), kFloats, x + i);
  }
};

// Returns bytes of a word, from number i on.
inline Words bytes_of(std::uint64_t eight, int i) {
  using Part = std::conditional_t<kLanes == 4, std::uint32_t, std::uint64_t>;
  const hn::Repartition<Part, decltype(kBytes)> parts{};
  return hn::PromoteTo(kWords, hn::BitCast(kBytes, hn::Set(parts, static_cast<Part>(eight >> (8 * i)))));
}

inline Words word_of(std::uint32_t word, int first, int bits_each, std::uint32_t mask) {
  const Words at = hn::Iota(kWords, static_cast<std::uint32_t>(first)) * words(static_cast<std::uint32_t>(bits_each));
  return (words(word) >> at) & words(mask);
}

}  // namespace ggufmill::simd
