#pragma once
// Levels of two bits that stand for -1, 0, 1 and 2 times one scale.

#include "plugins/simd/pick.h"

namespace ggufmill::simd {

class Crumbs {
 public:
  // Of the lowest two bits of words.
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
  Floats values_;  // of the levels, again and again
#else
  Floats scale_;
#endif
};

}  // namespace ggufmill::simd
