#pragma once
// Q2_K, Q3_K, Q4_K, Q5_K and Q6_K: super-blocks of 256 weights in groups of 16 or 32. Each group has a scale, and for
// some types a minimum, that is itself quantized. Q8_K is the format of the activations that are multiplied with them.
// Source: ggml, src/ggml-quants.c and src/ggml-common.h.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

inline constexpr int kSuperBlock = 256;

// 16 groups of 16: x = d * scale * q - dmin * minimum, with 2-bit q.
struct Q2_K {
  static constexpr std::uint32_t kTypeId = 10, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q2_K";
  struct Block {
    std::uint8_t scales[16];  // low nibble: scale, high nibble: minimum
    std::uint8_t qs[64];      // see crumbs.h
    StoredHalf d, dmin;
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
  // `scales` and `minimums` are codes, one of each for a group.
  static void pack(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* minimums,
                   const std::uint8_t* levels, Block& block);
  static constexpr int kGroup = 16, kMaxLevel = 3;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// 16 groups of 16: x = d * (scale - 32) * (q - 4), with 3-bit q.
struct Q3_K {
  static constexpr std::uint32_t kTypeId = 11, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q3_K";
  struct Block {
    std::uint8_t hmask[32];   // bit i / 32 of byte i % 32: the third bit of element i
    std::uint8_t qs[64];      // the low two bits, see crumbs.h
    std::uint8_t scales[12];  // 16 6-bit values: low nibbles in bytes 0-7, upper two bits in bytes 8-11
    StoredHalf d;
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
  // `codes` and `levels` are stored as they are, that is, shifted to be positive.
  static void pack(float d, const std::uint8_t* codes, const std::uint8_t* levels, Block& block);
  static constexpr int kGroup = 16, kMaxLevel = 7;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// 8 groups of 32: x = d * scale * q - dmin * minimum, with 4-bit q.
struct Q4_K {
  static constexpr std::uint32_t kTypeId = 12, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q4_K";
  struct Block {
    StoredHalf d, dmin;
    std::uint8_t scales[12];  // 8 scales and 8 minimums of 6 bits each
    std::uint8_t qs[128];     // 32 bytes per pair of groups: the first in the low nibbles, the second in the high ones
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
  // `scales` and `minimums` are codes, one of each for a group.
  static void pack(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* minimums,
                   const std::uint8_t* levels, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 15;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// Like Q4_K, with 5-bit q.
struct Q5_K {
  static constexpr std::uint32_t kTypeId = 13, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q5_K";
  struct Block {
    StoredHalf d, dmin;
    std::uint8_t scales[12];
    std::uint8_t qh[32];  // bit g of byte i: the fifth bit of element i of group g
    std::uint8_t qs[128];
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
  // `scales` and `minimums` are codes, one of each for a group.
  static void pack(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* minimums,
                   const std::uint8_t* levels, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 31;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// 16 groups of 16: x = d * scale * (q - 32), with 6-bit q and signed 8-bit scales.
struct Q6_K {
  static constexpr std::uint32_t kTypeId = 14, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q6_K";
  struct Block {
    std::uint8_t ql[128];     // low nibbles: 64 bytes per 128 elements, with elements i and i + 64 in one byte
    std::uint8_t qh[64];      // upper two bits, see crumbs.h
    std::uint8_t scales[16];  // signed
    StoredHalf d;
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
  // `codes` and `levels` are stored as they are, that is, shifted to be positive; codes of scales as signed bytes.
  static void pack(float d, const std::uint8_t* codes, const std::uint8_t* levels, Block& block);
  static constexpr int kGroup = 16, kMaxLevel = 63;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// x = d * q, with 8-bit q; also stores the sums of q in 16 groups of 16.
struct Q8_K {
  static constexpr std::uint32_t kTypeId = 15, kElements = kSuperBlock, kFlags = 0;
  static constexpr const char* kName = "Q8_K";
  struct Block {
    std::uint8_t d[4];      // a float, little-endian
    std::uint8_t qs[256];   // signed
    std::uint8_t sums[32];  // 16 signed 16-bit integers, little-endian
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kKKernels = kernels_of<Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K>();

}  // namespace ggufmill::reference
