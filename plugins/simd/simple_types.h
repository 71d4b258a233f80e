#pragma once
// Q8_0: blocks of 32 weights. The formats are in plugins/reference/simple_types.h.

#include "plugins/reference/simple_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct Q8_0 : reference::Q8_0 {
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kSimpleKernels = kernels_of<Q8_0>();

}  // namespace ggufmill::simd
