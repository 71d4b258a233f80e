#pragma once
// MXFP4 and NVFP4. The formats are described in plugins/reference/fp4_types.h.

#include "plugins/reference/fp4_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct MXFP4 : reference::MXFP4 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

struct NVFP4 : reference::NVFP4 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kFp4Kernels = kernels_of<MXFP4, NVFP4>();

}  // namespace ggufmill::simd
