#pragma once
// Fused sums in the order of a register of eight lanes, as ik::Lanes. Here, each lane has sums of its own.

#include <cmath>

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Returns a * b + c, rounded once, as the searches of some types are defined. Not for types that are not.
HWY_INLINE Floats fused(Floats a, Floats b, Floats c) {
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM
  return hn::MulAdd(a, b, c);
#else
  alignas(64) float x[kLanes], y[kLanes], z[kLanes];
  hn::Store(a, kFloats, x);
  hn::Store(b, kFloats, y);
  hn::Store(c, kFloats, z);
  for (std::size_t lane = 0; lane < kLanes; ++lane) z[lane] = std::fma(x[lane], y[lane], z[lane]);
  return hn::Load(kFloats, z);
#endif
}

// Adds eight sums: first the halves of the register.
inline Floats total_of(const Floats (&sums)[8]) {
  Floats four[4];
  for (int i = 0; i < 4; ++i) four[i] = sums[i + 4] + sums[i];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

struct EightSums {
  Floats sums[8] = {floats(0), floats(0), floats(0), floats(0), floats(0), floats(0), floats(0), floats(0)};

  HWY_INLINE void add(int i, Floats a, Floats b) { sums[i % 8] = fused(a, b, sums[i % 8]); }
  Floats total() const { return total_of(sums); }
};

}  // namespace ggufmill::simd
