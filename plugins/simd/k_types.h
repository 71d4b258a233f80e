#pragma once
// Q2_K, Q3_K, Q4_K, Q5_K and Q6_K: super-blocks of 256 weights. The formats are described in
// plugins/reference/k_types.h.

#include "plugins/reference/k_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct Q2_K : reference::Q2_K {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

struct Q3_K : reference::Q3_K {
  static constexpr int kSets = kLanes == 16 ? 2 : 4;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

struct Q4_K : reference::Q4_K {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

struct Q5_K : reference::Q5_K {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

struct Q6_K : reference::Q6_K {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* packed);
};

inline constexpr auto kKKernels = kernels_of<Q2_K, Q3_K, Q4_K, Q5_K, Q6_K>();

}  // namespace ggufmill::simd
