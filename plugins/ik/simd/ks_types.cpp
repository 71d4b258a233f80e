// Encoders of IQ3_KS, IQ4_KS and IQ5_KS.

#include "plugins/ik/simd/ks_types.h"

#include "plugins/ik/simd/table_search.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32, kSubs = LaneScales::kCount;
constexpr ik::Weighting kWeighting{2, ik::Without::kSquares};

using Blocks = WeightedBlocks<kSub>;
using Levels = LaneLevels<kSuperBlock>;

template <std::size_t kSize, int kTries, ik::Start kStart>
void search_scales(const Batch<1>& batch, LaneScales& found) {
  const Blocks blocks(batch, kWeighting);
  TableSearch<kSize, kSub, kTries, 1, kStart> search;
  found.shifted = words(0);
  for (int b = 0; b < kSubs; ++b) {
    const FoundScales scales = search.run(blocks.values(b), blocks.weights(b));
    found.scale[b] = scales.scale;
    found.shifted = found.shifted | choose(scales.is_shifted, words(1u << b), words(0));
  }
}

// The seven-bit codes of IQ4_KS and IQ5_KS: odd multiples of d from -127 to 127.
Words code_7(Floats d, Floats scale) {
  const Ints code = clamp(nearest_ints(floats(0.5f) * (floats(1) / d * scale + floats(127.0f))), 0, 127);
  return as_words(code + code);
}

// Sets the bytes with the codes and tables of the sub-blocks, where d is not 0; elsewhere only the tables.
template <class Block>
void set_codes_7(Mask is_zero, const Words* codes, const LaneScales& found, LaneBlocks<Block>& block) {
  set_bytes(block, 0, kSubs / 4, [&](int b) {
    return choose(is_zero, words(0), codes[b]) | (hn::ShiftRightSame(found.shifted, b) & words(1));
  });
}

// Keeps only words before `first` where d is 0.
template <class Block>
void clear_from(int first, Mask is_zero, LaneBlocks<Block>& block) {
  if (!any(is_zero)) return;
  for (int word = first; word < LaneBlocks<Block>::kWords; ++word)
    block.set(word, choose(is_zero, words(0), block.get(word)));
}

template <int kBit>
Words high_bits(const Levels& levels, int i) {
  Words bits = hn::ShiftRight<kBit>(levels[i]);
  for (int b = 1; b < kSubs; ++b) bits = bits | hn::ShiftLeftSame(hn::ShiftRight<kBit>(levels[i + kSub * b]), b);
  return bits;
}

}  // namespace

void IQ3_KS::search(const Batch<1>& batch, LaneScales& found) { search_scales<8, 5, ik::Start::kScale>(batch, found); }

IQ3_KS::Rows::Rows(const RowScales& found) : d_(hn::Neg(found.extreme()) / floats(16)) {}

void IQ3_KS::Rows::encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block) {
  const Blocks blocks(batch, kWeighting);
  const Mask is_zero = d_ == floats(0);
  const Floats inverse = floats(1) / d_;
  Levels levels;
  Words codes[kSubs], high = words(0);
  for (int b = 0; b < kSubs; ++b) {
    const Ints code = clamp(nearest_ints(inverse * found.scale[b]), -16, 15);
    choose_levels<8>(blocks, b, found.is_shifted(b), d_, to_floats(code), hn::Not(is_zero), levels, sums_);
    codes[b] = as_words(code) & words(15);
    high = high | choose(mask_of(code > ints(-1)), words(1u << b), words(0));
  }
  const Words extra = choose(is_zero, words(0), high) | hn::ShiftLeft<8>(found.shifted);
  set_bytes(block, 0, LaneBlocks<Block>::kWords, [&](int i) {
    if (i < 2) return hn::ShiftRightSame(extra, 8 * i) & words(255);
    if (i < 6) return choose(is_zero, words(0), codes[i - 2] | hn::ShiftLeft<4>(codes[i + 2]));
    if (i < 70) return crumbs<0>(levels, i - 6);
    return i < 102 ? high_bits<2>(levels, i - 70) : words(0);
  });
}

Words IQ3_KS::Rows::header() const { return floats_to_half(sums_.scale(d_)); }

void IQ4_KS::search(const Batch<1>& batch, LaneScales& found) { search_scales<16, 7, ik::Start::kFit>(batch, found); }

IQ4_KS::Rows::Rows(const RowScales& found) : d_(hn::Abs(found.extreme()) / floats(127)) {}

void IQ4_KS::Rows::encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block) {
  const Blocks blocks(batch, kWeighting);
  const Mask is_zero = d_ == floats(0);
  Levels levels;
  Words codes[kSubs];
  for (int b = 0; b < kSubs; ++b) {
    codes[b] = code_7(d_, found.scale[b]);
    const Mask is_shifted = found.is_shifted(b);
    const Floats code = to_floats(as_ints(codes[b]) - ints(127)), inverse = inverse_of(d_ * code);
    for (int i = b * kSub; i < b * kSub + kSub / 2; ++i) {
      LaneSums two[2];
      for (const int half : {0, 1}) {
        const int at = i + half * kSub / 2;
        levels.set(at, kLevels<16>.level(is_shifted, inverse * blocks.at(at)));
        two[half].add(blocks.weight(at), kLevels<16>.value(is_shifted, levels[at]) * code, blocks.at(at));
      }
      sums_.qx = sums_.qx + (two[0].qx + two[1].qx);
      sums_.q2 = sums_.q2 + (two[0].q2 + two[1].q2);
    }
    set_bytes(block, 2 + 4 * b, 4,
              [&](int j) { return levels[b * kSub + j] | hn::ShiftLeft<4>(levels[b * kSub + kSub / 2 + j]); });
  }
  set_codes_7(is_zero, codes, found, block);
  clear_from(2, is_zero, block);
}

Words IQ4_KS::Rows::header() const { return as_words(choose(d_ == floats(0), d_, sums_.scale(d_))); }

void IQ5_KS::search(const Batch<1>& batch, LaneScales& found) { search_scales<32, 5, ik::Start::kFit>(batch, found); }

IQ5_KS::Rows::Rows(const RowScales& found) : d_(hn::Abs(found.extreme()) / floats(127)) {}

void IQ5_KS::Rows::encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block) {
  const Blocks blocks(batch, kWeighting);
  const Mask is_zero = d_ == floats(0);
  Levels levels;
  Words codes[kSubs];
  for (int b = 0; b < kSubs; ++b) {
    codes[b] = code_7(d_, found.scale[b]);
    choose_levels<32>(blocks, b, found.is_shifted(b), d_, to_floats(as_ints(codes[b]) - ints(127)), hn::Not(is_zero),
                      levels, sums_);
  }
  set_codes_7(is_zero, codes, found, block);
  set_bytes(block, 2, 32, [&](int i) {
    const int at = i / 32 * 64 + i % 32;
    return (levels[at] & words(15)) | hn::ShiftLeft<4>(levels[at + 32] & words(15));
  });
  set_bytes(block, 34, 8, [&](int i) { return high_bits<4>(levels, i); });
}

Words IQ5_KS::Rows::header() const { return as_words(sums_.scale(d_)); }

}  // namespace ggufmill::simd
