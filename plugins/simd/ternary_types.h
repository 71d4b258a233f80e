#pragma once
// TQ1_0 and TQ2_0. The formats are described in plugins/reference/ternary_types.h.

#include "plugins/reference/ternary_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct TQ1_0 : reference::TQ1_0 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

struct TQ2_0 : reference::TQ2_0 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kTernaryKernels = kernels_of<TQ1_0, TQ2_0>();

}  // namespace ggufmill::simd
