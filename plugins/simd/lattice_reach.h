#pragma once
// The range of scales for which a neighbour found at one scale stays the nearest, so that tries at lower scales need
// not search again. The search at them would return the same neighbour, rounding included.
//
// At scale s, let D_q(s) = sum w (s v - x)^2 be the exact error of neighbour q with values v, A_q = sum w v^2, and
// W = sum w. In the difference of two errors, the terms in x^2 cancel. With p the nearest at t, and r = 1 - s / t:
//
//   D_q(s) - D_p(s) = (s / t) (D_q(t) - D_p(t) - r t^2 (A_q - A_p))
//
// Let u = 2^-24. A computed error of the search at s deviates from D by at most 28 u D + 14 u s^2 W, since each term is
// computed with an error of at most 2 u |s v - x| s v + 12 u (s v - x)^2, weighted, and v is at most 15. So it computes
// a lower error for p than for q if D_q(s) - D_p(s) > 57 u D_p(s) + 29 u s^2 W, and there
// D_p(s) <= 2 D_p(t) + 2 r^2 t^2 A_p. All tries of a sub-block have s / t > 0.65, thus r < 0.35. It suffices that
//
//   D_q(t) - D_p(t) - 512 u (D_p(t) + t^2 W + D_c(t)) > r t^2 (A_q - A_p + 512 u A_p),
//
// where more than half of the margins is left for rounding on this side; D_c is the error of the rounded point, to
// which the errors of a batch are relative. This holds for all r up to the least quotient of both sides among the other
// neighbours; a divisor below zero limits nothing. Sub-blocks with extreme values, where products could overflow or,
// in any group, lose bits to underflow, are searched as in the reference.

#include <cfloat>

#include "plugins/simd/lattice_table.h"

namespace ggufmill::simd {

// Returns the lanes with extreme values, given the sizes of the least and the greatest sums.
inline Mask is_unusual(Floats least, Floats greatest) {
  return hn::Not(hn::And(least > floats(1e-30f), greatest < floats(1e30f)));
}

// Bounds of r that other neighbours set.
class ReachBounds {
 public:
  // `least` and `square` are of the nearest neighbour: its error, even if relative to that of another point, and t^2 A.
  // `size` is D_p + t^2 W, and D_c if the errors are relative to it.
  HWY_INLINE ReachBounds(Floats least, Floats size, Floats square)
      : from_(least + floats(kMargin) * size), own_square_(square - floats(kMargin) * square) {}

  // Takes the error and t^2 A of another neighbour. The result is negative, or 0, if its error is within the margin.
  HWY_INLINE Floats beside(Floats error, Floats square) const {
    const Floats divisor = hn::Max(square - own_square_, floats(1e-37f));
#if HWY_ARCH_X86
    return (error - from_) * hn::ApproximateReciprocal(divisor);
#else
    return (error - from_) / divisor;
#endif
  }

 private:
  static constexpr float kMargin = 0x1p-15f;
  Floats from_, own_square_;
};

// Lowers r by more than the error of an approximate reciprocal.
inline constexpr float kReachFactor = 1 - 0x1p-9f;

// Returns the lowest scale that r can reach; never 0.
inline Floats lowest_scale(Floats scale, Floats reach) {
  return hn::Max(scale - scale * (reach * floats(kReachFactor)), floats(FLT_MIN));
}

// Errors and squares of the neighbours in a list.
template <bool kUsed>
class ListSums {
 public:
  HWY_INLINE void set(std::uint32_t chunk, Floats error, Floats square) {
    hn::Store(error, kFloats, errors_ + chunk * kLanes);
    hn::Store(square, kFloats, squares_ + chunk * kLanes);
  }

  // Returns the scale down to which the neighbour at `place`, found at `scale`, stays the nearest.
  HWY_INLINE float until(const std::uint32_t* list, std::uint32_t chunks, std::size_t place, float scale) const {
    const Floats least = floats(errors_[place]), square = floats(squares_[place]);
    const ReachBounds bounds(least, least + square, square);  // t^2 A is above t^2 W
    const Words own = words(list[place]);
    const Floats none = floats(FLT_MAX);
    Floats reach = none;
    for (std::uint32_t at = 0; at < chunks * kLanes; at += kLanes) {
      const Floats bound = bounds.beside(hn::Load(kFloats, errors_ + at), hn::Load(kFloats, squares_ + at));
      const Mask is_own = mask_of(hn::Load(kWords, list + at) == own);
      reach = hn::Min(reach, choose(is_own, none, bound));
    }
    return hn::GetLane(lowest_scale(floats(scale), hn::MinOfLanes(kFloats, reach)));
  }

 private:
  static constexpr std::size_t kSize = (LatticeEntry::kChunks + 1) * kLanes;
  alignas(64) float errors_[kSize];
  alignas(64) float squares_[kSize];
};

template <>
class ListSums<false> {};

}  // namespace ggufmill::simd
