#pragma once
// Search for a scale and a minimum (reference::fit_affine), with one block per lane. Each sum of a group depends on the
// previous one, so kGroups groups are in flight to hide the latency.

#include <cmath>

#include "plugins/reference/fit.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// x ~ scale * level + minimum. The levels are nearest(inverse * (x - origin)), clamped. They are computed on demand,
// because few callers need them.
struct Line {
  Floats scale, minimum;
  Floats inverse, origin;
  Mask bounds_first = hn::FirstN(kFloats, 0);  // lanes that clamp before rounding (reference::AffineSearch)

  Ints level(Floats x, int limit) const {
    const Floats value = inverse * (x - origin);
    const Floats bounded = or_zero(value > floats(0), lesser(value, floats(static_cast<float>(limit))));
    return clamp(nearest_ints(choose(bounds_first, bounded, value)), 0, limit);
  }
};

// Sums over a group with weights w, levels l and values x: the sums of w, w * x, w * l, w * l * l and w * l * x.
struct LineSums {
  Floats w, wx, l, l2, xl;

  // Computes the least-squares line through the levels, with a minimum that is not above 0. The mask is not set in
  // lanes where the levels do not determine a line.
  HWY_INLINE Mask fit(Line& line) const {
    const Floats determinant = w * l2 - l * l;
    line.scale = (w * xl - wx * l) / determinant;
    line.minimum = (l2 * wx - l * xl) / determinant;
    const Mask above = line.minimum > floats(0);
    if (any(above)) {
      line.scale = choose(above, xl / l2, line.scale);
      line.minimum = hn::IfThenZeroElse(above, line.minimum);
    }
    return determinant > floats(0);
  }
};

// Methods for rounding and clamping levels.
enum class Rounding { kExact, kQuick, kQuickBelowLimit };

// Selects the cheapest method that is exact for some lines and their values.
template <int kLimit>
class RangeOfLevels {
 public:
  // Adds a line with its lowest and highest value. The products are monotone in x, so it is enough to check those of
  // the ends, each compared individually: a NaN is not small.
  HWY_INLINE void add(const Line& line, Floats low, Floats high) {
    for (const Floats end : {low, high}) {
      const Floats product = line.inverse * (end - line.origin);
      small_ = hn::And(small_, hn::Abs(product) < floats(kRoundable));
      below_ = hn::And(below_, product < floats(float{kLimit} + 0.5f));
    }
  }
  HWY_INLINE Rounding rounding() const {
    if (HWY_UNLIKELY(!all(small_))) return Rounding::kExact;
    return all(below_) ? Rounding::kQuickBelowLimit : Rounding::kQuick;
  }

 private:
  Mask small_ = hn::Eq(floats(0), floats(0)), below_ = small_;
};

// Calls use(level_of), where level_of(line, x) returns a level.
template <int kLimit, class Use>
HWY_INLINE void with_level(Rounding rounding, const Use& use) {
  switch (rounding) {
    case Rounding::kExact:
      return use([](const Line& line, Floats x) { return to_floats(line.level(x, kLimit)); });
    case Rounding::kQuick:
      return use([](const Line& line, Floats x) {
        return at_most<kLimit>(not_negative(hn::Round(line.inverse * (x - line.origin))));
      });
    case Rounding::kQuickBelowLimit:
      return use([](const Line& line, Floats x) { return not_negative(hn::Round(line.inverse * (x - line.origin))); });
  }
}

// kGroups consecutive groups of kCount weights each, in lanes: element i of the first group is at x[i * kLanes].
template <int kGroups, int kCount, int kLimit, reference::ErrorMeasure kMeasure>
class LineSearch {
 public:
  LineSearch(const float* x, const float* weights) : x_(x), weights_(weights) {}

  void run(const reference::AffineSearch& search, Line* best) {
    start(best, search.least_range);
    Floats first_least[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      first_least[g] = least_[g];
      tried_[g].bounds_first = hn::FirstN(kFloats, search.bounds_first ? kLanes : 0);
    }
    for (int step = 0; step <= search.last; ++step) {
      const float reach = search.first + search.step * static_cast<float>(step) + float{kLimit};
      for (int g = 0; g < kGroups; ++g) {
        tried_[g].inverse = floats(reach) / (high_[g] - best[g].minimum);
        tried_[g].origin = best[g].minimum;
      }
      fit_levels();
      Mask fixed[kGroups];
      for (int g = 0; g < kGroups; ++g) fixed[g] = sums_[g].fit(tried_[g]);
      Floats errors[kGroups];
      sum_errors(tried_, errors);
      for (int g = 0; g < kGroups; ++g) keep_better(hn::And(fixed[g], errors[g] < least_[g]), errors[g], g, best[g]);
    }
    // A flat group has no scale. Its levels are 0.
    for (int g = 0; g < kGroups; ++g) {
      best[g].bounds_first = hn::And(tried_[g].bounds_first, least_[g] < first_least[g]);  // not of the first line
      best[g].scale = hn::IfThenZeroElse(flat_[g], best[g].scale);
      best[g].minimum = choose(flat_[g], low_[g], best[g].minimum);
      best[g].inverse = hn::IfThenZeroElse(flat_[g], best[g].inverse);
      best[g].origin = hn::IfThenZeroElse(flat_[g], best[g].origin);
    }
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  Floats x(int g, int i) const { return hn::Load(kFloats, x_ + (g * kCount + i) * kStep); }
  Floats weight(int g, int i) const { return hn::Load(kFloats, weights_ + (g * kCount + i) * kStep); }

  // Computes the sums over the groups, and the first line, which runs from the lowest to the highest value.
  void start(Line* best, float least_range) {
    for (int g = 0; g < kGroups; ++g) {
      low_[g] = high_[g] = x(g, 0);
      sums_[g].w = weight(g, 0);
      sums_[g].wx = sums_[g].w * x(g, 0);
    }
    for (int i = 1; i < kCount; ++i) {
      for (int g = 0; g < kGroups; ++g) {
        low_[g] = lesser(x(g, i), low_[g]);
        high_[g] = greater(x(g, i), high_[g]);
        sums_[g].w = sums_[g].w + weight(g, i);
        sums_[g].wx = sums_[g].wx + weight(g, i) * x(g, i);
      }
    }
    for (int g = 0; g < kGroups; ++g) {
      low_[g] = choose(low_[g] > floats(0), floats(0), low_[g]);
      flat_[g] = hn::Or(high_[g] <= low_[g], high_[g] - low_[g] < floats(least_range));
      high_[g] = choose(flat_[g], floats(1), high_[g]);  // an arbitrary range, so that flat groups need no special case
      tried_[g].inverse = floats(float{kLimit}) / (high_[g] - low_[g]);
      tried_[g].origin = low_[g];
    }
    fit_levels();
    for (int g = 0; g < kGroups; ++g) {
      tried_[g].scale = floats(1) / tried_[g].inverse;
      tried_[g].minimum = low_[g];
      best[g] = tried_[g];
    }
    sum_errors(best, least_);
  }

  Rounding rounding() const {
    RangeOfLevels<kLimit> range;
    for (int g = 0; g < kGroups; ++g) range.add(tried_[g], low_[g], high_[g]);
    return range.rounding();
  }

  void fit_levels() {
    const Rounding method = rounding();
    if (HWY_UNLIKELY(method == Rounding::kExact)) return fit_exact_levels();
    with_level<kLimit>(method, [&](const auto& level_of) { sum_levels(level_of); });
  }

  // Not inlined, as it is rarely needed.
  HWY_NOINLINE void fit_exact_levels() {
    with_level<kLimit>(Rounding::kExact, [&](const auto& level_of) { sum_levels(level_of); });
  }

  // The loop uses only local variables, which stores through a pointer cannot change.
  template <class Level>
  HWY_INLINE void sum_levels(const Level& level_of) {
    Floats sum_l[kGroups], sum_l2[kGroups], sum_xl[kGroups];
    Line lines[kGroups];
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      sum_l[g] = sum_l2[g] = sum_xl[g] = floats(0);
      lines[g] = tried_[g];
    }
    const float* HWY_RESTRICT xs = x_;
    const float* HWY_RESTRICT ws = weights_;
    float* HWY_RESTRICT levels = levels_;
    for (int i = 0; i < kCount * kStep; i += kStep) {
      GGUFMILL_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        const int at = g * kCount * kStep + i;
        const Floats x = hn::Load(kFloats, xs + at);
        const Floats l = level_of(lines[g], x);
        hn::Store(l, kFloats, levels + at);
        const Floats wl = hn::Load(kFloats, ws + at) * l;
        sum_l[g] = sum_l[g] + wl;
        sum_l2[g] = sum_l2[g] + wl * l;
        sum_xl[g] = sum_xl[g] + wl * x;
      }
    }
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) sums_[g].l = sum_l[g], sums_[g].l2 = sum_l2[g], sums_[g].xl = sum_xl[g];
  }

  HWY_INLINE void sum_errors(const Line* lines, Floats* errors) const {
    Floats sums[kGroups], scales[kGroups], minimums[kGroups];
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      sums[g] = floats(0);
      scales[g] = lines[g].scale;
      minimums[g] = lines[g].minimum;
    }
    for (int i = 0; i < kCount * kStep; i += kStep) {
      GGUFMILL_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        const int at = g * kCount * kStep + i;
        const Floats l = hn::Load(kFloats, levels_ + at);
        const Floats difference = scales[g] * l + minimums[g] - hn::Load(kFloats, x_ + at);
        const bool absolute = kMeasure == reference::ErrorMeasure::kAbsolute;
        const Floats term = absolute ? hn::Abs(difference) : difference * difference;
        sums[g] = sums[g] + hn::Load(kFloats, weights_ + at) * term;
      }
    }
    GGUFMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) errors[g] = sums[g];
  }

  void keep_better(Mask better, Floats error, int g, Line& best) {
    least_[g] = choose(better, error, least_[g]);
    best.scale = choose(better, tried_[g].scale, best.scale);
    best.minimum = choose(better, tried_[g].minimum, best.minimum);
    best.inverse = choose(better, tried_[g].inverse, best.inverse);
    best.origin = choose(better, tried_[g].origin, best.origin);
  }

  const float* x_;
  const float* weights_;
  Floats low_[kGroups], high_[kGroups];
  LineSums sums_[kGroups];
  Floats least_[kGroups];
  Mask flat_[kGroups];
  Line tried_[kGroups];
  alignas(64) float levels_[kGroups * kCount * kLanes];
};

}  // namespace ggufmill::simd
