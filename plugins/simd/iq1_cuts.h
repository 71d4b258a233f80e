#pragma once
// The best cut of a sorted sub-block into three parts (plugins/reference/iq1_thirds.h), with one sub-block per lane.

#include <array>
#include <cfloat>
#include <limits>

#include "plugins/simd/lanes.h"
#include "plugins/simd/sorting_network.h"

namespace ggufmill::simd {

// kCount values per lane in ascending order, with their weights. Equal values are in the order of their positions.
template <int kCount>
class SortedLanes {
 public:
  // Reads from lanes: element i is at x[i * kLanes]. If a value is NaN, the order is unspecified, and no cut is found
  // in that lane.
  SortedLanes(const float* x, const float* weight) {
    for (int i = 0; i < kCount; ++i) {
      hn::Store(hn::Load(kFloats, x + i * kStep), kFloats, x_ + i * kStep);
      hn::Store(hn::Load(kFloats, weight + i * kStep), kFloats, weight_ + i * kStep);
      hn::Store(ints(i), kInts, place_ + i * kStep);
    }
    hn::Store(floats(std::numeric_limits<float>::infinity()), kFloats, x_ + kCount * kStep);
    hn::Store(ints(kCount), kInts, place_ + kCount * kStep);
    sort();
  }

  Floats x(int i) const { return hn::Load(kFloats, x_ + i * kStep); }
  Floats weight(int i) const { return hn::Load(kFloats, weight_ + i * kStep); }
  Ints place(int i) const { return hn::Load(kInts, place_ + i * kStep); }

  // The element at a position that can differ between lanes. The position is at most kCount, which is after all
  // elements.
  struct Element {
    Floats x;
    Ints place;

    // Returns true in the lanes where the other element is this one or comes after it.
    Mask not_after(Floats other, int other_place) const {
      const Mask later = mask_of(ints(other_place + 1) > place);
      return hn::Or(other > x, hn::And(other == x, later));
    }
  };
  Element at(Ints position) const {
    const Ints index = position * ints(kStep) + hn::Iota(kInts, 0);
    return {hn::GatherIndex(kFloats, x_, index), hn::GatherIndex(kInts, place_, index)};
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  struct Pair {
    std::uint8_t i, j;
  };

  static constexpr std::size_t kPairs = [] {
    std::size_t count = 0;
    for_each_pair_to_order(kCount, [&](int, int) { ++count; });
    return count;
  }();

  static constexpr std::array<Pair, kPairs> pairs() {
    std::array<Pair, kPairs> list{};
    std::size_t count = 0;
    for_each_pair_to_order(kCount, [&](int i, int j) {
      list[count++] = {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(j)};
    });
    return list;
  }

  void sort() {
    static constexpr std::array<Pair, kPairs> kInTurn = pairs();
    for (const Pair& pair : kInTurn) order(pair.i, pair.j);
  }

  void order(int i, int j) {
    const Floats a = x(i), b = x(j);
    const Floats weight_a = weight(i), weight_b = weight(j);
    const Ints place_a = place(i), place_b = place(j);
    const Mask swap = hn::Or(a > b, hn::And(a == b, mask_of(place_a > place_b)));
    hn::Store(choose(swap, b, a), kFloats, x_ + i * kStep);
    hn::Store(choose(swap, a, b), kFloats, x_ + j * kStep);
    hn::Store(choose(swap, weight_b, weight_a), kFloats, weight_ + i * kStep);
    hn::Store(choose(swap, weight_a, weight_b), kFloats, weight_ + j * kStep);
    hn::Store(choose(swap, place_b, place_a), kInts, place_ + i * kStep);
    hn::Store(choose(swap, place_a, place_b), kInts, place_ + j * kStep);
  }

  alignas(64) float x_[(kCount + 1) * kLanes];
  alignas(64) float weight_[(kCount + 1) * kLanes];
  alignas(64) std::int32_t place_[(kCount + 1) * kLanes];
};

// In sorted order, the elements before `low` have level 0, those before `high` level 1, and the others level 2.
struct LaneCut {
  Ints low = ints(-1), high = ints(-1);
  Words shifts = words(0);  // index of the shift combination
  Floats scale = floats(0);
  Floats score = floats(-FLT_MAX);

  Mask found() const { return mask_of(low > ints(-1)); }

  // Keeps a cut, given its least-squares sums, in the lanes where it is better than the best so far.
  HWY_INLINE void consider(int a, int b, unsigned ways, Floats xq, Floats qq) {
    const Mask greater = xq * xq > score * qq;
    if (!any(greater)) return;
    const Mask better = hn::And(greater, qq > floats(0));
    scale = choose(better, xq / qq, scale);
    score = choose(better, scale * xq, score);
    low = choose(better, ints(a), low);
    high = choose(better, ints(b), high);
    shifts = choose(better, words(ways), shifts);
  }
};

}  // namespace ggufmill::simd
