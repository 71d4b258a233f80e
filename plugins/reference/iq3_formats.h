#pragma once
// IQ3_XXS and IQ3_S: formats for iq_codec.h. Groups of 4 weights, with eight levels of magnitude. Source of layouts and
// constants: ggml-common.h and ggml-quants.c.

#include <algorithm>
#include <limits>

#include "plugins/reference/iq_format.h"

namespace ggufmill::reference {

struct Iq3XxsFormat {
  static constexpr std::uint32_t kTypeId = 18, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ3_XXS";
  static constexpr int kSubBlock = 32;
  static constexpr bool kEvenSigns = true, kClearsFlat = true, kFitsGuess = false;
  static constexpr ScaleRule kRule{15, 0.2f, Revisit::kBesideBook};
  static constexpr float kMin = 1e-8f, kMeanFactor = 2, kFudge = 1.0125f;
  static constexpr const CodeBook<Octal, 256>& kBook = kIq3XxsBook;
  static constexpr const std::uint8_t* kMagnitudes = kIq3XxsMagnitudes;
  static const Lattice<Octal>& lattice() { return iq3_xxs_lattice(); }
  static float plain_weight(float x, float) { return x * x; }

  struct Block {
    StoredHalf d;
    std::uint8_t qs[64];
    std::uint8_t words[32];  // per 32 weights: 4 * 7 sign bits with the scale on top
  };
  static std::uint32_t word(const Block& block, int sub) { return load_u32(block.words + 4 * sub); }

  static int get_index(const Block& block, int group) { return block.qs[group]; }
  static unsigned get_signs(const Block& block, int eight) { return word(block, eight / 4) >> (eight % 4 * 7) & 127; }
  static unsigned get_scale(const Block& block, int sub) { return word(block, sub) >> 28; }
  static float scale(float d, unsigned stored) { return d * (0.5f + static_cast<float>(stored)) * 0.5f; }

  static void put_index(Block& block, int group, unsigned index) { put_u8(block.qs[group], index); }
  static void put_signs(Block& block, int eight, std::uint32_t signs) {
    put_u32(block.words + eight / 4 * 4, signs << (eight % 4 * 7));
  }
  static void put_scale(Block& block, int sub, std::uint32_t scale) { put_u32(block.words + 4 * sub, scale << 28); }
};

struct Iq3SBlock {
  StoredHalf d;
  std::uint8_t qs[64];  // low 8 bits of the indices
  std::uint8_t qh[8];   // ninth bits of the indices
  std::uint8_t signs[32];
  std::uint8_t scales[4];
};

struct Iq3SFormat : NibbleScales<Iq3SBlock> {
  using Block = Iq3SBlock;
  static constexpr std::uint32_t kTypeId = 21, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ3_S";
  static constexpr int kSubBlock = 32;
  static constexpr bool kEvenSigns = false, kClearsFlat = false, kFitsGuess = false;
  static constexpr ScaleRule kRule{9, 0.2f, Revisit::kAllIfAnyBeside};
  static constexpr float kMin = std::numeric_limits<float>::denorm_min();  // only zeros are below it
  static constexpr float kMeanFactor = 2, kFudge = 1.033f;
  static constexpr const CodeBook<Octal, 512>& kBook = kIq3SBook;
  static constexpr const std::uint8_t* kMagnitudes = kIq3SMagnitudes;
  static const Lattice<Octal>& lattice() { return iq3_s_lattice(); }
  static float plain_weight(float x, float) { return x * x; }

  static int get_index(const Block& block, int group) {
    return block.qs[group] | (block.qh[group / 8] >> (group % 8) & 1) << 8;
  }
  static unsigned get_signs(const Block& block, int eight) { return block.signs[eight]; }
  static float scale(float d, unsigned stored) { return d * static_cast<float>(1 + 2 * stored); }

  static void put_index(Block& block, int group, unsigned index) {
    put_u8(block.qs[group], index & 255);
    put_u8(block.qh[group / 8], index >> 8 << (group % 8));
  }
  static void put_signs(Block& block, int eight, unsigned signs) { put_u8(block.signs[eight], signs); }

  // Reproduces the behavior of ggml's encoder, which does not reserve space for a sub-block of zeros: the low index
  // bits and the signs of the following sub-blocks are stored one sub-block early, whereas the ninth bits and the
  // scales keep their positions. Such a super-block decodes to wrong values, but its bytes are the same as in ggml. Bit
  // s of `zeros` is set if sub-block s is all zero.
  static void close_gaps(Block& block, unsigned zeros) {
    const Block wide = block;
    std::fill_n(block.qs, 64, std::uint8_t{0});
    std::fill_n(block.signs, 32, std::uint8_t{0});
    int to = 0;
    for (int sub = 0; sub < 8; ++sub) {
      if (zeros >> sub & 1) continue;
      std::copy_n(wide.qs + 8 * sub, 8, block.qs + 8 * to);
      std::copy_n(wide.signs + 4 * sub, 4, block.signs + 4 * to);
      ++to;
    }
  }
};

}  // namespace ggufmill::reference
