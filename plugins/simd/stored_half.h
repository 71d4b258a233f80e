#pragma once
// Loads the halves of blocks into lanes.

#include <cstring>

#include "plugins/reference/floats.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Returns the value of a half in all lanes, like reference::half_to_float. Uses the conversion instruction if it is
// available.
inline Floats half_of_bits(std::uint16_t bits) {
#if HWY_TARGET <= HWY_AVX2
  const hn::Rebind<std::uint16_t, decltype(kFloats)> shorts{};
  const hn::Rebind<hwy::float16_t, decltype(kFloats)> halves{};
  return hn::PromoteTo(kFloats, hn::BitCast(halves, hn::Set(shorts, bits)));
#else
  return floats(reference::half_to_float(bits));
#endif
}

inline Floats load_half(const reference::StoredHalf& half) {
  std::uint16_t bits;
  std::memcpy(&bits, half.bytes, sizeof bits);
  return half_of_bits(bits);
}

// Returns the values of two halves: the first one in even lanes, the second one in odd lanes.
inline Floats load_halves(const reference::StoredHalf* two) {
#if HWY_TARGET <= HWY_AVX2
  const hn::Rebind<hwy::float16_t, decltype(kFloats)> halves{};
  const hn::Repartition<std::uint32_t, decltype(halves)> pairs{};
  std::uint32_t bits;
  std::memcpy(&bits, two, sizeof bits);
  return hn::PromoteTo(kFloats, hn::BitCast(halves, hn::Set(pairs, bits)));
#else
  return hn::OddEven(floats(two[1].load()), floats(two[0].load()));
#endif
}

}  // namespace ggufmill::simd
