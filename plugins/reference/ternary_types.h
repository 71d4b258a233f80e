#pragma once
// TQ1_0 and TQ2_0: super-blocks of 256 weights that are -1, 0 or 1 times one scale. Source: ggml, src/ggml-quants.c and
// src/ggml-common.h.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// Five base-3 digits per byte. The byte is a fraction of 256, so multiplying it by three shifts the next digit out at
// the top.
struct TQ1_0 {
  static constexpr std::uint32_t kTypeId = 34, kElements = 256, kFlags = 0;
  static constexpr const char* kName = "TQ1_0";
  struct Block {
    std::uint8_t qs[48];  // 32 bytes for elements 0-159, 16 bytes for elements 160-239
    std::uint8_t qh[4];   // four digits per byte, for elements 240-255
    StoredHalf d;
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

struct TQ2_0 {
  static constexpr std::uint32_t kTypeId = 35, kElements = 256, kFlags = 0;
  static constexpr const char* kName = "TQ2_0";
  struct Block {
    std::uint8_t qs[64];  // see crumbs.h
    StoredHalf d;
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kTernaryKernels = kernels_of<TQ1_0, TQ2_0>();

}  // namespace ggufmill::reference
