// Encoders of IQ3_K to IQ6_K.

#include "plugins/ik/simd/k_types.h"

#include "plugins/ik/simd/sub_blocks.h"
#include "plugins/ik/simd/table_search.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = ik::kSubBlock, kSubs = ik::kSubBlocks;

using Blocks = WeightedBlocks<kSub>;
using Levels = LaneLevels<kSuperBlock>;

// The scales of the sub-blocks.
struct Scales {
  Floats scale[kSubs];
  Mask is_shifted[kSubs];

  Floats extreme() const {
    Extreme extreme;
    for (const Floats& each : scale) extreme.add(each);
    return extreme.value;
  }
  // Returns one bit for each sub-block.
  template <class IsSet>
  static Words bits(const IsSet& is_set) {
    Words bits = words(0);
    for (int b = 0; b < kSubs; ++b) bits = bits | choose(is_set(b), words(1u << b), words(0));
    return bits;
  }
  Words shifted_bits() const {
    return bits([&](int b) { return is_shifted[b]; });
  }
};

template <std::size_t kSize, int kTries, int kStep, bool kRefits>
Scales search_scales(const Blocks& blocks) {
  Scales scales;
  TableSearch<kSize, kSub, kTries, kStep, ik::Start::kFit> search;
  for (int b = 0; b < kSubs; ++b) {
    const FoundScales found = search.run(blocks.values(b), blocks.weights(b));
    scales.scale[b] = found.scale;
    scales.is_shifted[b] = found.is_shifted;
    if constexpr (kRefits) {
      const Floats better =
          refit<kSub>(kLevels<kSize>, found.is_shifted, blocks.values(b), blocks.weights(b), found.scale);
      scales.scale[b] = choose(differ(found.scale, floats(0)), better, found.scale);
    }
  }
  return scales;
}

struct Coded {
  Floats d;
  Words code[kSubs];  // from kMin on
  Levels levels;
};

// The same as code_scales() of plugins/ik/k_types.cpp.
template <std::size_t kSize, int kMin, int kMax, bool kSkipsZero>
void code_scales(const Blocks& blocks, const Scales& scales, Coded& coded) {
  coded.d = scales.extreme() / floats(float{kMin});
  const Floats inverse = inverse_of(coded.d);
  LaneSums sums;
  for (int b = 0; b < kSubs; ++b) {
    const Ints code = clamp(nearest_ints(inverse * scales.scale[b]), kMin, kMax);
    const Mask counts = kSkipsZero ? mask_of(code != ints(0)) : mask_of(code == code);
    choose_levels<kSize>(blocks, b, scales.is_shifted[b], coded.d, to_floats(code), counts, coded.levels, sums);
    coded.code[b] = as_words(code);
  }
  coded.d = sums.scale(coded.d);
}

// Returns bytes of two fields from two functions of levels, the second one in the high nibble.
template <class Level>
Words two_nibbles(const Level& level, int first, int second) {
  return (level(first) & words(15)) | hn::ShiftLeft<4>(level(second) & words(15));
}

// Byte i of the 32 that have one bit of all levels: bit kBit, which is the highest one.
template <int kBit>
Words high_bits(const Levels& levels, int i) {
  Words bits = hn::ShiftRight<kBit>(levels[i]);
  for (int k = 1; k < 8; ++k) bits = bits | hn::ShiftLeftSame(hn::ShiftRight<kBit>(levels[i + 32 * k]), k);
  return bits;
}

// Byte i of the nibbles of IQ5_K and IQ6_K.
Words low_nibbles(const Levels& levels, int i) {
  const int at = i / 32 * 64 + i % 32;
  return two_nibbles([&](int k) { return levels[k]; }, at, at + 32);
}

// Sets the words of six-bit scales: 4 bytes with their high bits, then 8 with nibbles.
template <class Block>
void set_scales_6(const Coded& coded, LaneBlocks<Block>& block) {
  const auto code = [&](int b) { return coded.code[b] + words(32); };
  Words high = words(0);
  for (int b = 0; b < kSubs; ++b) high = high | hn::ShiftLeftSame(hn::ShiftRight<4>(code(b)), 2 * b);
  block.set(1, high);
  set_bytes(block, 2, 2, [&](int i) { return two_nibbles(code, 2 * i, 2 * i + 1); });
}

template <class Block>
void set_first_word(Floats d, const Scales& scales, LaneBlocks<Block>& block) {
  block.set(0, floats_to_half(d) | hn::ShiftLeft<16>(scales.shifted_bits()));
}

}  // namespace

void IQ3_K::encode(const Batch<1>& batch, LaneBlocks<Block>* block) {
  const Blocks blocks(batch, {1.5f, ik::Without::kSquaresAndQuarter});
  const Scales scales = search_scales<8, 3, 2, true>(blocks);
  const Floats extreme = hn::Abs(scales.extreme()), d = extreme / floats(31), inverse = floats(1) / d;
  const Words negative = Scales::bits([&](int b) { return scales.scale[b] < floats(0); });
  LaneSums sums;
  Levels levels;
  Words codes[kSubs];
  for (int b = 0; b < kSubs; ++b) {
    const Floats scale = scales.scale[b];
    const Ints code = clamp(nearest_ints(floats(0.5f) * (inverse * hn::Abs(scale) - floats(1))), 0, 15);
    const Floats size = to_floats(code + code + ints(1));
    choose_levels<8>(blocks, b, scales.is_shifted[b], d, choose(scale < floats(0), hn::Neg(size), size),
                     mask_of(code == code), levels, sums);
    codes[b] = as_words(code);
  }
  set_first_word(floats(1.01f) * sums.scale(d), scales, *block);
  // The bytes after the first word.
  const auto byte = [&](int i) {
    if (i < 2) return hn::ShiftRightSame(negative, 8 * i) & words(255);
    if (i < 10) return codes[2 * (i - 2)] | hn::ShiftLeft<4>(codes[2 * (i - 2) + 1]);
    if (i < 74) return crumbs<0>(levels, i - 10);
    return i < 106 ? high_bits<2>(levels, i - 74) : words(0);
  };
  set_bytes(*block, 1, LaneBlocks<Block>::kWords - 1, byte);
  clear(extreme == floats(0), *block);
}

void IQ4_K::encode(const Batch<1>& batch, LaneBlocks<Block>* block) {
  const Blocks blocks(batch, {2, ik::Without::kSquares});
  const Scales scales = search_scales<16, 7, 1, false>(blocks);
  Coded coded;
  code_scales<16, -32, 31, false>(blocks, scales, coded);
  set_first_word(coded.d, scales, *block);
  set_scales_6(coded, *block);
  set_bytes(*block, 4, 32, [&](int i) {
    const int at = i / 16 * 32 + i % 16;
    return two_nibbles([&](int k) { return coded.levels[k]; }, at, at + 16);
  });
}

void IQ5_K::encode(const Batch<1>& batch, LaneBlocks<Block>* block) {
  const Blocks blocks(batch, {2, ik::Without::kSquaresAndQuarter});
  const Scales scales = search_scales<32, 5, 1, true>(blocks);
  Coded coded;
  code_scales<32, -32, 31, true>(blocks, scales, coded);
  set_first_word(coded.d, scales, *block);
  set_scales_6(coded, *block);
  set_bytes(*block, 4, 32, [&](int i) { return low_nibbles(coded.levels, i); });
  set_bytes(*block, 36, 8, [&](int i) { return high_bits<4>(coded.levels, i); });
  clear(scales.extreme() == floats(0), *block);
}

void IQ6_K::encode(const Batch<1>& batch, LaneBlocks<Block>* block) {
  const Blocks blocks(batch, {2, ik::Without::kSquaresAndQuarter});
  const Scales scales = search_scales<64, 5, 1, true>(blocks);
  Coded coded;
  code_scales<64, -127, 127, true>(blocks, scales, coded);
  set_first_word(coded.d, scales, *block);
  set_bytes(*block, 1, 4, [&](int i) { return coded.code[i] & words(255); });
  set_bytes(*block, 5, 32, [&](int i) { return low_nibbles(coded.levels, i); });
  set_bytes(*block, 37, 16, [&](int i) { return crumbs<4>(coded.levels, i); });
  clear(scales.extreme() == floats(0), *block);
}

}  // namespace ggufmill::simd
