#pragma once
// ik::trellis_values() in vectors.

#include "plugins/ik/trellis.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// The factor of the generator to the power of 1 to kCount, repeated.
template <int kCount>
struct TrellisPowers {
  alignas(64) std::uint32_t at[16];

  constexpr TrellisPowers() : at() {
    for (int i = 0; i < 16; ++i) at[i] = (i % kCount == 0 ? 1 : at[i - 1]) * ik::kTrellisFactor;
  }
};
template <int kCount>
inline constexpr TrellisPowers<kCount> kTrellisPowers{};

// Returns values k, k + 1, ... of points of kCount values; the last value of a point is followed by the first one of
// the next. Each lane has the index of its point, to which the offset of the book was added.
template <int kCount, class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> trellis_values(D words, hn::Vec<D> indices, int k) {
  const hn::RebindToSigned<D> ints;
  const auto four = indices * hn::Load(words, kTrellisPowers<kCount>.at + k) & hn::Set(words, 0x3f3f3f3f);
  const auto two = four + hn::ShiftRight<16>(four);
  return hn::BitCast(ints, (two + hn::ShiftRight<8>(two)) & hn::Set(words, 255)) - hn::Set(ints, 126);
}

}  // namespace ggufmill::simd
