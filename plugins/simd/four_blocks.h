#pragma once
// Reductions of four blocks at a time. Their results are in the lanes of each 128-bit part, so that one division serves
// four blocks.

#include "plugins/simd/bytes.h"

namespace ggufmill::simd {

// Combines all lanes of each vector. Returns the result of a in lanes 0, 4, ..., that of b in lanes 1, 5, ..., and so
// on.
template <class Combine>
HWY_INLINE Floats reduce_four(Floats a, Floats b, Floats c, Floats d, const Combine& combine) {
  const hn::RepartitionToWide<decltype(kFloats)> wide{};
  const auto ab = hn::BitCast(wide, combine(hn::InterleaveLower(kFloats, a, b), hn::InterleaveUpper(kFloats, a, b)));
  const auto cd = hn::BitCast(wide, combine(hn::InterleaveLower(kFloats, c, d), hn::InterleaveUpper(kFloats, c, d)));
  Floats all = combine(hn::BitCast(kFloats, hn::InterleaveLower(wide, ab, cd)),
                       hn::BitCast(kFloats, hn::InterleaveUpper(wide, ab, cd)));
#if HWY_TARGET == HWY_AVX3
  all = combine(all, Floats{_mm512_shuffle_f32x4(all.raw, all.raw, _MM_SHUFFLE(2, 3, 0, 1))});
#endif
  if constexpr (kLanes > 4) all = combine(all, hn::ConcatLowerUpper(kFloats, all, all));
  return all;
}

// True if the value of each block is in a range where its inverse and products with it are normal numbers.
inline bool are_usual(Floats values) {
  const Floats sizes = hn::Abs(values);
  return all(hn::And(sizes > floats(0x1p-100f), sizes < floats(0x1p100f)));
}

// Stores the values of lanes 0 to 3 as the scales of four blocks.
template <class Block>
void store_halves(Floats values, Block* blocks) {
  alignas(64) std::uint32_t halves[kLanes];
  hn::Store(floats_to_half(values), kWords, halves);
  for (int i = 0; i < 4; ++i) {
    blocks[i].d.bytes[0] = static_cast<std::uint8_t>(halves[i]);
    blocks[i].d.bytes[1] = static_cast<std::uint8_t>(halves[i] >> 8);
  }
}

// Stores the lowest byte of each of 32 levels, which are from -128 to 127.
inline void store_32_bytes(const Ints* levels, std::uint8_t* bytes) {
#if HWY_TARGET == HWY_AVX2
  const __m256i low = _mm256_packs_epi32(levels[0].raw, levels[1].raw);
  const __m256i high = _mm256_packs_epi32(levels[2].raw, levels[3].raw);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes),
                      _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
#else
  for (std::size_t at = 0; at < 32; at += kLanes) store_bytes(as_words(levels[at / kLanes]), bytes + at);
#endif
}

}  // namespace ggufmill::simd
