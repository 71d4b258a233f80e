#pragma once
// Q1_0 and Q2_0: one or two bits per weight with a single scale. Source: ggml, src/ggml-quants.c and src/ggml-common.h.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// x = d or -d, where d is the mean magnitude.
struct Q1_0 {
  static constexpr std::uint32_t kTypeId = 41, kElements = 128, kFlags = 0;
  static constexpr const char* kName = "Q1_0";
  struct Block {
    StoredHalf d;
    std::uint8_t qs[16];  // bit i % 8 of byte i / 8 is set if element i is not negative
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

// x = d * (q - 1), where d is the greatest magnitude.
struct Q2_0 {
  static constexpr std::uint32_t kTypeId = 42, kElements = 64, kFlags = 0;
  static constexpr const char* kName = "Q2_0";
  struct Block {
    StoredHalf d;
    std::uint8_t qs[16];  // four consecutive elements per byte, starting at the low bits
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kBitKernels = kernels_of<Q1_0, Q2_0>();

}  // namespace ggufmill::reference
