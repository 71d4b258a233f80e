#pragma once
// Appends some lanes of vectors to lists.

#include <array>
#include <bit>
#include <cstring>

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

#if HWY_TARGET == HWY_AVX2
// Places of the bits that are set in a byte, in order; then zeros.
inline constexpr auto kPlacesOfBits = [] {
  std::array<std::array<std::uint8_t, 8>, 256> places{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::size_t count = 0;
    for (std::uint8_t bit = 0; bit < 8; ++bit)
      if (byte >> bit & 1) places[byte][count++] = bit;
  }
  return places;
}();
#endif

// Writes those lanes of two vectors that are set in `lanes` to a list each, in order. The lists must have room for a
// full vector. Returns the number of lanes.
HWY_INLINE std::size_t append_lanes(unsigned lanes, Words a, std::uint32_t* list_a, Words b, std::uint32_t* list_b) {
#if HWY_TARGET == HWY_AVX3
  const auto mask = static_cast<__mmask16>(lanes);
  _mm512_storeu_si512(list_a, _mm512_maskz_compress_epi32(mask, a.raw));
  _mm512_storeu_si512(list_b, _mm512_maskz_compress_epi32(mask, b.raw));
#elif HWY_TARGET == HWY_AVX2
  std::uint64_t places;
  std::memcpy(&places, kPlacesOfBits[lanes].data(), sizeof places);
  const __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(places)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(list_a), _mm256_permutevar8x32_epi32(a.raw, order));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(list_b), _mm256_permutevar8x32_epi32(b.raw, order));
#else
  alignas(16) std::uint32_t of_a[kLanes], of_b[kLanes];
  hn::Store(a, kWords, of_a);
  hn::Store(b, kWords, of_b);
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    *list_a++ = of_a[std::countr_zero(left)];
    *list_b++ = of_b[std::countr_zero(left)];
  }
#endif
  return static_cast<std::size_t>(std::popcount(lanes));
}

}  // namespace ggufmill::simd
