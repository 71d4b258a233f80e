#pragma once
// Table lookup in a vector. GGUFMILL_SIMD_PICKS is 1 if the instruction set supports it.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

#if HWY_TARGET == HWY_AVX3
#define GGUFMILL_SIMD_PICKS 1
// Returns the lanes of `table` that are selected by the lowest bits of `index`.
inline Floats pick(Floats table, Words index) { return Floats{_mm512_permutexvar_ps(index.raw, table.raw)}; }
// Same, for a table of two consecutive vectors.
inline Floats pick(Floats lower, Floats upper, Words index) {
  return Floats{_mm512_permutex2var_ps(lower.raw, index.raw, upper.raw)};
}
#elif HWY_TARGET == HWY_AVX2
#define GGUFMILL_SIMD_PICKS 1
inline Floats pick(Floats table, Words index) { return Floats{_mm256_permutevar8x32_ps(table.raw, index.raw)}; }
#else
#define GGUFMILL_SIMD_PICKS 0
#endif

}  // namespace ggufmill::simd
