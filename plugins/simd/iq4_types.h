#pragma once
// IQ4_NL and IQ4_XS. The formats are described in plugins/reference/iq4_types.h.

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

inline constexpr auto kIq4Kernels = kernels_of<Iq4Nl, Iq4Xs>();

}  // namespace ggufmill::simd
