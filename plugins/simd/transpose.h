#pragma once
// Transposes consecutive blocks to one block per lane, and back. Pieces of 16 bytes from four blocks are transposed
// within the 128-bit parts of registers: part p of a register contains data of blocks 4p to 4p + 3.

#include <cstring>

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Loads four values of rows[4 * p], starting at value `at`, into each part p.
template <class D>
hn::Vec<D> load_parts(D d, const float* const* rows, std::size_t at) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return hn::LoadU(d, rows[0] + at);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_parts(half, rows + hn::MaxLanes(half), at), load_parts(half, rows, at));
  }
}

// Stores part p to 16 bytes of rows[4 * p], starting at byte `at`.
template <class D>
void store_parts(D d, hn::Vec<D> vector, std::uint8_t* const* rows, std::size_t at) {
  if constexpr (hn::MaxLanes(d) == 4) {
    hn::StoreU(hn::BitCast(hn::Repartition<std::uint8_t, D>(), vector), hn::Repartition<std::uint8_t, D>(),
               rows[0] + at);
  } else {
    const hn::Half<D> half;
    store_parts(half, hn::LowerHalf(half, vector), rows, at);
    store_parts(half, hn::UpperHalf(half, vector), rows + hn::MaxLanes(half), at);
  }
}

// Transposes the 4 x 4 values of each 128-bit part.
inline void transpose_parts(Floats& a, Floats& b, Floats& c, Floats& d) {
  const hn::RepartitionToWide<decltype(kFloats)> wide{};
  const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(kFloats, a, b));
  const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(kFloats, a, b));
  const auto cd_low = hn::BitCast(wide, hn::InterleaveLower(kFloats, c, d));
  const auto cd_high = hn::BitCast(wide, hn::InterleaveUpper(kFloats, c, d));
  a = hn::BitCast(kFloats, hn::InterleaveLower(wide, ab_low, cd_low));
  b = hn::BitCast(kFloats, hn::InterleaveUpper(wide, ab_low, cd_low));
  c = hn::BitCast(kFloats, hn::InterleaveLower(wide, ab_high, cd_high));
  d = hn::BitCast(kFloats, hn::InterleaveUpper(wide, ab_high, cd_high));
}

// Sets lanes[kLanes * i + lane] = rows[lane][i] for i < count, where count is a multiple of 4. `lanes` must be aligned
// to a vector.
inline void rows_to_lanes(const float* const* rows, int count, float* lanes) {
  for (int i = 0; i < count; i += 4, lanes += 4 * kLanes) {
    const auto at = static_cast<std::size_t>(i);
    Floats a = load_parts(kFloats, rows, at);
    Floats b = load_parts(kFloats, rows + 1, at);
    Floats c = load_parts(kFloats, rows + 2, at);
    Floats d = load_parts(kFloats, rows + 3, at);
    transpose_parts(a, b, c, d);
    hn::Store(a, kFloats, lanes);
    hn::Store(b, kFloats, lanes + kLanes);
    hn::Store(c, kFloats, lanes + 2 * kLanes);
    hn::Store(d, kFloats, lanes + 3 * kLanes);
  }
}

// Sets bytes rows[lane][4 * i ... 4 * i + 3] to the word lanes[kLanes * i + lane], little-endian, for i < count, where
// count is a multiple of 4.
inline void lanes_to_rows(const std::uint32_t* lanes, int count, std::uint8_t* const* rows) {
  for (int i = 0; i < count; i += 4, lanes += 4 * kLanes) {
    const std::size_t at = std::size_t{4} * static_cast<std::size_t>(i);
    Floats a = as_floats(hn::Load(kWords, lanes));
    Floats b = as_floats(hn::Load(kWords, lanes + kLanes));
    Floats c = as_floats(hn::Load(kWords, lanes + 2 * kLanes));
    Floats d = as_floats(hn::Load(kWords, lanes + 3 * kLanes));
    transpose_parts(a, b, c, d);
    store_parts(kFloats, a, rows, at);
    store_parts(kFloats, b, rows + 1, at);
    store_parts(kFloats, c, rows + 2, at);
    store_parts(kFloats, d, rows + 3, at);
  }
}

}  // namespace ggufmill::simd
