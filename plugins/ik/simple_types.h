#pragma once
// Q6_0, Q8_KV, and the ternary types IQ1_BN and IQ2_BN.
// Source: ik_llama.cpp, ggml/src/ggml-quants.c and ggml/src/iqk/iqk_quantize.cpp (MIT).

#include "plugins/ik/fields.h"
#include "plugins/ik/row_codec.h"
#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::ik {

// x = d * (q - 32): 6-bit q.
struct Q6_0 {
  static constexpr std::uint32_t kTypeId = 133, kElements = 32, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "Q6_0";
  static constexpr ggufmill_field kFields[] = {half_in_block(0)};
  struct Block {
    reference::StoredHalf d;
    std::uint8_t qh[8];   // the high two bits of q[j]: bits 4 * (j / 8 % 2) + 2 * (j / 16) of byte j % 8
    std::uint8_t qs[16];  // the low four: nibble j / 16 of byte j % 16
  };
  static void decode(const Block& block, float* x);
  static void encode(const float* x, Block& block);
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
};

// x = d * q: 8-bit q, and their sum in the header.
struct Q8_KV {
  static constexpr std::uint32_t kTypeId = 151, kElements = 32, kFlags = 0;
  static constexpr const char* kName = "Q8_KV";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader, {GGUFMILL_WORD_32, GGUFMILL_IN_ROW_HEADER, 4, 1}};
  struct Header {
    StoredFloat d;
    std::uint8_t sum[4];  // little-endian
  };
  struct Block {
    std::uint8_t q[32];
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// x = d * t, where t is -1, 0, or 1.
struct IQ1_BN {
  static constexpr std::uint32_t kTypeId = 134, kElements = 64, kFlags = 0;
  static constexpr const char* kName = "IQ1_BN";
  static constexpr ggufmill_field kFields[] = {kHalfInHeader};
  struct Header {
    reference::StoredHalf d;
  };
  struct Block {
    std::uint8_t ql[12];  // five trits in a byte, three bytes for 16 weights
    std::uint8_t extra;   // trit k: the 16th weight of group k
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};
struct IQ2_BN {
  static constexpr std::uint32_t kTypeId = 135, kElements = 64, kFlags = 0;
  static constexpr const char* kName = "IQ2_BN";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader};
  struct Header {
    StoredFloat d;
  };
  struct Block {
    std::uint8_t qs[16];  // weight j: bits 2 * (j / 16) of byte j % 16
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

inline constexpr auto kQ60Kernels = reference::kernels_of<Q6_0>();
inline constexpr auto kSimpleRowKernels = row_kernels_of<Q8_KV, IQ1_BN, IQ2_BN>();

}  // namespace ggufmill::ik
