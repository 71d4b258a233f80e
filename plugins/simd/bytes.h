#pragma once
// Conversion between levels as bytes in memory and as integers in lanes.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

inline constexpr hn::Rebind<std::uint8_t, decltype(kFloats)> kBytes{};
inline constexpr hn::Rebind<std::int8_t, decltype(kFloats)> kSignedBytes{};

// Returns a pointer to byte `offset` of a block, for loads that begin before the field they read.
template <class Block>
const std::uint8_t* bytes_from(const Block& block, std::size_t offset) {
  return reinterpret_cast<const std::uint8_t*>(&block) + offset;
}

// Loads kLanes bytes, unaligned.
inline Ints load_signed(const std::uint8_t* bytes) {
  return hn::PromoteTo(kInts, hn::BitCast(kSignedBytes, hn::LoadU(kBytes, bytes)));
}
inline Words load_bytes(const std::uint8_t* bytes) { return hn::PromoteTo(kWords, hn::LoadU(kBytes, bytes)); }

// Stores the lowest byte of each word.
inline void store_bytes(Words value, std::uint8_t* bytes) { hn::StoreU(hn::TruncateTo(kBytes, value), kBytes, bytes); }

}  // namespace ggufmill::simd
