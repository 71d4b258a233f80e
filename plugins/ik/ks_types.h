#pragma once
// IQ2_KS to IQ5_KS, IQ4_KSS, IQ2_KL: rows with one scale d in their header; super-blocks of 256 weights in sub-blocks
// of 32, each with a code for its scale and one of two tables of levels. Source: ik_llama.cpp, ggml/src/ggml-common.h
// and ggml/src/iqk/iqk_quantize.cpp (MIT).

#include "plugins/ik/fields.h"
#include "plugins/ik/row_codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::ik {

// x = d * (scale - 16) * level: 5-bit scales, 2-bit levels. The search is the one that ik_llama.cpp takes by default on
// AVX2: fused, with sums in eight lanes. The other one, which --slow-iq2ks selects, divides the sorted values.
struct IQ2_KS {
  static constexpr std::uint32_t kTypeId = 145, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ2_KS";
  static constexpr ggufmill_field kFields[] = {kHalfInHeader, words_in_block(0, 1)};
  struct Header {
    reference::StoredHalf d;
  };
  struct Block {
    StoredWord extra;        // bit b: sub-block b uses the shifted table; bit 8 + b: the fifth bit of scale b
    std::uint8_t scales[4];  // two sub-blocks in a byte: the low four bits
    std::uint8_t qs[64];     // element j of sub-block b: bits 2 * (b % 4) of byte 32 * (b / 4) + j
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
  static void encode_row_slow(const float* x, const float* importance, Header& header, Block* blocks,
                              std::uint64_t count);
};

// x = d * (scale - 16) * level: 5-bit scales, 3-bit levels.
struct IQ3_KS {
  static constexpr std::uint32_t kTypeId = 156, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ3_KS";
  static constexpr ggufmill_field kFields[] = {kHalfInHeader, words_in_block(0, 1)};
  struct Header {
    reference::StoredHalf d;
  };
  struct Block {
    StoredWord extra;        // bit b: the fifth bit of scale b; bit 8 + b: sub-block b uses the shifted table
    std::uint8_t scales[4];  // nibble b / 4 of byte b % 4: the low four bits of scale b
    std::uint8_t qs[64];     // the low two bits of element j of sub-block b: bits 2 * (b % 4) of byte 32 * (b / 4) + j
    std::uint8_t qh[32];     // the third: bit b of byte j
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// x = d * ((scale & 254) - 127) * level: 7-bit scales, 4-bit levels.
struct IQ4_KS {
  static constexpr std::uint32_t kTypeId = 144, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ4_KS";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader};
  struct Header {
    StoredFloat d;
  };
  struct Block {
    std::uint8_t scales[8];  // bit 0: the sub-block uses the shifted table
    std::uint8_t qs[128];    // nibble j / 16 of byte 16 * b + j % 16
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// x = d * ((scale & 254) - 127) * level: 7-bit scales, 5-bit levels.
struct IQ5_KS {
  static constexpr std::uint32_t kTypeId = 152, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ5_KS";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader};
  struct Header {
    StoredFloat d;
  };
  struct Block {
    std::uint8_t scales[8];  // as in IQ4_KS
    std::uint8_t qs[128];    // the low four bits: nibble b % 2 of byte 32 * (b / 2) + j
    std::uint8_t qh[32];     // the fifth: bit b of byte j
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// As IQ4_KS, in 128 bytes: of every four levels, the number of bits that are set is even, so that one bit is left for
// the scale.
struct IQ4_KSS {
  static constexpr std::uint32_t kTypeId = 146, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ4_KSS";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader, words_in_block(0, 64)};
  struct Header {
    StoredFloat d;
  };
  struct Block {
    // Eight words for a sub-block. Bit 0 of word k: bit k of the scale. The others: a number n, where n ^ 2n has the
    // levels 2k, 2k + 16, 2k + 1, 2k + 17, the first in the low bits.
    StoredWord words[64];
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// x = d * (scale - 32) * level: 6-bit scales; the levels of two neighbours are one of 32 pairs.
struct IQ2_KL {
  static constexpr std::uint32_t kTypeId = 157, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ2_KL";
  static constexpr ggufmill_field kFields[] = {kHalfInHeader, words_in_block(0, 1)};
  struct Header {
    reference::StoredHalf d;
  };
  struct Block {
    std::uint8_t scales_high[2];  // little-endian, bits 2b and 2b + 1: the high two bits of scale b
    std::uint8_t scales_low[4];   // nibble b / 4 of byte b % 4: the low four
    std::uint8_t qs[64];          // nibble b % 2 of byte 16 * (b / 2) + j: the low four bits of pair j of sub-block b
    std::uint8_t qh[16];          // bit b of byte j: the fifth
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

inline constexpr auto kKsKernels = row_kernels_of<IQ2_KS, IQ3_KS, IQ4_KS, IQ5_KS, IQ4_KSS, IQ2_KL>();

}  // namespace ggufmill::ik
