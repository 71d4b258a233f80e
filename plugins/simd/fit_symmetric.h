#pragma once
// Searches for a scale without a minimum (reference::fit_symmetric, fit_symmetric_by_steps), with one block per lane.

#include "plugins/reference/fit.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Result of the fit x ~ scale * (level - limit). The levels are kLimit + nearest(inverse * x), clamped, and 0 for an
// all-zero group. They are computed on demand, because few callers need them.
struct Symmetric {
  Floats scale, inverse;
  Mask zero;

  Ints level(Floats x, int limit) const {
    const Ints level = clamp(nearest_ints(inverse * x), -limit, limit - 1) + ints(limit);
    return choose(zero, ints(0), level);
  }
};

// Keeps the first value of greatest magnitude, with its sign, and that magnitude.
HWY_INLINE void keep_extreme(Floats next, Floats& magnitude, Floats& value) {
  const Floats size = hn::Abs(next);
  const Mask farther = size > magnitude;
  magnitude = choose(farther, size, magnitude);
  value = choose(farther, next, value);
}

// Returns the first of kCount values with the greatest magnitude, with its sign; x(i) returns value i.
template <int kCount, class X>
HWY_INLINE Floats extreme(const X& x, Floats& magnitude) {
  Floats value = magnitude = floats(0);
  for (int i = 0; i < kCount; ++i) keep_extreme(x(i), magnitude, value);
  return value;
}

// Returns what extreme() does, from the greatest and the least value; looks at all again only where both may be it.
// `is_zero` receives the lanes whose magnitudes are all below `zero`.
template <int kCount, class X>
HWY_INLINE Floats extreme_of_ends(const X& x, float zero, Mask& is_zero) {
  Floats high = floats(0), low = floats(0);
  for (int i = 0; i < kCount; ++i) {
    high = greater(x(i), high);
    low = lesser(x(i), low);
  }
  Floats magnitude = greater(high, hn::Neg(low));
  is_zero = magnitude < floats(zero);
  if (HWY_UNLIKELY(any(hn::AndNot(is_zero, high == hn::Neg(low))))) return extreme<kCount>(x, magnitude);
  return choose(high == magnitude, high, low);
}

// Fits one group of kCount values in lanes, laid out as in memory: value i is at x[i * kLanes]. kFinite means that the
// values are finite, so that all products with an inverse scale are within one step of the limits.
template <int kCount, int kLimit, bool kFinite>
class SymmetricFit {
 public:
  // Null weights mean x * x.
  Symmetric run(const float* x, const float* weights) {
    Floats magnitude;
    peak_ = extreme<kCount>([&](int i) { return hn::Load(kFloats, x + i * kStep); }, magnitude);
    fit_.zero = magnitude < floats(reference::kZeroGroup);
    for (int i = 0; i < kCount; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kStep);
      const Floats weight = weights ? hn::Load(kFloats, weights + i * kStep) : value * value;
      hn::Store(value, kFloats, values_[i].x);
      hn::Store(weight, kFloats, values_[i].w);
      hn::Store(weight * value, kFloats, values_[i].wx);
    }
    first();
    // A step omits the clamps where no product comes near the limit.
    try_steps<4, false, false>(-9);
    try_steps<3, false, true>(-5);
    try_steps<2, false, true>(-2);
    try_steps<2, false, true>(1);
    try_steps<2, false, true>(3);
    try_steps<3, true, true>(5);
    try_steps<2, true, true>(8);
    fit_.scale = hn::IfThenZeroElse(fit_.zero, fit_.scale);
    return fit_;
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  // Terms of one value in the sums.
  struct Value {
    float x[kLanes], w[kLanes], wx[kLanes];
  };

  // Weighted sums of x * level and level * level, for each of kSteps inverse scales.
  template <int kSteps>
  struct Sums {
    Floats xl[kSteps], l2[kSteps];
  };

  template <bool kLow, bool kHigh>
  static Floats rounded(Floats value) {
    if constexpr (!kFinite) return to_floats(clamp(nearest_ints(value), -kLimit, kLimit - 1));
    Floats level = hn::Round(value);
    if constexpr (kLow) level = hn::Max(level, floats(float{-kLimit}));
    if constexpr (kHigh) level = hn::Min(level, floats(float{kLimit - 1}));
    return level;
  }

  template <int kSteps, bool kLow, bool kHigh>
  HWY_INLINE Sums<kSteps> sums_for(const Floats* inverses) const {
    Sums<kSteps> sums;
    GGUFMILL_UNROLL
    for (int s = 0; s < kSteps; ++s) sums.xl[s] = sums.l2[s] = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats x = hn::Load(kFloats, values_[i].x);
      const Floats w = hn::Load(kFloats, values_[i].w);
      const Floats wx = hn::Load(kFloats, values_[i].wx);
      GGUFMILL_UNROLL
      for (int s = 0; s < kSteps; ++s) {
        const Floats l = rounded<kLow, kHigh>(inverses[s] * x);
        sums.xl[s] = sums.xl[s] + wx * l;
        sums.l2[s] = sums.l2[s] + w * l * l;
      }
    }
    return sums;
  }

  void first() {
    fit_.inverse = floats(float{-kLimit}) / peak_;
    const Sums<1> sums = sums_for<1, false, true>(&fit_.inverse);
    fit_.scale = or_zero(differ(sums.l2[0], floats(0)), sums.xl[0] / sums.l2[0]);
    best_ = fit_.scale * sums.xl[0];
  }

  // Tries kSteps steps in order, starting at `from`.
  template <int kSteps, bool kLow, bool kHigh>
  void try_steps(int from) {
    Floats inverses[kSteps];
    for (int s = 0; s < kSteps; ++s)
      inverses[s] = floats(-(float{kLimit} + 0.1f * static_cast<float>(from + s))) / peak_;
    const Sums<kSteps> sums = sums_for<kSteps, kLow, kHigh>(inverses);
    for (int s = 0; s < kSteps; ++s) {
      const Floats xl = sums.xl[s], l2 = sums.l2[s];
      const Mask better = hn::And(l2 > floats(0), xl * xl > best_ * l2);
      const Floats scale = xl / l2;
      fit_.scale = choose(better, scale, fit_.scale);
      fit_.inverse = choose(better, inverses[s], fit_.inverse);
      best_ = choose(better, scale * xl, best_);
    }
  }

  Symmetric fit_;
  Floats peak_, best_;
  alignas(64) Value values_[kCount];
};

}  // namespace ggufmill::simd
