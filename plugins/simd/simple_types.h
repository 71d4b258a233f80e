#pragma once
// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: blocks of 32 weights. The formats are described in plugins/reference/simple_types.h.

#include "plugins/reference/simple_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

// Encoding without importance has no sums, so one block is processed at a time, with its weights in the lanes. Encoding
// with importance has sums, so each lane processes one block.
// encode_four() encodes four blocks, or returns false if one needs encode().
struct Q4_0 : reference::Q4_0 {
  static constexpr int kSets = 1;
  static constexpr bool kWeighsRows = true;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
  static bool encode_four(const float* x, Block* blocks);
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct Q4_1 : reference::Q4_1 {
  static constexpr int kSets = 2;
  static constexpr bool kWeighsRows = true;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct Q5_0 : reference::Q5_0 {
  static constexpr int kSets = 1;
  static constexpr bool kWeighsRows = true;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct Q5_1 : reference::Q5_1 {
  static constexpr int kSets = 2;
  static constexpr bool kWeighsRows = true;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct Q8_0 : reference::Q8_0 {
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const float* x, Block& block);
  static bool encode_four(const float* x, Block* blocks);
};

inline constexpr auto kSimpleKernels = kernels_of<Q4_0, Q4_1, Q5_0, Q5_1, Q8_0>();

}  // namespace ggufmill::simd
