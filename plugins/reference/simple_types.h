#pragma once
// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q8_1: blocks of 32 weights with one scale, or with one scale and one minimum.
// Source: ggml, src/ggml-quants.c and src/ggml-common.h.

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {

// x = d * (q - 8).
struct Q4_0 {
  static constexpr std::uint32_t kTypeId = 2, kElements = 32, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q4_0";
  struct Block {
    StoredHalf d;
    std::uint8_t qs[16];  // low nibbles: elements 0-15, high nibbles: 16-31
  };
  static void decode(const Block& block, float* x);
  // Levels are stored as they are.
  static void pack(float d, const std::uint8_t* levels, Block& block);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 15;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// x = d * q + m.
struct Q4_1 {
  static constexpr std::uint32_t kTypeId = 3, kElements = 32, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q4_1";
  struct Block {
    StoredHalf d, m;
    std::uint8_t qs[16];
  };
  static void decode(const Block& block, float* x);
  static void pack(float d, float m, const std::uint8_t* levels, Block& block);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 15;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// x = d * (q - 16).
struct Q5_0 {
  static constexpr std::uint32_t kTypeId = 6, kElements = 32, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q5_0";
  struct Block {
    StoredHalf d;
    std::uint8_t qh[4];  // bit i: the fifth bit of element i
    std::uint8_t qs[16];
  };
  static void decode(const Block& block, float* x);
  // Levels are stored as they are.
  static void pack(float d, const std::uint8_t* levels, Block& block);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 31;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// x = d * q + m.
struct Q5_1 {
  static constexpr std::uint32_t kTypeId = 7, kElements = 32, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q5_1";
  struct Block {
    StoredHalf d, m;
    std::uint8_t qh[4];
    std::uint8_t qs[16];
  };
  static void decode(const Block& block, float* x);
  static void pack(float d, float m, const std::uint8_t* levels, Block& block);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
  static constexpr int kGroup = 32, kMaxLevel = 31;
  static void levels(const Block& block, std::uint8_t* levels);
  static void put_levels(const std::uint8_t* levels, Block& block);
  static void lines(const Block& block, float* scales, float* offsets);
};

// x = d * q.
struct Q8_0 {
  static constexpr std::uint32_t kTypeId = 8, kElements = 32, kFlags = 0;
  static constexpr const char* kName = "Q8_0";
  struct Block {
    StoredHalf d;
    std::uint8_t qs[32];  // signed
  };
  static void decode(const Block& block, float* x);
  // Levels are stored as they are.
  static void pack(float d, const std::uint8_t* levels, Block& block);
  static void encode(const float* x, Block& block);
};

// x = d * q, and s is d times the sum of all q. Format of the activations that are multiplied with types that have a
// minimum.
struct Q8_1 {
  static constexpr std::uint32_t kTypeId = 9, kElements = 32, kFlags = 0;
  static constexpr const char* kName = "Q8_1";
  struct Block {
    StoredHalf d, s;
    std::uint8_t qs[32];  // signed
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
};

inline constexpr auto kSimpleKernels = kernels_of<Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1>();

}  // namespace ggufmill::reference
