#pragma once
// IQ4_NL and IQ4_XS: 4-bit indices into 16 unequally spaced values (kIq4Values), in blocks of 32 with one scale each.
// Source: ggml-common.h and ggml-quants.c.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// x = d * value[q].
struct Iq4Nl {
  static constexpr std::uint32_t kTypeId = 20, kElements = 32, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ4_NL";
  struct Block {
    StoredHalf d;
    std::uint8_t qs[16];  // low nibbles: elements 0-15, high nibbles: 16-31
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
  static void pack(float d, const std::uint8_t* levels, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 15;
  static constexpr bool kHasTable = true;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// x = d * (s - 32) * value[q], with a 6-bit scale s for each of eight sub-blocks of 32.
struct Iq4Xs {
  static constexpr std::uint32_t kTypeId = 23, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ4_XS";
  struct Block {
    StoredHalf d;
    std::uint8_t scales_h[2];  // a little-endian word: high 2 bits of each scale
    std::uint8_t scales_l[4];  // low 4 bits of each scale, even sub-blocks in the low nibble
    std::uint8_t qs[128];      // as in IQ4_NL, for each sub-block
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
  // `codes` are those of the scales, as stored.
  static void pack(float d, const std::uint8_t* codes, const std::uint8_t* levels, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 15;
  static constexpr bool kHasTable = true;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

inline constexpr auto kIq4Kernels = kernels_of<Iq4Nl, Iq4Xs>();

}  // namespace ggufmill::reference
