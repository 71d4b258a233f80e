#pragma once
// IQ1_S and IQ1_M: super-blocks of 256 weights in groups of 8. Each group is an index into a code book of 2048 points
// with coordinates -1, 0 and 1, which are shifted up or down by 1/8. Source: ggml-common.h and ggml-quants.c.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// x = d * (2 s + 1) * (value + shift), with one 3-bit scale s and one shift per 32 weights.
struct Iq1S {
  static constexpr std::uint32_t kTypeId = 19, kElements = 256, kFlags = GGUFMILL_NEEDS_IMPORTANCE;
  static constexpr const char* kName = "IQ1_S";
  struct Block {
    StoredHalf d;
    std::uint8_t qs[32];  // low 8 bits of the indices
    std::uint8_t qh[16];  // a little-endian word per 32 weights: 4 * 3 high bits, the scale, 1 for a shift down
  };
  static void decode(const Block& block, float* x);
  static std::int32_t encode(const float* x, const float* importance, Block& block);  // GGUFMILL_OK or kNoBookPoint
};

// Like IQ1_S, but with one scale per 16 weights and one shift per 8 weights.
struct Iq1M {
  static constexpr std::uint32_t kTypeId = 29, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ1_M";
  struct Block {
    std::uint8_t qs[32];     // low 8 bits of the indices
    std::uint8_t qh[16];     // per 16 weights, for each of 2 groups: 3 high bits and a bit set for a shift down
    std::uint8_t scales[8];  // four little-endian words: four 3-bit scales, then a nibble of d, lowest first
  };
  static void decode(const Block& block, float* x);
  static std::int32_t encode(const float* x, const float* importance, Block& block);  // GGUFMILL_OK or kNoBookPoint
};

inline constexpr auto kIq1Kernels = kernels_of<Iq1S, Iq1M>();

}  // namespace ggufmill::reference
