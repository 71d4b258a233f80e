#pragma once
// Codecs of the IQ2 and IQ3 types, parameterized by their formats (plugins/reference/iq_format.h).

#include "plugins/reference/iq_codec.h"
#include "plugins/simd/codec.h"

namespace ggufmill::simd {

template <class Format>
struct LatticeCodec {
  static constexpr std::uint32_t kTypeId = Format::kTypeId, kElements = 256, kFlags = Format::kFlags;
  static constexpr const char* kName = Format::kName;
  static constexpr int kSets = 1;
  using Block = typename Format::Block;

  static void decode(const Block* block, std::uint64_t count, float* x);
  static std::int32_t encode(const Batch<kSets>& batch, Block* block, std::size_t count);
};

}  // namespace ggufmill::simd
