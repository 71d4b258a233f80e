#pragma once
// IQ1_S and IQ1_M: super-blocks of 256 weights in groups of 8, each an index into a book of 2048 points with
// coordinates -1, 0 and 1, which a shift of an eighth moves up or down. Source: ggml-common.h and ggml-quants.c.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// x = d * (2 s + 1) * (value + shift); one scale s of 3 bits and one shift for each 32 weights
struct Iq1S {
  static constexpr std::uint32_t kTypeId = 19, kElements = 256, kFlags = GGUFMILL_NEEDS_IMPORTANCE;
  static constexpr const char* kName = "IQ1_S";
  struct Block {
    StoredHalf d;
    std::uint8_t qs[32];  // low 8 bits of the indices
    std::uint8_t qh[16];  // little-endian words per 32 weights: 4 * 3 high bits, the scale, 1 for a shift down
  };
  static void decode(const Block& block, float* x);
  static std::int32_t encode(const float* x, const float* importance, Block& block);  // GGUFMILL_OK or kNoBookPoint
};

// The same with one scale for each 16 weights and one shift for each 8.
struct Iq1M {
  static constexpr std::uint32_t kTypeId = 29, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ1_M";
  struct Block {
    std::uint8_t qs[32];     // low 8 bits of the indices
    std::uint8_t qh[16];     // per 16 weights: 3 high bits and a bit for a shift down, twice
    std::uint8_t scales[8];  // four little-endian words: 4 * 3 bits, and on top a nibble of d, lowest first
  };
  static void decode(const Block& block, float* x);
  static std::int32_t encode(const float* x, const float* importance, Block& block);  // GGUFMILL_OK or kNoBookPoint
};

inline constexpr auto kIq1Kernels = kernels_of<Iq1S, Iq1M>();

}  // namespace ggufmill::reference
