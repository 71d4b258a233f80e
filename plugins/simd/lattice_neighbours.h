#pragma once
// Moves stray points of many lanes to their best neighbours, one or two points at a time.

#include "plugins/simd/lattice_search.h"

namespace ggufmill::simd {

#if HWY_TARGET == HWY_AVX3

// Eight 32-bit lanes for each of two points.
inline constexpr hn::Half<decltype(kFloats)> kHalfFloats{};
inline constexpr hn::Half<decltype(kWords)> kHalfWords{};

// Returns the minimum of each half, in all lanes of this half.
inline Floats least_of_halves(Floats value) {
  value = hn::Min(value, hn::Shuffle2301(value));
  value = hn::Min(value, hn::Shuffle1032(value));
  return hn::Min(value, Floats{_mm512_shuffle_f32x4(value.raw, value.raw, _MM_SHUFFLE(2, 3, 0, 1))});
}

// Like nearest_point(), for two points with the same level values and with four coordinates of eight levels each.
// kShort: each point has a single vector of neighbours.
template <bool kShort, class Space>
HWY_INLINE bool nearest_pair(const LatticeView<Space>& lattice, const StrayPoint& a, const StrayPoint& b,
                             std::uint32_t& nearest_a, std::uint32_t& nearest_b) {
  static_assert(Space::kDims == 4 && Points<Space>::kPadded == 8);
  alignas(64) static constexpr std::uint32_t kUpperHalf[16] = {
      0, 0, 0, 0, 0, 0, 0, 0, 0x8888, 0x8888, 0x8888, 0x8888, 0x8888, 0x8888, 0x8888, 0x8888};
  const auto both = [](const float* of_a, const float* of_b) {
    return hn::Combine(kFloats, hn::LoadDup128(kHalfFloats, of_b), hn::LoadDup128(kHalfFloats, of_a));
  };
  const Floats x = both(a.x, b.x), weight = both(a.weight, b.weight);
  const Floats scale = hn::Combine(kFloats, hn::Set(kHalfFloats, b.scale), hn::Set(kHalfFloats, a.scale));
  const Floats scaled = scale * hn::Load(kFloats, a.values.at);
  const auto term = [&](Floats value, Floats value_weight) {
    const Floats difference = scaled - value;
    return value_weight * difference * difference;
  };
  const Floats terms[4] = {
      term(hn::Broadcast<0>(x), hn::Broadcast<0>(weight)), term(hn::Broadcast<1>(x), hn::Broadcast<1>(weight)),
      term(hn::Broadcast<2>(x), hn::Broadcast<2>(weight)), term(hn::Broadcast<3>(x), hn::Broadcast<3>(weight))};
  const std::uint32_t* list_a = lattice.words + kLanes * a.entry.first_vector();
  const std::uint32_t* list_b = lattice.words + kLanes * b.entry.first_vector();
  const auto sum_of = [&](std::size_t place_a, std::size_t place_b) {
    const auto of_a = hn::Load(kHalfWords, list_a + place_a), of_b = hn::Load(kHalfWords, list_b + place_b);
    const Words points = hn::Combine(kWords, of_b, of_a) | hn::Load(kWords, kUpperHalf);
    const Floats two = pick(terms[0], points) + pick(terms[1], hn::ShiftRight<4>(points));
    return two + pick(terms[2], hn::ShiftRight<8>(points)) + pick(terms[3], hn::ShiftRight<12>(points));
  };
  const Floats none = floats(FLT_MAX);
  const Floats first = lesser(sum_of(0, 0), none), second = lesser(sum_of(8, 8), none);
  if constexpr (kShort) {
    const Floats least = least_of_halves(hn::Min(first, second));
    const Mask some = least < none;
    const unsigned in_first = mask_bits(hn::And(first == least, some));
    const unsigned in_second = mask_bits(hn::And(second == least, some));
    const unsigned places_a = (in_first & 0xff) | (in_second & 0xff) << 8;
    const unsigned places_b = in_first >> 8 | (in_second & 0xff00);
    if (HWY_UNLIKELY(places_a == 0 || places_b == 0)) return false;
    nearest_a = list_a[first_bit(places_a)];
    nearest_b = list_b[first_bit(places_b)];
    return true;
  }
  const std::uint32_t last_a = 2 * a.entry.vectors() - 1, last_b = 2 * b.entry.vectors() - 1;  // in groups of eight
  Mask nearer = second < first;
  Floats least = choose(nearer, second, first);
  Words from = choose(nearer, words(1), words(0));
  // A list that has ended repeats its last eight neighbours, which cannot improve the result.
  for (std::uint32_t eight = 2; eight <= std::max(last_a, last_b); ++eight) {
    const Floats sum = sum_of(8 * std::min(eight, last_a), 8 * std::min(eight, last_b));
    nearer = sum < least;
    least = choose(nearer, sum, least);
    from = choose(nearer, words(eight), from);
  }
  const unsigned lanes = mask_bits(hn::And(least == least_of_halves(least), least < none));
  if (HWY_UNLIKELY((lanes & 0xff) == 0 || lanes >> 8 == 0)) return false;
  nearest_a = list_a[first_place<8>(lanes & 0xff, 0, from)];
  nearest_b = list_b[first_place<8>(lanes >> 8, 8, from)];
  return true;
}

#endif

// Writes the best neighbour of point_of(lane) to nearest[lane] for each lane in `stray`. `entries` are the table
// entries of the points. Returns false if a point has no such neighbour (reference::kNoBookPoint).
template <class Space, class PointOf>
HWY_INLINE bool find_neighbours(const LatticeView<Space>& lattice, Mask stray, [[maybe_unused]] Words entries,
                                const PointOf& point_of, std::uint32_t* nearest) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (Points<Space>::kPairs) {
    const auto take = [&](unsigned lanes, auto is_short) {
      while (lanes != 0) {
        const std::size_t lane = first_bit(lanes);
        lanes &= lanes - 1;
        const std::size_t other = lanes != 0 ? first_bit(lanes) : lane;
        lanes &= lanes - 1;
        const StrayPoint a = point_of(lane), b = point_of(other);
        if (!nearest_pair<is_short.value>(lattice, a, b, nearest[lane], nearest[other])) return false;
      }
      return true;
    };
    // Short and long lists are processed separately, so that no branch depends on the length of a list.
    const Mask is_long = hn::And(stray, mask_of((entries & words(LatticeEntry::kVectors)) > words(1)));
    return take(mask_bits(hn::AndNot(is_long, stray)), std::true_type()) && take(mask_bits(is_long), std::false_type());
  }
#endif
  for (unsigned lanes = mask_bits(stray); lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::size_t>(__builtin_ctz(lanes));
    if (!nearest_point(lattice, point_of(lane), nearest[lane])) return false;
  }
  return true;
}

}  // namespace ggufmill::simd
