#pragma once
// Search for the best neighbours of many stray points at a time, with one point per lane, if every neighbour is one
// level up or down from the point in one coordinate. Compares the steps to the neighbours instead of the neighbours.
//
// With the terms of lattice_reach.h, let v be the value of the point in a coordinate, w the weight, and e = t v - x. A
// step up changes the error by 4 t w (t + e) and A by 4 w (1 + v), a step down by 4 t w (t - e) and 4 w (1 - v). The
// code leaves the factors 4 t and 4 out.
//
// The number of a step replaces the lowest four bits of its cost w (t + e) or w (t - e), so that the least cost tells
// which step it is. This and rounding change a cost by less than 48 u w (t + |e|), and t |e| <= (t^2 + e^2) / 2. So the
// difference of two errors changes by less than 576 u t^2 W + 192 u D_c; the search at t adds 57 u D_p + 29 u t^2 W. If
// no other step is within 1024 u (D_p + t^2 W + D_c), the result is that of the reference; else the caller has to
// search as the reference does.

#include "plugins/simd/lattice_search.h"
#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

template <class Space>
class StepBatch {
 public:
  // Searches for one group per lane, given its place and table entry. rows_of(at) returns the group's values, then its
  // weights; `scales` and `rounded` are the scales and points of all places. Returns the lanes that have a result, as
  // bits.
  template <class RowsOf>
  HWY_INLINE unsigned run(const float* scales, const std::uint32_t* at, const std::uint32_t* entries,
                          const RowsOf& rows_of, const std::uint32_t* rounded) {
    const float* rows[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) rows[lane] = rows_of(at[lane]);
    alignas(64) float values[2 * Space::kDims * kLanes];
    rows_to_lanes(rows, 2 * Space::kDims, values);
    const Ints places = as_ints(hn::LoadU(kWords, at));
    const Floats scale = hn::GatherIndex(kFloats, scales, places);
    const Words point = hn::GatherIndex(kWords, rounded, places);
    const Words steps = hn::LoadU(kWords, entries);

    alignas(64) float costs[kSteps * kLanes], growths[kSteps * kLanes];
    Floats error = floats(0), weights = floats(0), least = floats(FLT_MAX);
    GGUFMILL_UNROLL
    for (int i = 0; i < Space::kDims; ++i) {
      const Floats weight = hn::Load(kFloats, values + (Space::kDims + i) * kStep);
      const Floats value = odd_value<Space>(point, i);
      const Floats beside = scale * value - hn::Load(kFloats, values + i * kStep);
      const Floats of_scale = weight * scale, of_beside = weight * beside, of_value = weight * value;
      error = hn::MulAdd(of_beside, beside, error);
      weights = weights + weight;
      const Floats down = cost(steps, 2 * i, of_scale - of_beside);
      const Floats up = cost(steps, 2 * i + 1, of_scale + of_beside);
      least = hn::Min(least, hn::Min(down, up));
      hn::Store(down, kFloats, costs + 2 * i * kStep);
      hn::Store(up, kFloats, costs + (2 * i + 1) * kStep);
      hn::Store(weight - of_value, kFloats, growths + 2 * i * kStep);
      hn::Store(weight + of_value, kFloats, growths + (2 * i + 1) * kStep);
    }

    const Words step = as_words(least) & words(kSteps - 1);
    Floats growth = floats(0);
    GGUFMILL_UNROLL16
    for (int k = 0; k < kSteps; ++k) growth = choose(is_step(k, step), hn::Load(kFloats, growths + k * kStep), growth);
    const Floats inverse = floats(1) / scale;
    // 1e-31 is above what underflow loses. A of the nearest neighbour is at most 25 W.
    const Floats size = inverse * (error + floats(1e-31f)) + floats(0.5f) * scale * weights + floats(2) * least;
    const ReachBounds bounds(least, size, growth - floats(0x1p-11f) * weights);
    const Floats none = floats(FLT_MAX);
    Floats reach = none;
    GGUFMILL_UNROLL16
    for (int k = 0; k < kSteps; ++k) {
      const Floats other = hn::Load(kFloats, costs + k * kStep);
      const Floats bound = bounds.beside(other, hn::Load(kFloats, growths + k * kStep));
      reach = hn::Min(reach, choose(other == least, none, bound));
    }
    const Words coordinate = hn::ShiftLeft<1>(step & words(kSteps - 2));
    const Words one = words(1) << coordinate;
    hn::Store(choose(mask_of(hn::TestBit(step, words(1))), point + one, point - one), kWords, words_);
    hn::Store(lowest_scale(scale, reach * inverse), kFloats, until_);
    return mask_bits(reach > floats(0));
  }

  Neighbour result(std::size_t lane) const { return {words_[lane], until_[lane]}; }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr int kSteps = 2 * Space::kDims;
  static_assert(kSteps == 16 && Space::kLevels == 3);

  static Mask is_step(int k, Words step) { return mask_of(step == words(static_cast<std::uint32_t>(k))); }

  // Returns the cost with the number of the step in its lowest bits, or FLT_MAX if there is no such step.
  static HWY_INLINE Floats cost(Words steps, int k, Floats cost) {
    const Words numbered =
        (as_words(cost) & words(~(std::uint32_t{kSteps} - 1))) | words(static_cast<std::uint32_t>(k));
    return choose(mask_of(hn::TestBit(steps, words(LatticeEntry::step(k)))), as_floats(numbered), floats(FLT_MAX));
  }

  alignas(64) float until_[kLanes];
  alignas(64) std::uint32_t words_[kLanes];
};

}  // namespace ggufmill::simd
