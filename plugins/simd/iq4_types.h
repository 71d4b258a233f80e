#pragma once
// Types of 4-bit codes for the values of a table: IQ4_NL, IQ4_XS, MXFP4 and NVFP4. The formats are described in
// plugins/reference/iq4_types.h and fp4_types.h.

#include "plugins/reference/fp4_types.h"
#include "plugins/reference/iq4_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct Iq4Nl : reference::Iq4Nl {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct Iq4Xs : reference::Iq4Xs {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct MXFP4 : reference::MXFP4 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

struct NVFP4 : reference::NVFP4 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kTableKernels = kernels_of<Iq4Nl, Iq4Xs, MXFP4, NVFP4>();

}  // namespace ggufmill::simd
