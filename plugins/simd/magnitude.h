#pragma once
// Greatest magnitude of a block, even if the block contains NaNs.

#include <cmath>

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Handles blocks with NaNs, for which the result depends on the order of elements.
template <int kCount>
float magnitude_in_order(const float* x) {
  float magnitude = 0;
  for (int i = 0; i < kCount; ++i) magnitude = magnitude > std::fabs(x[i]) ? magnitude : std::fabs(x[i]);
  return magnitude;
}

template <int kCount>
HWY_INLINE float greatest_magnitude(const float* x) {
  Floats greatest = floats(0);
  Mask odd = is_nan(greatest);
  for (int i = 0; i < kCount; i += static_cast<int>(kLanes)) {
    const Floats value = hn::LoadU(kFloats, x + i);
    greatest = hn::Max(hn::Abs(value), greatest);
    odd = hn::Or(odd, is_nan(value));
  }
  if (HWY_UNLIKELY(any(odd))) return magnitude_in_order<kCount>(x);
  return hn::GetLane(hn::MaxOfLanes(kFloats, greatest));
}

}  // namespace ggufmill::simd
