// The searches of plugins/reference/search_fp4.h with a block per lane.

#include "plugins/reference/search_fp4.h"

#include "plugins/reference/search_codecs.h"
#include "plugins/simd/fp4_steps.h"
#include "plugins/simd/search_lanes.h"
#include "plugins/simd/search_types.h"

namespace ggufmill::simd {
namespace {

// The result of a search for a block is the block itself.
template <class Searched>
struct WholeBlock : Searched {
  static void put(const typename Searched::Block& found, typename Searched::Block& block) { block = found; }
};
using Mxfp4Block = WholeBlock<reference::SearchedMxfp4>;
using Nvfp4Block = WholeBlock<reference::SearchedNvfp4>;

template <int kCount>
PerLane<float> greatest_magnitudes(const float* x) {
  Floats greatest = floats(0);
  for (int i = 0; i < kCount; ++i) greatest = greater(hn::Abs(hn::Load(kFloats, x + i * kLaneStep)), greatest);
  return per_lane(greatest);
}

constexpr int kNvfp4Group = 16;
constexpr int kMaxNvfp4Scale = 0x7e;  // the code of the greatest finite scale

// A code per lane is tried in those that are set. The error of the nearest level is the least distance of a magnitude
// to a non-negative level; see Fp4Steps::nearest().
template <int kCodes>
struct Fp4Tries {
  PerLane<float> scales[kCodes], codes[kCodes];
  bool is_used[kCodes][kLanes] = {};
};

template <int kCodes, bool kIsPlain>
HWY_INLINE void nvfp4_errors(const float* x, const float* w, const Fp4Tries<kCodes>& tries, Floats* errors) {
  Floats steps[kCodes][kPositiveFp4];
  for (int k = 0; k < kCodes; ++k) {
    errors[k] = floats(0);
    for (int level = 1; level < kPositiveFp4; ++level)
      steps[k][level] = floats(kDoubledFp4[level]) * floats_of(tries.scales[k]);
  }
  for (int i = 0; i < kNvfp4Group; ++i) {
    const Floats magnitude = hn::Abs(hn::Load(kFloats, x + i * kLaneStep));
    GGUFMILL_UNROLL
    for (int k = 0; k < kCodes; ++k) {
      Floats off = magnitude;
      GGUFMILL_UNROLL
      for (int level = 1; level < kPositiveFp4; ++level) off = lesser(hn::Abs(steps[k][level] - magnitude), off);
      const Floats weighted = kIsPlain ? off : hn::Load(kFloats, w + i * kLaneStep) * off;
      errors[k] = errors[k] + weighted * off;
    }
  }
}

// Finds the codes of reference::best_fp4_code() for a group of NVFP4 in each lane; -1 if no error is finite.
void best_nvfp4_codes(bool is_plain, const float* x, const float* w, const int* first,
                      const reference::Fp4Effort& effort, int* best) {
  constexpr int kAtOnce = kLanes == 16 ? 3 : 1;
  const int below = effort.codes_below, count = below + effort.codes_above + 1;
  Floats least = floats(FLT_MAX), codes = floats(-1);
  for (int done = 0; done < count; done += kAtOnce) {
    Fp4Tries<kAtOnce> tries;
    for (int k = 0; k < kAtOnce; ++k)
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        // The first code, then the others in order.
        const int step = done + k <= below ? done + k - 1 : done + k;
        const int code = done + k == 0 ? first[lane] : first[lane] - below + step;
        tries.is_used[k][lane] = done + k == 0 || (done + k < count && code >= 1 && code <= kMaxNvfp4Scale);
        tries.codes[k].at[lane] = static_cast<float>(code);
        tries.scales[k].at[lane] =
            tries.is_used[k][lane] ? reference::half_of_ue4m3(static_cast<std::uint8_t>(code)) : 0.0f;
      }
    Floats errors[kAtOnce];
    if (is_plain)
      nvfp4_errors<kAtOnce, true>(x, w, tries, errors);
    else
      nvfp4_errors<kAtOnce, false>(x, w, tries, errors);
    for (int k = 0; k < kAtOnce; ++k) {
      PerLane<float> used;
      for (std::size_t lane = 0; lane < kLanes; ++lane) used.at[lane] = tries.is_used[k][lane] ? 1.0f : 0.0f;
      const Mask better = hn::And(mask_of(used), errors[k] < least);
      least = choose(better, errors[k], least);
      codes = choose(better, floats_of(tries.codes[k]), codes);
    }
  }
  const PerLane<float> found = per_lane(codes);
  for (std::size_t lane = 0; lane < kLanes; ++lane) best[lane] = static_cast<int>(found.at[lane]);
}

// Scales of MXFP4, one per lane; see reference::half_of_e8m0(). Codes outside 0 to 255 give
// numbers that no lane uses.
Floats mxfp4_scales(Ints codes) {
  const Ints normal = hn::ShiftLeft<23>(codes - ints(1)), subnormal = hn::ShiftLeft<21>(codes + ints(1));
  return hn::BitCast(kFloats, choose(mask_of(codes < ints(2)), subnormal, normal));
}

// Computes the errors of two scales of MXFP4. They are powers of two, and dividing by them is exact unless the result
// is near 0. The nearest level is the quotient, rounded to a multiple of half its power of two, which is at least 1; of
// two levels that are equally near, either has the error. Its product with the scale is exact, so that the fused
// operation rounds as the others do.
template <bool kIsPlain>
HWY_INLINE void mxfp4_errors(const float* x, const float* w, const Floats* scales, Floats* errors) {
  Floats inverse[2];
  for (int k = 0; k < 2; ++k) {
    inverse[k] = lesser(floats(1) / scales[k], floats(0x1p127f));  // code 0 is for blocks of zeros
    errors[k] = floats(0);
  }
  GGUFMILL_ROLLED
  for (int i = 0; i < 32; ++i) {
    const Floats magnitude = hn::Abs(hn::Load(kFloats, x + i * kLaneStep));
    GGUFMILL_UNROLL
    for (int k = 0; k < 2; ++k) {
      const Floats quotient = magnitude * inverse[k];
      const Words power = hn::Max(as_words(quotient) & words(0x7f800000), as_words(floats(2)));
      const Floats shift = as_floats(power + words(22u << 23));  // its last bit is half the power
      const Floats level = lesser((quotient + shift) - shift, floats(12));
      const Floats off = hn::NegMulAdd(level, scales[k], magnitude);
      errors[k] = errors[k] + (kIsPlain ? off : hn::Load(kFloats, w + i * kLaneStep) * off) * off;
    }
  }
}

void search_mxfp4_lanes(const SearchLanes<32>& lanes, const float* const* x, std::uint32_t effort,
                        Mxfp4Block::Block* blocks, bool* found) {
  const reference::Fp4Effort& tries = reference::kFp4Efforts[effort - 1];
  const PerLane<float> greatest = greatest_magnitudes<32>(lanes.x);
  PerLane<std::int32_t> first;
  for (std::size_t lane = 0; lane < kLanes; ++lane) first.at[lane] = reference::e8m0_for(greatest.at[lane]);
  const Ints first_codes = hn::Load(kInts, first.at);
  const int count = tries.powers_below + tries.powers_above + 1;
  Floats least = floats(FLT_MAX);
  Ints best = ints(-1);
  for (int done = 0; done < count; done += 2) {
    Ints codes[2];
    Floats scales[2], errors[2];
    Mask usable[2];
    for (int k = 0; k < 2; ++k) {
      // The first code, then the others in order.
      const int step = done + k == 0 ? 0 : done + k - tries.powers_below - (done + k <= tries.powers_below ? 1 : 0);
      codes[k] = first_codes + ints(step);
      const Mask is_code = mask_of(hn::And(codes[k] > ints(0), codes[k] < ints(255)));
      usable[k] = done + k == 0 ? all_lanes() : done + k < count ? is_code : no_lanes();
      scales[k] = mxfp4_scales(codes[k]);
    }
    if (lanes.is_plain)
      mxfp4_errors<true>(lanes.x, lanes.weights, scales, errors);
    else
      mxfp4_errors<false>(lanes.x, lanes.weights, scales, errors);
    for (int k = 0; k < 2; ++k) {
      const Mask better = hn::And(usable[k], errors[k] < least);
      least = choose(better, errors[k], least);
      best = choose(better, codes[k], best);
    }
  }
  PerLane<std::int32_t> codes;
  hn::Store(best, kInts, codes.at);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (first.at[lane] == 0 && greatest.at[lane] > 0) {  // the inverse of the scale is infinite
      float weights[32];
      for (std::size_t i = 0; i < 32; ++i) weights[i] = lanes.weights[i * kLanes + lane];
      found[lane] = reference::search_mxfp4(x[lane], weights, effort, blocks[lane]);
      continue;
    }
    found[lane] = codes.at[lane] >= 0;
    if (!found[lane]) continue;
    blocks[lane].e = static_cast<std::uint8_t>(codes.at[lane]);
    put_fp4_of_32(x[lane], reference::half_of_e8m0(blocks[lane].e), blocks[lane].qs);
  }
}

void search_nvfp4_lanes(const SearchLanes<64>& lanes, const float* const* x, std::uint32_t effort,
                        Nvfp4Block::Block* blocks, bool* found) {
  std::fill_n(found, kLanes, true);
  for (int group = 0; group < 4; ++group) {
    const int at = kNvfp4Group * group;
    const float* const values = lanes.x + at * kLaneStep;
    const PerLane<float> greatest = greatest_magnitudes<kNvfp4Group>(values);
    int first[kLanes], best[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) first[lane] = reference::to_ue4m3(greatest.at[lane] / 6.0f);
    best_nvfp4_codes(lanes.is_plain, values, lanes.weights + at * kLaneStep, first, reference::kFp4Efforts[effort - 1],
                     best);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (best[lane] < 0) found[lane] = false;
      if (!found[lane]) continue;
      blocks[lane].d[group] = static_cast<std::uint8_t>(best[lane]);
      put_fp4_of_16(x[lane] + at, reference::half_of_ue4m3(blocks[lane].d[group]), blocks[lane].qs + 8 * group);
    }
  }
}

}  // namespace

std::int32_t search_mxfp4(const ggufmill_call* call) {
  return BlockStream<Mxfp4Block, Mxfp4Block::Block>(*call, search_mxfp4_lanes).run();
}

std::int32_t search_nvfp4(const ggufmill_call* call) {
  return BlockStream<Nvfp4Block, Nvfp4Block::Block>(*call, search_nvfp4_lanes).run();
}

}  // namespace ggufmill::simd
