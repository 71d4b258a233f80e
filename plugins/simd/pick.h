#pragma once
// Looking numbers up in a vector, where the instruction set can. `GGUFMILL_SIMD_PICKS` says whether.

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

#if HWY_TARGET == HWY_AVX3
#define GGUFMILL_SIMD_PICKS 1
// The lanes of `table` that the lowest bits of `index` say.
inline Floats pick(Floats table, Words index) { return Floats{_mm512_permutexvar_ps(index.raw, table.raw)}; }
// The same of two vectors, one after the other.
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
