#pragma once
// IQ1_S and IQ1_M. The formats are described in plugins/reference/iq1_types.h.

#include "plugins/reference/iq1_types.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

struct Iq1S : reference::Iq1S {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static std::int32_t encode(const Batch<kSets>& batch, Block* block, std::size_t count);
};

struct Iq1M : reference::Iq1M {
  static constexpr int kSets = 1;
  static void decode(const Block* block, std::uint64_t count, float* x);
  static std::int32_t encode(const Batch<kSets>& batch, Block* block, std::size_t count);
};

inline constexpr auto kIq1Kernels = kernels_of<Iq1S, Iq1M>();

}  // namespace ggufmill::simd
