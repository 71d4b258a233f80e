#pragma once
// Search for the scale of non-negative values (reference::fit_positive), with one block per lane.

#include "plugins/reference/fit.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Fits kCount values with weights. Values below `zero` count as zero. Levels are kept as bytes throughout, even if a
// value below zero wraps.
template <int kCount, int kLimit>
class PositiveFit {
 public:
  PositiveFit(const Floats* x, const Floats* weights, Words* levels, float zero = reference::kZeroGroup)
      : x_(x), weights_(weights), levels_(levels), zero_(zero) {}

  // Computes the levels and returns the scale.
  Floats run() {
    Floats peak = floats(0);
    for (int i = 0; i < kCount; ++i) peak = greater(peak, x_[i]);
    const Mask zero = peak < floats(zero_);
    first_levels(best_inverse(peak));
    for (int round = 0; round < 5; ++round) {
      Mask moved = improve(0);
      for (int i = 1; i < kCount; ++i) moved = hn::Or(moved, improve(i));
      if (!any(hn::AndNot(zero, moved))) break;  // finished lanes do not change
    }
    for (int i = 0; i < kCount; ++i) levels_[i] = choose(zero, words(0), levels_[i]);
    const Floats scale = or_zero(sum_l2_ > floats(0), sum_xl_ / sum_l2_);
    return hn::IfThenZeroElse(zero, scale);
  }

 private:
  static Ints bounded(Floats value) { return hn::Min(ints(kLimit), nearest_ints(value)); }
  static Ints byte(Ints value) { return value & ints(0xff); }

  template <class Level>
  Floats error_of(Floats scale, const Level& level) const {
    Floats error = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats difference = x_[i] - scale * to_floats(level(x_[i]));
      error = error + weights_[i] * difference * difference;
    }
    return error;
  }

  // Returns the inverse scale with the least error. The error of the first one is computed from its levels as bytes,
  // without clamping to the limit.
  Floats best_inverse(Floats peak) const {
    Floats best = floats(float{kLimit}) / peak;
    Floats least = error_of(floats(1) / best, [&](Floats x) { return byte(nearest_ints(best * x)); });
    for (int step = -4; step <= 4; ++step) {
      if (step == 0) continue;
      const Floats inverse = floats(0.1f * static_cast<float>(step) + float{kLimit}) / peak;
      const Floats error = error_of(floats(1) / inverse, [&](Floats x) { return bounded(inverse * x); });
      const Mask better = error < least;
      least = choose(better, error, least);
      best = choose(better, inverse, best);
    }
    return best;
  }

  void first_levels(Floats inverse) {
    sum_xl_ = sum_l2_ = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Ints level = bounded(inverse * x_[i]);
      levels_[i] = as_words(byte(level));
      sum_xl_ = sum_xl_ + weights_[i] * x_[i] * to_floats(level);
      sum_l2_ = sum_l2_ + weights_[i] * to_floats(level) * to_floats(level);
    }
  }

  // Sets level i to its optimum with all others fixed, if this reduces the error. Returns true in the lanes where the
  // level changed.
  Mask improve(int i) {
    const Ints level = as_ints(levels_[i]);
    const Floats old = to_floats(level);
    const Floats w = weights_[i], wx = w * x_[i];
    const Floats other_xl = sum_xl_ - wx * old;
    const Floats other_l2 = sum_l2_ - w * old * old;
    const Mask rest = hn::And(other_xl > floats(0), other_l2 > floats(0));
    const Ints better = bounded(x_[i] * other_l2 / other_xl);
    const Floats b = to_floats(better);
    const Floats xl = other_xl + wx * b;
    const Floats l2 = other_l2 + w * b * b;
    const Mask less = xl * xl * sum_l2_ > sum_xl_ * sum_xl_ * l2;
    const Mask moves = hn::AndNot(mask_of(better == level), hn::And(rest, less));
    levels_[i] = choose(moves, as_words(byte(better)), levels_[i]);
    sum_xl_ = choose(moves, xl, sum_xl_);
    sum_l2_ = choose(moves, l2, sum_l2_);
    return moves;
  }

  const Floats* x_;
  const Floats* weights_;
  Words* levels_;
  const float zero_;
  Floats sum_xl_, sum_l2_;
};

}  // namespace ggufmill::simd
