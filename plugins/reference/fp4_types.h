#pragma once
// MXFP4 and NVFP4: 4-bit floats (E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives) with small float scales. Source:
// ggml, src/ggml-quants.c, src/ggml-common.h and src/ggml-impl.h.

#include "plugins/reference/codec.h"

namespace ggufmill::reference {

// One power of two (E8M0) per 32 weights.
struct MXFP4 {
  static constexpr std::uint32_t kTypeId = 39, kElements = 32, kFlags = 0;
  static constexpr const char* kName = "MXFP4";
  struct Block {
    std::uint8_t e;
    std::uint8_t qs[16];  // low nibbles: elements 0-15, high nibbles: 16-31
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

// 64 weights with one unsigned E4M3 scale per 16 weights.
struct NVFP4 {
  static constexpr std::uint32_t kTypeId = 40, kElements = 64, kFlags = 0;
  static constexpr const char* kName = "NVFP4";
  struct Block {
    std::uint8_t d[4];
    std::uint8_t qs[32];  // 8 bytes per group; low nibbles: elements 0-7 of the group, high nibbles: 8-15
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kFp4Kernels = kernels_of<MXFP4, NVFP4>();

}  // namespace ggufmill::reference
