#pragma once
// Kernels of IQ2_K to IQ6_K, with the same results as plugins/ik/k_types.cpp. The encoders have one super-block per
// lane.

#include "plugins/ik/k_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct IQ2_K : ik::IQ2_K {
  static constexpr int kSets = 1;
  static void encode(const Batch<1>& batch, LaneBlocks<Block>* blocks);
  static void decode(const Block* block, std::uint64_t count, float* x);
};

struct IQ3_K : ik::IQ3_K {
  static constexpr int kSets = 1;
  static void encode(const Batch<1>& batch, LaneBlocks<Block>* blocks);
  static void decode(const Block* block, std::uint64_t count, float* x);
};

struct IQ4_K : ik::IQ4_K {
  static constexpr int kSets = 1;
  static void encode(const Batch<1>& batch, LaneBlocks<Block>* blocks);
  static void decode(const Block* block, std::uint64_t count, float* x);
};

struct IQ5_K : ik::IQ5_K {
  static constexpr int kSets = 1;
  static void encode(const Batch<1>& batch, LaneBlocks<Block>* blocks);
  static void decode(const Block* block, std::uint64_t count, float* x);
};

struct IQ6_K : ik::IQ6_K {
  static constexpr int kSets = 1;
  static void encode(const Batch<1>& batch, LaneBlocks<Block>* blocks);
  static void decode(const Block* block, std::uint64_t count, float* x);
};

inline constexpr auto kIkKKernels = kernels_of<IQ2_K, IQ3_K, IQ4_K, IQ5_K, IQ6_K>();

}  // namespace ggufmill::simd
