#pragma once
// Q2_K, Q3_K, Q4_K, Q5_K, Q6_K: super-blocks of 256 weights in groups of 16 or 32, each group with a scale (and for
// some a minimum) that is itself quantized. Q8_K: what activations become that are multiplied with them. Source: ggml,
// src/ggml-quants.c and src/ggml-common.h.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

inline constexpr int kSuperBlock = 256;

// 16 groups of 16: x = d * scale * q - dmin * minimum, q of 2 bits
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
};

// 16 groups of 16: x = d * (scale - 32) * (q - 4), q of 3 bits
struct Q3_K {
  static constexpr std::uint32_t kTypeId = 11, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q3_K";
  struct Block {
    std::uint8_t hmask[32];   // bit i / 32 of byte i % 32: the third bit of element i
    std::uint8_t qs[64];      // the low two bits, see crumbs.h
    std::uint8_t scales[12];  // 16 of 6 bits: nibbles in bytes 0-7, upper pairs in bytes 8-11
    StoredHalf d;
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

// 8 groups of 32: x = d * scale * q - dmin * minimum, q of 4 bits
struct Q4_K {
  static constexpr std::uint32_t kTypeId = 12, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q4_K";
  struct Block {
    StoredHalf d, dmin;
    std::uint8_t scales[12];  // 8 scales and 8 minimums of 6 bits
    std::uint8_t qs[128];     // 32 bytes a pair of groups: the first in the low nibbles, the second in the high ones
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

// As Q4_K, q of 5 bits
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
};

// 16 groups of 16: x = d * scale * (q - 32), q of 6 bits, scale signed of 8
struct Q6_K {
  static constexpr std::uint32_t kTypeId = 14, kElements = kSuperBlock, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q6_K";
  struct Block {
    std::uint8_t ql[128];     // low nibbles; a half of 128 elements in 64 bytes, element i with element i + 64
    std::uint8_t qh[64];      // upper pairs, see crumbs.h
    std::uint8_t scales[16];  // signed
    StoredHalf d;
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, const float* importance, Block& block);
};

// x = d * q, q of 8 bits; and the sums of q in 16 groups of 16
struct Q8_K {
  static constexpr std::uint32_t kTypeId = 15, kElements = kSuperBlock, kFlags = 0;
  static constexpr const char* kName = "Q8_K";
  struct Block {
    std::uint8_t d[4];      // a float, little-endian
    std::uint8_t qs[256];   // signed
    std::uint8_t sums[32];  // 16 signed numbers of 16 bits, little-endian
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kKKernels = kernels_of<Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K>();

}  // namespace ggufmill::reference
