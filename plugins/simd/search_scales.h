#pragma once
// The searches of plugins/reference/search_scales.h with a block per lane. Codes and values are floats.

#include <cfloat>

#include "plugins/reference/fit.h"
#include "plugins/reference/search_scales.h"
#include "plugins/simd/bytes.h"
#include "plugins/simd/iq4_values.h"
#include "plugins/simd/search_lanes.h"

namespace ggufmill::simd {

// Sums over a group, for values v: of the squared error, and of w v x and w v v.
struct ScaleSums {
  Floats error, vx, vv;
};

struct ScaleCandidates {
  Floats scale = floats(0), error = floats(0);

  Mask is_like(const ScaleCandidates& other) const {
    return hn::Abs(scale - other.scale) < floats(1e-4f) * hn::Abs(scale);
  }
  static ScaleCandidates chosen(Mask mask, const ScaleCandidates& yes, const ScaleCandidates& no) {
    ScaleCandidates made;
    made.scale = choose(mask, yes.scale, no.scale);
    made.error = choose(mask, yes.error, no.error);
    return made;
  }
};
using BestScales = BestOfLanes<ScaleCandidates>;

// The groups of blocks. `Codec` has a `kFormat`.
template <class Codec>
struct ScaleGroups {
  static constexpr reference::ScaleFormat kFormat = Codec::kFormat;
  static constexpr int kGroup = kFormat.group;
  // Then the best scales below zero are those above zero with the other sign.
  static constexpr bool kIsSymmetric = !kFormat.is_table && kFormat.least == -kFormat.most;

  static HWY_INLINE Floats nearest_value(Floats scaled) {
    if constexpr (kFormat.is_table)
      return Iq4Place(greater(scaled, floats(-128))).value();
    else
      return nearest_within(scaled, floats(float{kFormat.least}), floats(float{kFormat.most}));
  }

  // Computes the sums at kScales scales. Without kHasErrors, `error` is 0.
  template <int kScales, bool kHasErrors>
  static HWY_INLINE void sums_at(bool is_plain, const float* x, const float* w, const Floats* scales, ScaleSums* sums) {
    if (is_plain)
      weighted_sums_at<kScales, kHasErrors, true>(x, w, scales, sums);
    else
      weighted_sums_at<kScales, kHasErrors, false>(x, w, scales, sums);
  }

  // The same; with kIsPlain, all weights are 1.
  template <int kScales, bool kHasErrors, bool kIsPlain>
  static HWY_INLINE void weighted_sums_at(const float* x, const float* w, const Floats* scales, ScaleSums* sums) {
    Floats inverse[kScales], vx[kScales], vv[kScales], errors[kScales];
    GGUFMILL_UNROLL
    for (int k = 0; k < kScales; ++k) {
      inverse[k] = inverse_of(scales[k]);
      vx[k] = vv[k] = errors[k] = floats(0);
    }
    for (int i = 0; i < kGroup; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kLaneStep), weight = hn::Load(kFloats, w + i * kLaneStep);
      const auto weighted = [&](Floats number) { return kIsPlain ? number : weight * number; };
      GGUFMILL_UNROLL
      for (int k = 0; k < kScales; ++k) {
        const Floats v = nearest_value(value * inverse[k]), wv = weighted(v);
        if constexpr (kHasErrors) {
          const Floats e = value - scales[k] * v;
          errors[k] = errors[k] + weighted(e) * e;
        }
        vx[k] = vx[k] + wv * value;
        vv[k] = vv[k] + wv * v;
      }
    }
    GGUFMILL_UNROLL
    for (int k = 0; k < kScales; ++k) sums[k] = {errors[k], vx[k], vv[k]};
  }

  // Returns the best scales; see reference::scales_of().
  static BestScales scales_of(bool is_plain, const float* x, const float* w, const reference::ScaleEffort& effort,
                              int tries, int kept) {
    Floats magnitude = floats(0);
    for (int i = 0; i < kGroup; ++i) magnitude = greater(hn::Abs(hn::Load(kFloats, x + i * kLaneStep)), magnitude);
    BestScales best;
    ScaleCandidates found[kMostTries];
    Mask usable[kMostTries];
    for (const float sign : {1.0f, -1.0f}) {
      const bool is_mirrored = kIsSymmetric && sign < 0;
      for (int k = 0; k < tries; k += kAtOnce) {
        if (is_mirrored)
          for (int i = k; i < k + kAtOnce; ++i) found[i].scale = hn::Neg(found[i].scale);
        else
          improve(is_plain, x, w, effort, sign, magnitude, k, tries, found + k, usable + k);
        for (int i = k; i < k + kAtOnce && i < tries; ++i) best.offer(usable[i], found[i], kept);
      }
    }
    ScaleCandidates plain;
    plain.scale = magnitude / floats(kFormat.extreme);
    best.set(hn::Not(best.has[0]), plain);
    best.set(magnitude < floats(reference::kZeroGroup), ScaleCandidates());
    return best;
  }

 private:
  static constexpr int kMostTries = 40;                 // a multiple of kAtOnce
  static constexpr int kAtOnce = kLanes == 16 ? 5 : 2;  // as many as fit in the registers

  static void improve(bool is_plain, const float* x, const float* w, const reference::ScaleEffort& effort, float sign,
                      Floats magnitude, int first, int tries, ScaleCandidates* found, Mask* usable) {
    Mask active[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      const float part = effort.first + effort.across * static_cast<float>(first + i) / static_cast<float>(tries - 1);
      found[i].scale = magnitude * floats(sign) / floats(kFormat.extreme * part);
      active[i] = all_lanes();
      usable[i] = no_lanes();
    }
    for (int round = 0; round < effort.improvements; ++round) {
      Floats scales[kAtOnce];
      ScaleSums sums[kAtOnce];
      for (int i = 0; i < kAtOnce; ++i) scales[i] = found[i].scale;
      sums_at<kAtOnce, false>(is_plain, x, w, scales, sums);
      for (int i = 0; i < kAtOnce; ++i) {
        active[i] = and_greater(active[i], sums[i].vv, floats(0));
        usable[i] = hn::Or(usable[i], active[i]);
        ScaleCandidates better;
        better.scale = sums[i].vx / sums[i].vv;
        better.error = hn::Neg(sums[i].vx) * better.scale;
        found[i] = ScaleCandidates::chosen(active[i], better, found[i]);
      }
    }
  }
};

// The result of a search, for super-blocks in lanes.
template <int kGroups>
struct ScaleResult {
  PerLane<double> error;
  Floats d = floats(0);
  Floats scales[kGroups];

  explicit ScaleResult(const PerLane<double>& zeros) : error(zeros) {
    for (Floats& scale : scales) scale = floats(0);
  }
};

// A super-block per lane.
template <class Codec>
class ScaleProblem {
 public:
  using Groups = ScaleGroups<Codec>;
  static constexpr reference::ScaleFormat kFormat = Codec::kFormat;
  static constexpr int kGroups = 256 / kFormat.group;
  using Result = ScaleResult<kGroups>;

  ScaleProblem(const reference::ScaleEffort& effort, const SearchLanes<256>& block) : effort_(effort), block_(block) {}

  void search(Result& result) {
    Floats greatest = floats(0);
    for (int group = 0; group < kGroups; ++group) {
      scales_[group] = Groups::scales_of(block_.is_plain, x(group), w(group), effort_, effort_.scales, effort_.kept);
      const Floats scale = scales_[group].best[0].scale;
      greatest = choose(hn::Abs(scale) > hn::Abs(greatest), scale, greatest);
    }
    const float code = 0.5f - static_cast<float>(kFormat.least_code);
    if (effort_.starts == 0) descend(through_half(hn::Neg(greatest) / floats(code)), result);
    for (int i = 0; i < effort_.starts; ++i)
      for (const float sign : {1.0f, -1.0f})
        descend(through_half(floats(sign) * hn::Abs(greatest) / floats(code - kFormat.apart * static_cast<float>(i))),
                result);
  }

 private:
  static constexpr int kCodes = 3;  // tried for a scale

  // The code of a group, and the sums for it.
  struct Group {
    Floats code = floats(0);
    ScaleSums sums{floats(FLT_MAX), floats(0), floats(0)};
  };

  const float* x(int group) const { return block_.x + group * kFormat.group * kLaneStep; }
  const float* w(int group) const { return block_.weights + group * kFormat.group * kLaneStep; }

  static Mask is_code(Floats code) {
    return hn::And(code >= floats(float{kFormat.least_code}), code <= floats(float{kFormat.most_code}));
  }

  Group best_code(int group, Floats d, Mask lanes) const {
    Group best;
    Floats first_middle = floats(0);
    for (int kept = 0; kept < effort_.kept; ++kept) {
      const Mask has = hn::And(lanes, scales_[group].has[kept]);
      if (!any(has)) continue;
      const Floats middle = nearest_within(scales_[group].best[kept].scale / d, floats(float{kFormat.least_code}),
                                           floats(float{kFormat.most_code}));
      Floats codes[kCodes], scales[kCodes];
      for (int k = 0; k < kCodes; ++k) {
        codes[k] = middle + floats(static_cast<float>(k - 1));
        scales[k] = d * codes[k];
      }
      ScaleSums sums[kCodes];
      Groups::template sums_at<kCodes, true>(block_.is_plain, x(group), w(group), scales, sums);
      for (int k = 0; k < kCodes; ++k) {
        Mask better = hn::And(has, hn::And(is_code(codes[k]), sums[k].error < best.sums.error));
        if (kept > 0) better = and_greater(better, hn::Abs(codes[k] - first_middle), floats(1));
        best.code = choose(better, codes[k], best.code);
        best.sums.error = choose(better, sums[k].error, best.sums.error);
        best.sums.vx = choose(better, sums[k].vx, best.sums.vx);
        best.sums.vv = choose(better, sums[k].vv, best.sums.vv);
      }
      first_middle = middle;
    }
    return best;
  }

  void descend(Floats d, Result& result) const {
    Floats codes[kGroups];
    PerLane<double> before(DBL_MAX);
    Mask active = all_lanes();
    for (int round = 0; round < effort_.rounds; ++round) {
      active = hn::And(active, hn::And(differ(d, floats(0)), hn::Abs(d) <= floats(FLT_MAX)));
      if (!any(active)) return;
      PerLane<double> total, vx, vv;
      for (int group = 0; group < kGroups; ++group) {
        const Group found = best_code(group, d, active);
        codes[group] = found.code;
        const PerLane<float> code = per_lane(found.code), error = per_lane(found.sums.error);
        const PerLane<float> group_vx = per_lane(found.sums.vx), group_vv = per_lane(found.sums.vv);
        for (std::size_t i = 0; i < kLanes; ++i) {
          const double factor = double{code.at[i]};
          total.at[i] += double{error.at[i]};
          vx.at[i] += factor * double{group_vx.at[i]};
          vv.at[i] += factor * factor * double{group_vv.at[i]};
        }
      }
      keep(active, total, codes, d, result);
      PerLane<float> still = per_lane(active), next;
      for (std::size_t i = 0; i < kLanes; ++i) {
        if (!(total.at[i] < before.at[i]) || !(vv.at[i] > 0)) still.at[i] = 0;
        next.at[i] = static_cast<float>(vx.at[i] / vv.at[i]);
      }
      before = total;
      const Floats d_before = d;
      d = through_half(floats_of(next));
      active = and_differ(mask_of(still), d, d_before);
    }
  }

  static void keep(Mask active, const PerLane<double>& total, const Floats* codes, Floats d, Result& result) {
    PerLane<float> better = per_lane(active);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (!(total.at[lane] < result.error.at[lane])) better.at[lane] = 0;
      if (better.at[lane] != 0) result.error.at[lane] = total.at[lane];
    }
    const Mask mask = mask_of(better);
    result.d = choose(mask, d, result.d);
    for (int group = 0; group < kGroups; ++group)
      result.scales[group] = choose(mask, codes[group], result.scales[group]);
  }

  const reference::ScaleEffort& effort_;
  const SearchLanes<256>& block_;
  BestScales scales_[kGroups];
};

// Sets the levels of a group of a block whose values are at `x`, with values in lanes; see reference::put_levels().
template <int kGroup>
HWY_INLINE void put_table_levels(const float* x, int group, float scale, reference::ScaleCodes& codes) {
  const Floats inverse = floats(reference::inverse_of(scale));
  for (int i = group * kGroup; i < (group + 1) * kGroup; i += kLaneStep)
    store_bytes(Iq4Place(greater(hn::LoadU(kFloats, x + i) * inverse, floats(-128))).level(), codes.levels + i);
}

// A LaneSearch of types with scales.
template <class Codec>
void search_scales(const SearchLanes<256>& block, const float* const* x, std::uint32_t effort,
                   reference::ScaleCodes* codes, bool* found) {
  using Problem = ScaleProblem<Codec>;
  typename Problem::Result result(weighted_squares(block));
  Problem(reference::kScaleEfforts[effort - 1], block).search(result);
  const PerLane<float> d = per_lane(result.d);
  for (int group = 0; group < Problem::kGroups; ++group) {
    const PerLane<float> scales = per_lane(result.scales[group]);
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      codes[lane].scales[group] = static_cast<std::int8_t>(scales.at[lane]);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    codes[lane].d = d.at[lane];
    found[lane] = d.at[lane] != 0;
    if (!found[lane]) continue;
    if constexpr (Codec::kFormat.is_table)
      for (int group = 0; group < Problem::kGroups; ++group)
        put_table_levels<Codec::kFormat.group>(x[lane], group, codes[lane].d * codes[lane].scales[group], codes[lane]);
    else
      reference::put_levels(Codec::kFormat, x[lane], codes[lane]);
  }
}

// A LaneSearch of types with a scale for each block.
template <class Codec>
void search_one_scale(const SearchLanes<32>& block, const float* const* x, std::uint32_t effort,
                      reference::ScaleCodes* codes, bool* found) {
  using Groups = ScaleGroups<Codec>;
  const reference::ScaleEffort& tried = reference::kScaleEfforts[effort - 1];
  const BestScales scales =
      Groups::scales_of(block.is_plain, block.x, block.weights, tried, tried.scales_alone, reference::kScalesKeptAlone);
  Floats best = floats(0), least = floats(FLT_MAX);
  for (int kept = 0; kept < reference::kScalesKeptAlone; ++kept) {
    const Floats d = through_half(scales.best[kept].scale);
    const Mask is_usable = hn::And(differ(d, floats(0)), hn::Abs(d) <= floats(FLT_MAX));
    ScaleSums sums;
    Groups::template sums_at<1, true>(block.is_plain, block.x, block.weights, &d, &sums);
    const Mask better = hn::And(hn::And(scales.has[kept], is_usable), sums.error < least);
    least = choose(better, sums.error, least);
    best = choose(better, d, best);
  }
  const PerLane<float> d = per_lane(best);
  const PerLane<double> zeros = weighted_squares(block);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    codes[lane].d = d.at[lane];
    found[lane] = zeros.at[lane] != 0 && d.at[lane] != 0;
    if (!found[lane]) continue;
    if constexpr (Codec::kFormat.is_table)
      put_table_levels<Codec::kFormat.group>(x[lane], 0, codes[lane].d, codes[lane]);
    else
      reference::put_levels_alone(Codec::kFormat, x[lane], codes[lane]);
  }
}

}  // namespace ggufmill::simd
