#pragma once
// Search for the best neighbour of a point (reference::nearest_neighbour), with the neighbours in the lanes. Each term
// of a neighbour's sum depends on one level only, so the terms are computed once for all levels, and then looked up.

#include <cfloat>

#include "plugins/simd/lattice_table.h"
#include "plugins/simd/pick.h"

namespace ggufmill::simd {

// Values of the levels, padded to Points<Space>::kPadded entries and repeated to fill the widest vector.
struct LevelValues {
  alignas(64) float at[16];
};

// 1, 3, 5, ...: half steps.
template <class Space>
inline constexpr LevelValues kOddValues = [] {
  LevelValues values{};
  for (int i = 0; i < 16; ++i) values.at[i] = static_cast<float>(2 * (i % Points<Space>::kPadded) + 1);
  return values;
}();

// Returns the value of coordinate i of points.
template <class Space>
HWY_INLINE Floats odd_value(Words points, int i) {
#if GGUFMILL_SIMD_PICKS
  return pick(hn::Load(kFloats, kOddValues<Space>.at), hn::ShiftRightSame(points, 4 * i));
#else
  const Words level = hn::ShiftRightSame(points, 4 * i) & words(Points<Space>::kPadded - 1);
  return to_floats(as_ints(level + level + words(1)));
#endif
}

// Returns the mask as bits; bit l is lane l.
inline unsigned mask_bits(Mask mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(kFloats, mask, bytes);
  return bytes[0] | unsigned{bytes[1]} << 8;
}

// A point that is not in the book and has to be moved to a neighbour.
struct StrayPoint {
  const float* x;  // kDims values; readable up to kLanes values
  const float* weight;
  const LevelValues& values;
  float scale;  // factor of the values
  LatticeEntry entry;
};

// Stores in `nearest` the neighbour with the least sum of weight * (scale * value - x)^2; the first one on a tie.
// Returns false, and writes nothing, if no sum is below FLT_MAX.
#if GGUFMILL_SIMD_PICKS

inline std::size_t first_bit(unsigned bits) { return static_cast<std::size_t>(__builtin_ctz(bits)); }

// Returns the lowest list position of the results in `lanes`, of which at least one is set. The result in `lane`
// belongs to vector from[first + lane] of the list; each vector has kStep positions.
template <std::size_t kStep>
std::size_t first_place(unsigned lanes, std::size_t first, Words from) {
  alignas(64) std::uint32_t vectors[kLanes];
  hn::Store(from, kWords, vectors);
  std::size_t place = SIZE_MAX;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::size_t lane = first_bit(lanes);
    place = std::min(place, vectors[first + lane] * kStep + lane);
  }
  return place;
}

template <class Space>
HWY_INLINE bool nearest_point(const LatticeView<Space>& lattice, const StrayPoint& point, std::uint32_t& nearest) {
  constexpr int kPadded = Points<Space>::kPadded;
  constexpr int kInVector = static_cast<int>(kLanes) / kPadded;  // coordinates per vector
  constexpr int kVectors = Space::kDims / kInVector;
  const Floats x = hn::LoadU(kFloats, point.x), weight = hn::LoadU(kFloats, point.weight);
  const Floats scaled = floats(point.scale) * hn::Load(kFloats, point.values.at);
  Floats terms[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const Words coordinate = hn::ShiftRight < kPadded == 4
                                 ? 2
                                 : 3 > (hn::Iota(kWords, 0)) + words(static_cast<std::uint32_t>(v * kInVector));
    const Floats difference = scaled - pick(x, coordinate);
    terms[v] = pick(weight, coordinate) * difference * difference;
  }
  const std::uint32_t* list = lattice.words + point.entry.first_vector() * kLanes;
  Floats least = floats(FLT_MAX);
  Words from = words(0);
  for (std::uint32_t vector = 0; vector < point.entry.vectors(); ++vector) {
    const Words points = hn::Load(kWords, list + vector * kLanes);
    Floats sum = pick(terms[0], points);
    for (int i = 1; i < Space::kDims; ++i) sum = sum + pick(terms[i / kInVector], hn::ShiftRightSame(points, 4 * i));
    const Mask nearer = sum < least;
    least = choose(nearer, sum, least);
    from = choose(nearer, words(vector), from);
  }
  const Mask equal = hn::And(least == hn::MinOfLanes(kFloats, least), least < floats(FLT_MAX));
  const unsigned lanes = mask_bits(equal);
  if (HWY_UNLIKELY(lanes == 0)) return false;
  nearest = list[point.entry.vectors() == 1 ? first_bit(lanes) : first_place<kLanes>(lanes, 0, from)];
  return true;
}

#else

template <class Space>
bool nearest_point(const LatticeView<Space>& lattice, const StrayPoint& point, std::uint32_t& nearest) {
  constexpr int kPadded = Points<Space>::kPadded;
  float terms[Space::kDims][kPadded];
  for (int i = 0; i < Space::kDims; ++i) {
    for (int level = 0; level < kPadded; ++level) {
      const float difference = point.scale * point.values.at[level] - point.x[i];
      terms[i][level] = point.weight[i] * difference * difference;
    }
  }
  const std::uint32_t* list = lattice.words + point.entry.first_vector() * kLanes;
  float least = FLT_MAX;
  for (std::uint32_t n = 0; n < point.entry.vectors() * kLanes; ++n) {
    float sum = 0;
    for (int i = 0; i < Space::kDims; ++i) sum += terms[i][list[n] >> (4 * i) & (kPadded - 1)];
    if (!(sum < least)) continue;
    least = sum;
    nearest = list[n];
  }
  return least < FLT_MAX;
}

#endif

}  // namespace ggufmill::simd
