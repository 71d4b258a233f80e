#pragma once
// Finds the value nearest to x in reference::kIq4Values; the higher one on a tie, and the highest one for NaN.
//
// Differences of numbers this small and this close are exact, so the nearest value changes where x is halfway between
// two values, and every halfway point is exact as a float. Below a halfway point, the lower value is nearer; at it and
// above, the higher one is used.

#include <array>
#include <cstdint>

#include "plugins/reference/codebooks.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

inline constexpr std::array<float, 15> kIq4Halfways = [] {
  std::array<float, 15> halfways{};
  for (std::size_t i = 0; i < 15; ++i)
    halfways[i] = 0.5f * static_cast<float>(reference::kIq4Values[i] + reference::kIq4Values[i + 1]);
  return halfways;
}();

#if HWY_TARGET == HWY_AVX3

// Rounding x to a multiple of 8 decides all but one of the comparisons, because none of the 32 resulting buckets
// contains two halfway points.
struct Iq4Buckets {
  alignas(64) float halfway[32];
  alignas(64) float lower[32], higher[32];  // values on either side of the halfway point
  alignas(64) std::uint32_t lower_level[32], higher_level[32];

  static constexpr int bucket_of(float x) { return static_cast<int>((x + 4 + 128) / 8); }
};

inline constexpr Iq4Buckets kIq4Buckets = [] {
  Iq4Buckets table{};
  for (int bucket = 0; bucket < 32; ++bucket) {
    unsigned below = 0, here = 0;
    for (const float halfway : kIq4Halfways) {
      below += Iq4Buckets::bucket_of(halfway) < bucket;
      if (Iq4Buckets::bucket_of(halfway) != bucket) continue;
      ++here;
      table.halfway[bucket] = halfway;
    }
    table.lower_level[bucket] = below;
    table.higher_level[bucket] = below + here;
    table.lower[bucket] = reference::kIq4Values[below];
    table.higher[bucket] = reference::kIq4Values[below + here];
  }
  return table;
}();

class Iq4Place {
 public:
  explicit Iq4Place(Floats x) {
    const Floats inside = greater(lesser(x, floats(119)), floats(-128));
    bucket_ = as_words(inside * floats(0.125f) + floats(12582912.0f + 16.0f));
    upper_ = inside >= pick(kIq4Buckets.halfway);
  }

  Floats value() const { return choose(upper_, pick(kIq4Buckets.higher), pick(kIq4Buckets.lower)); }
  Words level() const { return choose(upper_, pick(kIq4Buckets.higher_level), pick(kIq4Buckets.lower_level)); }

 private:
  // The instruction uses only the lowest 5 bits of the bucket.
  Floats pick(const float* table) const {
    return Floats{_mm512_permutex2var_ps(_mm512_load_ps(table), bucket_.raw, _mm512_load_ps(table + 16))};
  }
  Words pick(const std::uint32_t* table) const {
    return Words{_mm512_permutex2var_epi32(_mm512_load_si512(table), bucket_.raw, _mm512_load_si512(table + 16))};
  }

  Words bucket_;
  Mask upper_;
};

#else

class Iq4Place {
 public:
  explicit Iq4Place(Floats x) : x_(x) {}

  Floats value() const {
    Floats value = floats(reference::kIq4Values[15]);
    for (std::size_t i = 15; i-- > 0;)
      value = choose(x_ < floats(kIq4Halfways[i]), floats(reference::kIq4Values[i]), value);
    return value;
  }
  Words level() const {
    Words level = words(15);
    for (std::size_t i = 15; i-- > 0;)
      level = choose(x_ < floats(kIq4Halfways[i]), words(static_cast<std::uint32_t>(i)), level);
    return level;
  }

 private:
  Floats x_;
};

#endif

}  // namespace ggufmill::simd
