// The encoder of IQ2_K.

#include "plugins/ik/simd/code_fit.h"
#include "plugins/ik/simd/divisions.h"
#include "plugins/ik/simd/k_types.h"
#include "plugins/ik/simd/sub_blocks.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = ik::kSubBlock, kSubs = ik::kSubBlocks;

}  // namespace

void IQ2_K::encode(const Batch<1>& batch, LaneBlocks<Block>* block) {
  const WeightedBlocks<kSub> blocks(batch, {1.5f, ik::Without::kSquaresAndQuarter});
  Floats scales[kSubs], of_sub_blocks[kSubs];  // sums of weights
  Mask is_shifted[kSubs];
  DivisionSearch<kSub> search;
  for (int b = 0; b < kSubs; ++b) {
    const FoundScales found = search.run(blocks.values(b), blocks.weights(b));
    scales[b] = found.scale;
    is_shifted[b] = found.is_shifted;
    of_sub_blocks[b] = floats(0);
    for (int i = 0; i < kSub; ++i) of_sub_blocks[b] = of_sub_blocks[b] + blocks.weight(b * kSub + i);
  }
  const CodeFit<8> fit(kSubs, [&](std::uint64_t b) { return std::pair(scales[b], of_sub_blocks[b]); });
  const Floats d = fit.d, inverse = floats(1) / d;
  LaneSums sums;
  LaneLevels<kSuperBlock> levels;
  Words codes[kSubs], shifted = words(0);
  for (int b = 0; b < kSubs; ++b) {
    const Ints code = clamp(nearest_ints(inverse * scales[b]), -8, 7);
    choose_levels<4>(blocks, b, is_shifted[b], d, to_floats(code), mask_of(code != ints(0)), levels, sums);
    codes[b] = as_words(code + ints(8));
    shifted = shifted | choose(is_shifted[b], words(1u << b), words(0));
  }
  block->set(0, floats_to_half(floats(1.030f) * sums.scale(d)) | hn::ShiftLeft<16>(shifted));
  set_bytes(*block, 1, 2, [&](int i) { return codes[2 * i] | hn::ShiftLeft<4>(codes[2 * i + 1]); });
  set_bytes(*block, 3, 16, [&](int i) { return crumbs<0>(levels, i); });
  clear(d == floats(0), *block);
}

}  // namespace ggufmill::simd
