#pragma once
// IQ1_KT to IQ4_KT, the trellis types: rows with one scale d in their header; super-blocks of 256 weights in sub-blocks
// of 32, each with a code for its scale. A group of 8 (IQ4_KT: 4) weights is a point of a code book, given by its
// index. The searches use fused operations, with sums in eight lanes. Source: ik_llama.cpp, ggml/src/ggml-common.h and
// ggml/src/iqk/iqk_quantize.cpp (MIT).

#include "plugins/ik/fields.h"
#include "plugins/ik/row_codec.h"

namespace ggufmill::ik {

struct TrellisHeader {
  StoredFloat d;
};

// x = d * kValues4[scale] * point: indices of 13 bits.
struct IQ1_KT {
  static constexpr std::uint32_t kTypeId = 158, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ1_KT";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader};
  using Header = TrellisHeader;
  struct Block {
    std::uint8_t sh[8];   // bits 0 to 3: the scale of sub-block b; bit 4 + g: bit 12 of the index of its group g
    std::uint8_t ql[32];  // byte 4 * b + g: the low eight bits
    std::uint8_t qh[16];  // nibble b / 4 of byte 4 * (b % 4) + g: bits 8 to 11
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// x = d * kValues4[scale] * point: indices of 16 bits.
struct IQ2_KT {
  static constexpr std::uint32_t kTypeId = 153, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ2_KT";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader, words_in_block(4, 32)};
  using Header = TrellisHeader;
  struct Block {
    std::uint8_t scales[4];  // nibble b / 4 of byte b % 4: the scale of sub-block b
    StoredWord ql[32];       // word 4 * b + g: the index of its group g
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// |x| = d * scale * point: 4-bit scales, indices of 16 bits, and the signs of all weights.
struct IQ3_KT {
  static constexpr std::uint32_t kTypeId = 154, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ3_KT";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader, words_in_block(4, 32)};
  using Header = TrellisHeader;
  struct Block {
    std::uint8_t scales[4];  // as in IQ2_KT
    StoredWord ql[32];
    std::uint8_t qh[32];  // bit b of byte j: weight j of sub-block b is negative
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

// x = d * (scale - 64) * point: 7-bit scales, indices of 15 bits of groups of four weights, and two code books.
struct IQ4_KT {
  static constexpr std::uint32_t kTypeId = 155, kElements = 256, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ4_KT";
  static constexpr ggufmill_field kFields[] = {kFloatInHeader, {GGUFMILL_WORD_32, GGUFMILL_IN_BLOCK, 0, 8}};
  using Header = TrellisHeader;
  struct Block {
    // Four bytes for a sub-block, little-endian. Bit 0: the second book; bits 1 to 7: the scale; three bits from
    // 8 + 3 * g on: bits 12 to 14 of the index of its group g.
    std::uint8_t shb[32];
    std::uint8_t ql[64];  // byte n = 8 * b + g: the low eight bits
    std::uint8_t qh[32];  // nibble n / 32 of byte n % 32: bits 8 to 11
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count);
};

inline constexpr auto kKtKernels = row_kernels_of<IQ1_KT, IQ2_KT, IQ3_KT, IQ4_KT>();

}  // namespace ggufmill::ik
