#pragma once
// Tables of levels in lanes: lookup of entries, and the level nearest to a value.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// A table of floats to look up by the lowest bits of words. Entries after the last one repeat it.
template <std::size_t kSize>
struct LookupTable {
  static constexpr std::size_t kEntries = kSize < 16 ? 16 : kSize;
  alignas(64) float values[kEntries];

  Floats operator[](Words index) const {
#if HWY_TARGET == HWY_AVX3
    if constexpr (kEntries == 16) return Floats{_mm512_permutexvar_ps(index.raw, _mm512_load_ps(values))};
    if constexpr (kEntries == 32) return of_two(index, 0);
    if constexpr (kEntries == 64)
      return Floats{_mm512_mask_blend_ps(_mm512_test_epi32_mask(index.raw, _mm512_set1_epi32(32)), of_two(index, 0).raw,
                                         of_two(index, 32).raw)};
#elif HWY_TARGET == HWY_AVX2
    return of_parts < kSize <= 8 ? 8 : kSize > (index, 0);
#else
    alignas(64) std::uint32_t at[kLanes];
    alignas(64) float found[kLanes];
    hn::Store(index, kWords, at);
    for (std::size_t lane = 0; lane < kLanes; ++lane) found[lane] = values[at[lane]];
    return hn::Load(kFloats, found);
#endif
  }

 private:
#if HWY_TARGET == HWY_AVX3
  Floats of_two(Words index, int first) const {
    return Floats{
        _mm512_permutex2var_ps(_mm512_load_ps(values + first), index.raw, _mm512_load_ps(values + first + 16))};
  }
#elif HWY_TARGET == HWY_AVX2
  // Looks up one of kCount entries from `first` on; bits 3 and up choose the half.
  template <std::size_t kCount>
  Floats of_parts(Words index, std::size_t first) const {
    if constexpr (kCount == 8) {
      return Floats{_mm256_permutevar8x32_ps(_mm256_load_ps(values + first), index.raw)};
    } else {
      const Floats low = of_parts<kCount / 2>(index, first), high = of_parts<kCount / 2>(index, first + kCount / 2);
      const Words sign = hn::ShiftLeft<32 - std::bit_width(kCount - 1)>(index);
      return Floats{_mm256_blendv_ps(low.raw, high.raw, as_floats(sign).raw)};
    }
  }
#endif
};

// Coefficients of a polynomial that is about the number of entries below x; one half more, so that it is between j and
// j + 1 at the border between entries j and j + 1. Only a guess: it need not be exact, and it is checked below.
template <std::size_t kSize>
inline constexpr std::array<float, 6> kGuess{};
template <>
inline constexpr std::array<float, 6> kGuess<16>{7.888f, 0.08121f, -4.606e-6f, -1.399e-6f};

// A table of kSize levels.
template <std::size_t kSize>
class LevelTable {
 public:
  // `table` has ascending integers; `shift` is what was added to those that kGuess is made for.
  template <class Table>
  constexpr explicit LevelTable(const Table& table, int shift = 0) : values_(), borders_(), shift_(shift) {
    for (std::size_t i = 0; i < values_.kEntries; ++i) {
      const bool is_last = i + 1 >= kSize;
      values_.values[i] = table[is_last ? kSize - 1 : i];
      borders_.values[i] = is_last ? std::numeric_limits<float>::infinity() : border(table[i], table[i + 1]);
    }
  }

  // Returns the level nearest to each lane's value; of two at the same distance, the greater one; 0 for NaN.
  Words level(Floats x) const {
    const Floats inside = lesser(greater(x, floats(values_.values[0])), floats(values_.values[kSize - 1]));
    const Words low = as_words(hn::ConvertTo(kInts, polynomial(inside - floats(static_cast<float>(shift_)))));
    return low - hn::BitCast(kWords, hn::VecFromMask(kFloats, inside >= borders_[low]));
  }
  Floats value(Words level) const { return values_[level]; }
  // Returns the least value that is nearer to the next level; infinity for the last level.
  Floats border(Words level) const { return borders_[level]; }

  constexpr float value(std::size_t level) const { return values_.values[level < kSize ? level : kSize - 1]; }
  constexpr float border(std::size_t level) const { return borders_.values[level < kSize ? level : kSize - 1]; }

  // True if the guess is the level or one below for all values between the first and the last entry. The polynomial
  // changes by less than kSlack from one of the values that are tried to the next.
  constexpr bool guesses_well() const {
    constexpr float kSlack = 0.06f;
    std::size_t level = 0;
    for (float x = values_.values[0]; x <= values_.values[kSize - 1]; x += 0.125f) {
      while (x >= borders_.values[level]) ++level;
      float guess = 0;
      for (std::size_t i = kGuess<kSize>.size(); i-- > 0;)
        guess = guess * (x - static_cast<float>(shift_)) + kGuess<kSize>[i];
      const auto exact = static_cast<float>(level);
      if (guess < exact - 1 + kSlack || guess > exact + 1 - kSlack) return false;
    }
    return true;
  }

 private:
  // Returns the least x for which `high` is nearer than `low`, as the table computes it. Differences are rounded, so
  // this is not always halfway. The bits of floats are ordered like integers, apart from the sign.
  static constexpr float border(float low, float high) {
    const auto number_of = [](float x) {
      const auto bits = std::bit_cast<std::int32_t>(x);
      return bits < 0 ? std::numeric_limits<std::int32_t>::min() - bits : bits;
    };
    const auto float_of = [](std::int32_t number) {
      return std::bit_cast<float>(number < 0 ? std::numeric_limits<std::int32_t>::min() - number : number);
    };
    std::int32_t below = number_of(low), above = number_of(high);
    while (std::int64_t{above} - below > 1) {
      const auto middle = static_cast<std::int32_t>((std::int64_t{below} + above) / 2);
      const float x = float_of(middle);
      (x - low < high - x ? below : above) = middle;
    }
    return float_of(above);
  }

  static Floats polynomial(Floats x) {
    constexpr auto& kC = kGuess<kSize>;
    if constexpr (kC[2] == 0) return x * floats(kC[1]) + floats(kC[0]);
    const Floats square = x * x;
    Floats odd = square * floats(kC[3]) + floats(kC[1]), even = square * floats(kC[2]) + floats(kC[0]);
    if constexpr (kC[4] != 0) {
      const Floats fourth = square * square;
      odd = odd + fourth * floats(kC[5]);
      even = even + fourth * floats(kC[4]);
    }
    return odd * x + even;
  }

  LookupTable<kSize> values_, borders_;
  int shift_;
};

}  // namespace ggufmill::simd
