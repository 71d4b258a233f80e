#pragma once
// Codec of the IQ2 and IQ3 types, parameterized by a format (iq_format.h). This file handles the entire super-block.
// Source: ggml-quants.c, quantize_row_* and dequantize_row_* of these types.

#include <type_traits>

#include "plugins/reference/fit.h"
#include "plugins/reference/iq_format.h"

namespace ggufmill::reference {

// Writes the scale of the super-block, and those of its sub-blocks relative to it.
template <class Format>
void put_scales(const float* scales, typename Format::Block& block) {
  constexpr int kSubBlocks = 256 / Format::kSubBlock;
  const float most = largest(scales, kSubBlocks);
  if (most == 0) {
    if (Format::kClearsFlat) block = {};
    return;
  }
  const float d = most / 31;
  const float inverse = 1 / d;
  block.d.store(d * Format::kFudge);
  for (int at = 0; at < kSubBlocks; ++at) {
    const int level = nearest_int(0.5f * (inverse * scales[at] - 1));
    Format::put_scale(block, at, static_cast<unsigned>(clamp_level(level, 0, 15)));
  }
}

template <class Format>
struct LatticeCodec {
  static constexpr std::uint32_t kTypeId = Format::kTypeId, kElements = 256;
  static constexpr std::uint32_t kFlags = Format::kFlags;
  static constexpr const char* kName = Format::kName;
  using Block = typename Format::Block;

  static void decode(const Block& block, float* x);
  // Returns a kernel status: GGUFMILL_OK or kNoBookPoint.
  static std::int32_t encode(const float* x, const float* importance, Block& block);

 private:
  using Space = typename std::remove_cvref_t<decltype(Format::lattice())>::SpaceType;
  using Sub = SubBlock<Space, Format::kSubBlock>;
  static constexpr int kSubBlocks = static_cast<int>(kElements) / Format::kSubBlock;

  enum class Found { kZeros, kLevels, kNoPoint };

  static void prepare(const float* x, const float* importance, float mean_square, Sub& sub);
  static Found find_scale(Sub& sub);
  static void put(const Sub& sub, int at, Block& block);
};

template <class Format>
void LatticeCodec<Format>::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int eight = 0; eight < 32; ++eight, x += 8) {
    const int sub = eight * 8 / Format::kSubBlock;
    const float scale = Format::scale(d, Format::get_scale(block, sub));
    unsigned signs = Format::get_signs(block, eight);
    if constexpr (Format::kEvenSigns) signs = expand_even_signs(signs);
    for (int i = 0; i < 8; ++i) {
      const int group = (eight * 8 + i) / Space::kDims;
      const int level = Format::kBook[Format::get_index(block, group)][i % Space::kDims];
      const float magnitude = scale * Format::kMagnitudes[level];
      x[i] = signs >> i & 1 ? -magnitude : magnitude;
    }
  }
}

// Computes the weights, magnitudes and signs of a sub-block.
template <class Format>
void LatticeCodec<Format>::prepare(const float* x, const float* importance, float mean_square, Sub& sub) {
  if (importance) weigh(x, importance, mean_square, Sub::kCount, sub.weight);
  if constexpr (Format::kFlags != GGUFMILL_NEEDS_IMPORTANCE)
    if (!importance)
      for (int i = 0; i < Sub::kCount; ++i) sub.weight[i] = Format::plain_weight(x[i], mean_square);
  for (int i = 0; i < Sub::kCount; ++i) sub.root[i] = std::sqrt(sub.weight[i]);
  for (int eight = 0; eight < Sub::kSigns; ++eight) {
    const int at = 8 * eight;
    sub.signs[eight] =
        Format::kEvenSigns ? split_even_signs(x + at, sub.weight + at, sub.x + at) : split_signs(x + at, sub.x + at);
  }
}

// Makes a first guess of the scale, then searches for sub.scale and sub.levels.
template <class Format>
auto LatticeCodec<Format>::find_scale(Sub& sub) -> Found {
  float top = largest(sub.x, Sub::kCount);
  if (top < Format::kMin) return Found::kZeros;
  sub.scale = top / (2 * Space::kLevels - 1);
  if constexpr (Format::kFitsGuess) {
    sub.scale = fit_positive(Sub::kCount, Space::kLevels + 1, sub.x, sub.weight, sub.levels);
    top = sub.scale * Space::kLevels;
    if (top <= 0) return Found::kZeros;
  }
  if (!search_scale(Format::lattice(), Format::kRule, top, sub)) return Found::kNoPoint;
  if (sub.scale < 0) {  // the values with inverted signs outweigh the others
    sub.scale = -sub.scale;
    for (std::uint8_t& signs : sub.signs) signs = static_cast<std::uint8_t>(~signs & (Format::kEvenSigns ? 127 : 255));
  }
  return sub.scale >= 0 ? Found::kLevels : Found::kNoPoint;
}

// Writes the indices and signs of sub-block `at`.
template <class Format>
void LatticeCodec<Format>::put(const Sub& sub, int at, Block& block) {
  for (int group = 0; group < Sub::kGroups; ++group) {
    const int index = Format::lattice().index[Space::code_of(sub.levels + group * Space::kDims)];
    Format::put_index(block, at * Sub::kGroups + group, static_cast<unsigned>(index));
  }
  for (int eight = 0; eight < Sub::kSigns; ++eight)
    Format::put_signs(block, at * Sub::kSigns + eight, sub.signs[eight]);
}

template <class Format>
std::int32_t LatticeCodec<Format>::encode(const float* x, const float* importance, Block& block) {
  block = {};
  const float mean_square = Format::kMeanFactor * sum_of_squares(x, kElements) / kElements;
  float scales[kSubBlocks] = {};
  [[maybe_unused]] unsigned zeros = 0;
  for (int at = 0; at < kSubBlocks; ++at) {
    Sub sub;
    const int first = at * Format::kSubBlock;
    prepare(x + first, importance ? importance + first : nullptr, mean_square, sub);
    const Found found = find_scale(sub);
    if (found == Found::kNoPoint) return kNoBookPoint;
    if (found == Found::kZeros) {
      zeros |= 1u << at;
      continue;
    }
    put(sub, at, block);
    scales[at] = sub.scale;
  }
  if constexpr (requires { Format::close_gaps(block, zeros); }) Format::close_gaps(block, zeros);
  put_scales<Format>(scales, block);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::reference
