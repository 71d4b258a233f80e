#pragma once
// Applies signs that are stored as bits.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Inverts the sign in lanes whose bit is set. Lane 0 uses bit i % 32, and the other lanes use the following bits.
inline Floats flip_signs(Floats values, std::uint32_t bits, int i) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const Words shifts = words(31 - static_cast<std::uint32_t>(i % 32)) - hn::Iota(kWords, 0);
  const Words turned = words(bits) << shifts;
#if HWY_TARGET == HWY_AVX3
  return as_floats(Words{_mm512_ternarylogic_epi32(as_words(values).raw, turned.raw, words(0x80000000u).raw, 0x78)});
#else
  return as_floats(as_words(values) ^ (turned & words(0x80000000u)));
#endif
#else
  alignas(16) static constexpr std::uint32_t kBits[4] = {1, 2, 4, 8};
  const auto set = hn::TestBit(words(bits >> (i % 32)), hn::Load(kWords, kBits));
  return as_floats(as_words(values) ^ hn::IfThenElseZero(set, words(0x80000000u)));
#endif
}

}  // namespace ggufmill::simd
