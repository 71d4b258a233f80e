#pragma once
// Types of at most two bits: Q1_0, Q2_0, TQ1_0 and TQ2_0. The formats are described in plugins/reference/bit_types.h
// and ternary_types.h.

#include "plugins/reference/bit_types.h"
#include "plugins/reference/ternary_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct Q1_0 : reference::Q1_0 {
  static constexpr int kSets = 2;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct Q2_0 : reference::Q2_0 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

struct TQ1_0 : reference::TQ1_0 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

struct TQ2_0 : reference::TQ2_0 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kCrumbKernels = kernels_of<Q1_0, Q2_0, TQ1_0, TQ2_0>();

}  // namespace ggufmill::simd
