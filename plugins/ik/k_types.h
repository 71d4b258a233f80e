#pragma once
// IQ2_K to IQ6_K: super-blocks of 256 weights in sub-blocks of 16, each with a scale and one of two tables of levels.
// Source: ik_llama.cpp, ggml/src/ggml-common.h and ggml/src/iqk/iqk_quantize.cpp (MIT).

#include "plugins/ik/fields.h"
#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::ik {

using reference::StoredHalf;

inline constexpr int kSuperBlock = 256, kSubBlock = 16, kSubBlocks = 16;

// x = d * (scale - 8) * level: 4-bit scales, 2-bit levels.
struct IQ2_K {
  static constexpr std::uint32_t kTypeId = 137, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ2_K";
  static constexpr ggufmill_field kFields[] = {half_in_block(0), words_in_block(2, 1)};
  struct Block {
    StoredHalf d;
    StoredWord extra;        // bit b: sub-block b uses the shifted table
    std::uint8_t scales[8];  // two sub-blocks in a byte
    std::uint8_t qs[64];     // element i: bits 2 * (i / 32 % 4) of byte 32 * (i / 128) + i % 32
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

// x = d * (2 * scale + 1) * level, or its negative: 4-bit scales, 3-bit levels.
struct IQ3_K {
  static constexpr std::uint32_t kTypeId = 138, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ3_K";
  static constexpr ggufmill_field kFields[] = {half_in_block(0), words_in_block(2, 2)};
  struct Block {
    StoredHalf d;
    StoredWord extra, negative;  // bit b: of sub-block b
    std::uint8_t scales[8];
    std::uint8_t qs[64];  // the low two bits, as in IQ2_K
    std::uint8_t qh[32];  // bit i / 32 of byte i % 32: the third bit of element i
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

// x = d * (scale - 32) * level: 6-bit scales, 4-bit levels.
struct IQ4_K {
  static constexpr std::uint32_t kTypeId = 139, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ4_K";
  static constexpr ggufmill_field kFields[] = {half_in_block(0), words_in_block(2, 1)};
  struct Block {
    StoredHalf d;
    StoredWord extra;
    std::uint8_t scales_high[4];  // two bits of four sub-blocks in a byte
    std::uint8_t scales_low[8];   // four bits of two sub-blocks in a byte
    std::uint8_t qs[128];         // nibble i / 16 % 2 of byte 16 * (i / 32) + i % 16
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

// x = d * (scale - 32) * level: 6-bit scales, 5-bit levels.
struct IQ5_K {
  static constexpr std::uint32_t kTypeId = 140, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ5_K";
  static constexpr ggufmill_field kFields[] = {half_in_block(0), words_in_block(2, 1)};
  struct Block {
    StoredHalf d;
    StoredWord extra;
    std::uint8_t scales_high[4], scales_low[8];  // as in IQ4_K
    std::uint8_t qs[128];                        // nibble i / 32 % 2 of byte 32 * (i / 64) + i % 32
    std::uint8_t qh[32];                         // bit i / 32 of byte i % 32: the fifth bit
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

// x = d * scale * level: 8-bit signed scales, 6-bit levels. The levels are those of a cubic polynomial; its integer
// values are used to find them.
struct IQ6_K {
  static constexpr std::uint32_t kTypeId = 141, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ6_K";
  static constexpr ggufmill_field kFields[] = {half_in_block(0), words_in_block(2, 1)};
  struct Block {
    StoredHalf d;
    StoredWord extra;
    std::uint8_t scales[16];
    std::uint8_t qs[128];  // the low four bits, as in IQ5_K
    std::uint8_t qh[64];   // bits 2 * (i / 32 % 4) of byte 32 * (i / 128) + i % 32: the high two bits
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

inline constexpr auto kKKernels = reference::kernels_of<IQ2_K, IQ3_K, IQ4_K, IQ5_K, IQ6_K>();

}  // namespace ggufmill::ik
