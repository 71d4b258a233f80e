#pragma once
// Lines through levels, with one block per lane.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// x ~ scale * level + minimum. The levels are nearest(inverse * (x - origin)), clamped. They are computed on demand,
// because few callers need them.
struct Line {
  Floats scale, minimum;
  Floats inverse, origin;

  Ints level(Floats x, int limit) const { return clamp(nearest_ints(inverse * (x - origin)), 0, limit); }
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

}  // namespace ggufmill::simd
