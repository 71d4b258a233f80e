#pragma once
// The rows of IQ1_S_R4 and IQ1_M_R4: blocks of 32 weights in groups of 8, each an index into the code book of IQ1_S,
// and one scale in the header. ik_llama.cpp knows these rows only in groups of four, which the program interleaves; the
// names and ids here are of this module. Source: ik_llama.cpp, ggml/src/iqk/iqk_quantize.cpp (quantize_iq1_s_r4,
// quantize_iq1_m_r4) and ggml/src/ggml-quants.c (iq1s_process_1block, iq1m_process_1block) (MIT).

#include "plugins/ik/fields.h"
#include "plugins/ik/row_codec.h"
#include "plugins/reference/floats.h"

namespace ggufmill::ik {

// x = d * (2 s + 1) * (value + shift), with one 3-bit scale s and one shift for the block.
struct IQ1_S_R1 {
  static constexpr std::uint32_t kTypeId = GGUFMILL_FIRST_FOREIGN_TYPE + 219, kElements = 32;
  static constexpr std::uint32_t kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ1_S_R1";
  static constexpr ggufmill_field kFields[] = {kHalfInHeader, words_in_block(4, 1)};
  struct Header {
    reference::StoredHalf d;
  };
  struct Block {
    std::uint8_t qs[4];  // low 8 bits of the indices
    StoredWord qh;       // 4 * 3 high bits, the scale, 1 for a shift down
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  // Returns GGUFMILL_OK or GGUFMILL_CANNOT_REPRESENT.
  static std::int32_t encode_row(const float* x, const float* importance, Header& header, Block* blocks,
                                 std::uint64_t count);
};

// x = d * s * (value + shift), with one 4-bit scale s for 16 weights and one shift for 8.
struct IQ1_M_R1 {
  static constexpr std::uint32_t kTypeId = GGUFMILL_FIRST_FOREIGN_TYPE + 229, kElements = 32;
  static constexpr std::uint32_t kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ1_M_R1";
  static constexpr ggufmill_field kFields[] = {kHalfInHeader};
  struct Header {
    reference::StoredHalf d;
  };
  struct Block {
    std::uint8_t qs[4];   // low 8 bits of the indices
    std::uint8_t qh[2];   // for each of 2 groups of a half: 3 high bits and a bit set for a shift down
    std::uint8_t scales;  // a nibble for each half
  };
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  // Returns GGUFMILL_OK or GGUFMILL_CANNOT_REPRESENT.
  static std::int32_t encode_row(const float* x, const float* importance, Header& header, Block* blocks,
                                 std::uint64_t count);
};

inline constexpr auto kIq1RowKernels = row_kernels_of<IQ1_S_R1, IQ1_M_R1>();

}  // namespace ggufmill::ik
