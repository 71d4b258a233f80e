#pragma once
// Converts two-bit levels to -1, 0, 1 and 2 times a scale.

#include "plugins/simd/pick.h"

namespace ggufmill::simd {

class Crumbs {
 public:
  // values() converts the lowest two bits of each word.
#if GGUFMILL_SIMD_PICKS
  explicit Crumbs(Floats scale) : values_(value(hn::Iota(kWords, 0), scale)) {}
  Floats values(Words levels) const { return pick(values_, levels); }
#else
  explicit Crumbs(Floats scale) : scale_(scale) {}
  Floats values(Words levels) const { return value(levels, scale_); }
#endif

 private:
  static Floats value(Words levels, Floats scale) { return to_floats(as_ints(levels & words(3)) - ints(1)) * scale; }

#if GGUFMILL_SIMD_PICKS
  Floats values_;  // the values of levels 0-3, repeated
#else
  Floats scale_;
#endif
};

}  // namespace ggufmill::simd
