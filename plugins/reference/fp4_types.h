#pragma once
// MXFP4 and NVFP4: 4-bit floats (E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives) under small float scales.
// Source: ggml, src/ggml-quants.c, src/ggml-common.h and src/ggml-impl.h.

#include "plugins/reference/codec.h"

namespace ggufmill::reference {

// One power of two (E8M0) for 32 weights.
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

// One unsigned E4M3 for each 16 of 64 weights.
struct NVFP4 {
  static constexpr std::uint32_t kTypeId = 40, kElements = 64, kFlags = 0;
  static constexpr const char* kName = "NVFP4";
  struct Block {
    std::uint8_t d[4];
    std::uint8_t qs[32];  // 8 bytes a group; low nibbles: its elements 0-7, high nibbles: 8-15
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kFp4Kernels = kernels_of<MXFP4, NVFP4>();

}  // namespace ggufmill::reference
