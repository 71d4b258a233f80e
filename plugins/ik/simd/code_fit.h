#pragma once
// The fit of IQ2_K and IQ2_KS: codes of the scales of sub-blocks, and what they are multiples of.

#include <utility>

#include "plugins/ik/simd/sub_blocks.h"

namespace ggufmill::simd {

// ik::fit_codes() in lanes, for scales at(0) to at(count - 1), each with its weight.
template <int kLimit>
struct CodeFit {
  Floats d;        // 0 where all scales are 0
  Floats inverse;  // gives the codes

  template <class At>
  CodeFit(std::uint64_t count, const At& at) {
    Extreme extreme;
    for (std::uint64_t b = 0; b < count; ++b) extreme.add(at(b).first);
    LaneBest best;
    inverse = floats(float{-kLimit}) / extreme.value;
    Sums sums(count, at, inverse);
    const Mask fits = differ(sums.q2, floats(0));
    best.scale = or_zero(fits, sums.qx / sums.q2);
    best.score = or_zero(fits, best.scale * sums.qx);
    for (int i = -9; i <= 9; ++i) {
      if (i == 0) continue;
      const Floats next = floats(-(float{kLimit} + 0.1f * static_cast<float>(i))) / extreme.value;
      sums = Sums(count, at, next);
      inverse = choose(best.take(sums.qx, sums.q2), next, inverse);
    }
    d = hn::IfThenZeroElse(extreme.magnitude == floats(0), best.scale);
  }

  static Ints code_of(Floats inverse, Floats scale) {
    return clamp(nearest_ints(inverse * scale), -kLimit, kLimit - 1);
  }
  Ints code(Floats scale) const { return code_of(inverse, scale); }

 private:
  struct Sums {
    Floats qx = floats(0), q2 = floats(0);

    template <class At>
    Sums(std::uint64_t count, const At& at, Floats inverse) {
      for (std::uint64_t b = 0; b < count; ++b) {
        const auto [scale, weight] = at(b);
        const Floats code = to_floats(code_of(inverse, scale));
        qx = qx + weight * scale * code;
        q2 = q2 + weight * code * code;
      }
    }
  };
};

}  // namespace ggufmill::simd
