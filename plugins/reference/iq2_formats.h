#pragma once
// IQ2_XXS, IQ2_XS and IQ2_S: formats for iq_codec.h. Groups of 8 weights, with three levels of magnitude. Source of
// layouts and constants: ggml-common.h and ggml-quants.c.

#include "plugins/reference/iq_format.h"

namespace ggufmill::reference {

struct Iq2XxsFormat {
  static constexpr std::uint32_t kTypeId = 16, kFlags = GGUFMILL_NEEDS_IMPORTANCE;
  static constexpr const char* kName = "IQ2_XXS";
  static constexpr int kSubBlock = 32;
  static constexpr bool kEvenSigns = true, kClearsFlat = true, kFitsGuess = true;
  static constexpr ScaleRule kRule{6, 0.1f, Revisit::kAll};
  static constexpr float kMin = 1e-15f, kMeanFactor = 1, kFudge = 1;
  static constexpr const CodeBook<Ternary, 256>& kBook = kIq2XxsBook;
  static constexpr const std::uint8_t* kMagnitudes = kIq2Magnitudes;
  static const Lattice<Ternary>& lattice() { return iq2_xxs_lattice(); }

  struct Block {
    StoredHalf d;
    std::uint8_t qs[64];  // per 32 weights: 4 index bytes, then a word of 4 * 7 sign bits with the scale on top
  };
  static std::uint8_t* word(Block& block, int sub) { return block.qs + 8 * sub + 4; }
  static std::uint32_t word(const Block& block, int sub) { return load_u32(block.qs + 8 * sub + 4); }

  static int get_index(const Block& block, int group) { return block.qs[group / 4 * 8 + group % 4]; }
  static unsigned get_signs(const Block& block, int eight) { return word(block, eight / 4) >> (eight % 4 * 7) & 127; }
  static unsigned get_scale(const Block& block, int sub) { return word(block, sub) >> 28; }
  static float scale(float d, unsigned stored) { return d * (0.5f + static_cast<float>(stored)) * 0.25f; }

  static void put_index(Block& block, int group, unsigned index) { put_u8(block.qs[group / 4 * 8 + group % 4], index); }
  static void put_signs(Block& block, int eight, std::uint32_t signs) {
    put_u32(word(block, eight / 4), signs << (eight % 4 * 7));
  }
  static void put_scale(Block& block, int sub, std::uint32_t scale) { put_u32(word(block, sub), scale << 28); }
};

struct Iq2XsBlock {
  StoredHalf d;
  std::uint8_t qs[64];  // one 16-bit word per 8 weights: 9 index bits, 7 sign bits
  std::uint8_t scales[8];
};

struct Iq2XsFormat : NibbleScales<Iq2XsBlock> {
  using Block = Iq2XsBlock;
  static constexpr std::uint32_t kTypeId = 17, kFlags = GGUFMILL_NEEDS_IMPORTANCE;
  static constexpr const char* kName = "IQ2_XS";
  static constexpr int kSubBlock = 16;
  static constexpr bool kEvenSigns = true, kClearsFlat = true, kFitsGuess = false;
  static constexpr ScaleRule kRule{9, 0.1f, Revisit::kBesideBook};
  static constexpr float kMin = 1e-15f, kMeanFactor = 1, kFudge = 1;
  static constexpr const CodeBook<Ternary, 512>& kBook = kIq2XsBook;
  static constexpr const std::uint8_t* kMagnitudes = kIq2Magnitudes;
  static const Lattice<Ternary>& lattice() { return iq2_xs_lattice(); }

  static int get_index(const Block& block, int group) { return load_u16(block.qs + 2 * group) & 511; }
  static unsigned get_signs(const Block& block, int eight) { return load_u16(block.qs + 2 * eight) >> 9; }
  static float scale(float d, unsigned stored) { return d * (0.5f + static_cast<float>(stored)) * 0.25f; }

  static void put_index(Block& block, int group, std::uint32_t index) { put_u16(block.qs + 2 * group, index); }
  static void put_signs(Block& block, int eight, std::uint32_t signs) { put_u16(block.qs + 2 * eight, signs << 9); }
};

struct Iq2SBlock {
  StoredHalf d;
  std::uint8_t qs[32];  // low 8 bits of the indices
  std::uint8_t signs[32];
  std::uint8_t qh[8];  // high 2 bits of the indices
  std::uint8_t scales[8];
};

struct Iq2SFormat : NibbleScales<Iq2SBlock> {
  using Block = Iq2SBlock;
  static constexpr std::uint32_t kTypeId = 22, kFlags = GGUFMILL_ACCEPTS_IMPORTANCE;
  static constexpr const char* kName = "IQ2_S";
  static constexpr int kSubBlock = 16;
  static constexpr bool kEvenSigns = false, kClearsFlat = false, kFitsGuess = false;
  static constexpr ScaleRule kRule{9, 0.1f, Revisit::kBesideBook};
  static constexpr float kMin = 1e-8f, kMeanFactor = 2, kFudge = 0.9875f;
  static constexpr const CodeBook<Ternary, 1024>& kBook = kIq2SBook;
  static constexpr const std::uint8_t* kMagnitudes = kIq2Magnitudes;
  static const Lattice<Ternary>& lattice() { return iq2_s_lattice(); }
  static float plain_weight(float x, float mean_square) { return 0.25f * mean_square + x * x; }

  static int get_index(const Block& block, int group) {
    return block.qs[group] | (block.qh[group / 4] >> (group % 4 * 2) & 3) << 8;
  }
  static unsigned get_signs(const Block& block, int eight) { return block.signs[eight]; }
  static float scale(float d, unsigned stored) { return d * (0.5f + static_cast<float>(stored)) * 0.25f; }

  static void put_index(Block& block, int group, unsigned index) {
    put_u8(block.qs[group], index & 255);
    put_u8(block.qh[group / 4], index >> 8 << (group % 4 * 2));
  }
  static void put_signs(Block& block, int eight, unsigned signs) { put_u8(block.signs[eight], signs); }
};

}  // namespace ggufmill::reference
