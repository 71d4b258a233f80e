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

// A code per lane is tried in those that are set. The error of the nearest level is the least distance of a magnitude
// to a non-negative level; see Fp4Steps::nearest().
template <int kCodes>
struct Fp4Tries {
  PerLane<float> scales[kCodes], codes[kCodes];
  bool is_used[kCodes][kLanes] = {};
};

template <int kCodes, int kCount, bool kIsPlain>
HWY_INLINE void fp4_errors(const float* x, const float* w, const Fp4Tries<kCodes>& tries, Floats* errors) {
  Floats steps[kCodes][kPositiveFp4];
  for (int k = 0; k < kCodes; ++k) {
    errors[k] = floats(0);
    for (int level = 1; level < kPositiveFp4; ++level)
      steps[k][level] = floats(kDoubledFp4[level]) * floats_of(tries.scales[k]);
  }
  for (int i = 0; i < kCount; ++i) {
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

// Finds the codes of reference::best_fp4_code() for a group of kCount values per lane; -1 if no error is finite.
template <int kCount, class ScaleOf>
void best_fp4_codes(bool is_plain, const float* x, const float* w, const int* first, int below, int above, int most,
                    const ScaleOf& scale_of, int* best) {
  constexpr int kAtOnce = kLanes == 16 ? 3 : 1;
  const int count = below + above + 1;
  Floats least = floats(FLT_MAX), codes = floats(-1);
  for (int done = 0; done < count; done += kAtOnce) {
    Fp4Tries<kAtOnce> tries;
    for (int k = 0; k < kAtOnce; ++k)
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        // The first code, then the others in order.
        const int step = done + k <= below ? done + k - 1 : done + k;
        const int code = done + k == 0 ? first[lane] : first[lane] - below + step;
        tries.is_used[k][lane] = done + k == 0 || (done + k < count && code >= 1 && code <= most);
        tries.codes[k].at[lane] = static_cast<float>(code);
        tries.scales[k].at[lane] = tries.is_used[k][lane] ? scale_of(static_cast<std::uint8_t>(code)) : 0.0f;
      }
    Floats errors[kAtOnce];
    if (is_plain)
      fp4_errors<kAtOnce, kCount, true>(x, w, tries, errors);
    else
      fp4_errors<kAtOnce, kCount, false>(x, w, tries, errors);
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

void search_mxfp4_lanes(const SearchLanes<32>& lanes, const float* const* x, std::uint32_t effort,
                        Mxfp4Block::Block* blocks, bool* found) {
  const reference::Fp4Effort& tries = reference::kFp4Efforts[effort - 1];
  const PerLane<float> greatest = greatest_magnitudes<32>(lanes.x);
  int first[kLanes], best[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) first[lane] = reference::e8m0_for(greatest.at[lane]);
  best_fp4_codes<32>(lanes.is_plain, lanes.x, lanes.weights, first, tries.powers_below, tries.powers_above, 254,
                     reference::half_of_e8m0, best);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    found[lane] = best[lane] >= 0;
    if (!found[lane]) continue;
    blocks[lane].e = static_cast<std::uint8_t>(best[lane]);
    put_fp4_of_32(x[lane], reference::half_of_e8m0(blocks[lane].e), blocks[lane].qs);
  }
}

void search_nvfp4_lanes(const SearchLanes<64>& lanes, const float* const* x, std::uint32_t effort,
                        Nvfp4Block::Block* blocks, bool* found) {
  const reference::Fp4Effort& tries = reference::kFp4Efforts[effort - 1];
  std::fill_n(found, kLanes, true);
  for (int group = 0; group < 4; ++group) {
    const float* const values = lanes.x + 16 * group * kLaneStep;
    const PerLane<float> greatest = greatest_magnitudes<16>(values);
    int first[kLanes], best[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) first[lane] = reference::to_ue4m3(greatest.at[lane] / 6.0f);
    best_fp4_codes<16>(lanes.is_plain, values, lanes.weights + 16 * group * kLaneStep, first, tries.codes_below,
                       tries.codes_above, 0x7e, reference::half_of_ue4m3, best);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (best[lane] < 0) found[lane] = false;
      if (!found[lane]) continue;
      blocks[lane].d[group] = static_cast<std::uint8_t>(best[lane]);
      put_fp4_of_16(x[lane] + 16 * group, reference::half_of_ue4m3(blocks[lane].d[group]), blocks[lane].qs + 8 * group);
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
