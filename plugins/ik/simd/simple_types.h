#pragma once
// Kernels of Q6_0, Q8_KV, IQ1_BN and IQ2_BN, with the same results as those of plugins/ik/simple_types.h.

#include "plugins/ik/simple_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct Q6_0 : ik::Q6_0 {
  static constexpr int kSets = 1;
  static constexpr bool kWeighsRows = true;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static void encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks);
};

struct Q8_KV : ik::Q8_KV {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

struct IQ1_BN : ik::IQ1_BN {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

struct IQ2_BN : ik::IQ2_BN {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

inline constexpr auto kIkQ60Kernels = kernels_of<Q6_0>();
inline constexpr auto kIkSimpleRowKernels = ik::row_kernels_of<Q8_KV, IQ1_BN, IQ2_BN>();

}  // namespace ggufmill::simd
