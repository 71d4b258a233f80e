#pragma once
// Search for the best neighbour of a point (reference::nearest_neighbour), with the neighbours in the lanes. Each term
// of a neighbour's sum depends on one level only, so the terms are computed once for all levels, and then looked up.

#include <cfloat>

#include "plugins/simd/lattice_reach.h"
#include "plugins/simd/lattice_table.h"

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

// A point that is not in the book and has to be moved to a neighbour.
struct StrayPoint {
  const float* x;  // kDims values; readable up to kLanes values
  const float* weight;
  const LevelValues& values;
  float scale;  // factor of the values
  LatticeEntry entry;
};

// The result for a stray point.
struct Neighbour {
  std::uint32_t word = 0;
  float until = 0;  // see lattice_reach.h; set if it was asked for
};

// Finds the neighbour with the least sum of weight * (scale * value - x)^2; the first one on a tie. Returns false, and
// sets nothing, if no sum is below FLT_MAX. kReach: sets `until`.
#if GGUFMILL_SIMD_PICKS

inline std::size_t first_bit(unsigned bits) { return static_cast<std::size_t>(__builtin_ctz(bits)); }

// Returns the lowest list position of the results in `lanes`, of which at least one is set. The result in `lane`
// belongs to chunk from[first + lane] of the list; each chunk has kStep positions.
template <std::size_t kStep>
std::size_t first_place(unsigned lanes, std::size_t first, Words from) {
  alignas(64) std::uint32_t chunks[kLanes];
  hn::Store(from, kWords, chunks);
  std::size_t place = SIZE_MAX;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::size_t lane = first_bit(lanes);
    place = std::min(place, chunks[first + lane] * kStep + lane);
  }
  return place;
}

// The terms of the sums of neighbours, looked up by level: weight * (scale * value - x)^2, and the same for x = 0.
template <class Space>
struct NeighbourTerms {
  static constexpr int kInVector = static_cast<int>(kLanes) / Points<Space>::kPadded;  // coordinates per vector
  static constexpr int kVectors = Space::kDims / kInVector;

  explicit NeighbourTerms(const StrayPoint& point) {
    const Floats x = hn::LoadU(kFloats, point.x), weight = hn::LoadU(kFloats, point.weight);
    const Floats scaled = floats(point.scale) * hn::Load(kFloats, point.values.at);
    for (int v = 0; v < kVectors; ++v) {
      const Words coordinate = hn::ShiftRight < Points<Space>::kPadded == 4
                                   ? 2
                                   : 3 > (hn::Iota(kWords, 0)) + words(static_cast<std::uint32_t>(v * kInVector));
      const Floats difference = scaled - pick(x, coordinate);
      const Floats of_value = pick(weight, coordinate);
      errors[v] = of_value * difference * difference;
      squares[v] = of_value * scaled * scaled;
    }
  }

  // Returns the sums of the given points, added in order.
  static HWY_INLINE Floats sum(const Floats* terms, Words points) {
    Floats sum = pick(terms[0], points);
    for (int i = 1; i < Space::kDims; ++i) sum = sum + pick(terms[i / kInVector], hn::ShiftRightSame(points, 4 * i));
    return sum;
  }

  Floats errors[kVectors], squares[kVectors];
};

template <bool kReach, class Space>
HWY_INLINE bool nearest_point(const LatticeView<Space>& lattice, const StrayPoint& point, Neighbour& nearest) {
  const NeighbourTerms<Space> terms(point);
  const std::uint32_t* list = lattice.words + point.entry.first_chunk() * kLanes;
  const std::uint32_t chunks = point.entry.chunks();
  ListSums<kReach> sums;
  Floats least = floats(FLT_MAX);
  Words from = words(0);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const Words points = hn::Load(kWords, list + chunk * kLanes);
    const Floats error = terms.sum(terms.errors, points);
    if constexpr (kReach) sums.set(chunk, error, terms.sum(terms.squares, points));
    const Mask nearer = error < least;
    least = choose(nearer, error, least);
    from = choose(nearer, words(chunk), from);
  }
  const Floats least_of_all = hn::MinOfLanes(kFloats, least);
  const unsigned lanes = mask_bits(hn::And(least == least_of_all, least < floats(FLT_MAX)));
  if (HWY_UNLIKELY(lanes == 0)) return false;
  const std::size_t place = chunks == 1 ? first_bit(lanes) : first_place<kLanes>(lanes, 0, from);
  nearest.word = list[place];
  if constexpr (kReach) nearest.until = sums.until(list, chunks, place, point.scale);
  return true;
}

#else

template <bool kReach, class Space>
bool nearest_point(const LatticeView<Space>& lattice, const StrayPoint& point, Neighbour& nearest) {
  constexpr int kPadded = Points<Space>::kPadded;
  float terms[Space::kDims][kPadded];
  for (int i = 0; i < Space::kDims; ++i) {
    for (int level = 0; level < kPadded; ++level) {
      const float difference = point.scale * point.values.at[level] - point.x[i];
      terms[i][level] = point.weight[i] * difference * difference;
    }
  }
  const std::uint32_t* list = lattice.words + point.entry.first_chunk() * kLanes;
  float least = FLT_MAX;
  for (std::uint32_t n = 0; n < point.entry.chunks() * kLanes; ++n) {
    float sum = 0;
    for (int i = 0; i < Space::kDims; ++i) sum += terms[i][list[n] >> (4 * i) & (kPadded - 1)];
    if (!(sum < least)) continue;
    least = sum;
    nearest.word = list[n];
  }
  return least < FLT_MAX;
}

#endif

}  // namespace ggufmill::simd
