#pragma once
// The searches of plugins/reference/search_affine.h with a block per lane. Codes and levels are floats.

#include <cfloat>

#include "plugins/reference/fit.h"
#include "plugins/reference/search_affine.h"
#include "plugins/simd/bytes.h"
#include "plugins/simd/search_lanes.h"

namespace ggufmill::simd {

// Sums over a group, for levels q: of the squared error, and of w q, w q q and w q x.
struct AffineSums {
  Floats error, q, qq, qx;

  static AffineSums chosen(Mask mask, const AffineSums& yes, const AffineSums& no) {
    return {choose(mask, yes.error, no.error), choose(mask, yes.q, no.q), choose(mask, yes.qq, no.qq),
            choose(mask, yes.qx, no.qx)};
  }
};

// A line x ~ scale * q - minimum.
struct LineNumbers {
  Floats scale, minimum;
};

// Computes the sums of kLines lines. Without kHasErrors, `error` is 0; with kIsPlain, all weights are 1. With
// kHasErrors, a scale is a half, or one times a code of up to 64, so that its product with a level has at most 11 + 6 +
// 5 bits: it is exact, and the fused operation rounds as the others do.
template <int kLines, int kGroup, int kLimit, bool kHasErrors, bool kIsPlain>
HWY_INLINE void weighted_sums_of_lines(const float* x, const float* w, const LineNumbers* lines, AffineSums* sums) {
  const Floats zero = floats(0);
  Floats inverse[kLines], q_sums[kLines], qq[kLines], qx[kLines], errors[kLines];
  GGUFMILL_UNROLL
  for (int k = 0; k < kLines; ++k) {
    inverse[k] = inverse_of(lines[k].scale);
    q_sums[k] = qq[k] = qx[k] = errors[k] = zero;
  }
  GGUFMILL_ROLLED
  for (int i = 0; i < kGroup; ++i) {
    const Floats value = hn::Load(kFloats, x + i * kLaneStep), weight = hn::Load(kFloats, w + i * kLaneStep);
    const auto weighted = [&](Floats number) { return kIsPlain ? number : weight * number; };
    GGUFMILL_UNROLL
    for (int k = 0; k < kLines; ++k) {
      const Floats above = value + lines[k].minimum;
      const Floats q = at_most<kLimit>(hn::Round(greater(above * inverse[k], zero)));
      const Floats wq = weighted(q);
      if constexpr (kHasErrors) {
        const Floats e = hn::NegMulAdd(lines[k].scale, q, above);
        errors[k] = errors[k] + weighted(e) * e;
      }
      q_sums[k] = q_sums[k] + wq;
      qq[k] = kIsPlain ? hn::MulAdd(q, q, qq[k]) : qq[k] + wq * q;  // fused where it is exact: of whole numbers
      qx[k] = qx[k] + wq * value;
    }
  }
  GGUFMILL_UNROLL
  for (int k = 0; k < kLines; ++k) sums[k] = {errors[k], q_sums[k], qq[k], qx[k]};
}

template <int kLines, int kGroup, int kLimit, bool kHasErrors>
HWY_INLINE void sums_of_lines(bool is_plain, const float* x, const float* w, const LineNumbers* lines,
                              AffineSums* sums) {
  if (is_plain)
    weighted_sums_of_lines<kLines, kGroup, kLimit, kHasErrors, true>(x, w, lines, sums);
  else
    weighted_sums_of_lines<kLines, kGroup, kLimit, kHasErrors, false>(x, w, lines, sums);
}

struct LineCandidates {
  Floats scale = floats(0), minimum = floats(0), mean_level = floats(0), error = floats(0);

  Mask is_like(const LineCandidates& other) const {
    const Floats close = floats(1e-4f) * scale;
    return hn::And(hn::Abs(scale - other.scale) < close, hn::Abs(minimum - other.minimum) < close);
  }
  static LineCandidates chosen(Mask mask, const LineCandidates& yes, const LineCandidates& no) {
    LineCandidates made;
    made.scale = choose(mask, yes.scale, no.scale);
    made.minimum = choose(mask, yes.minimum, no.minimum);
    made.mean_level = choose(mask, yes.mean_level, no.mean_level);
    made.error = choose(mask, yes.error, no.error);
    return made;
  }
};
using BestLines = BestOfLanes<LineCandidates>;

// A group of values, with what depends only on them.
template <int kGroup, int kLimit>
struct LineGroups {
  bool is_plain;
  const float* x;
  const float* w;
  Floats low, high, w_sum = floats(0), wx_sum = floats(0);

  LineGroups(bool has_no_weights, const float* values, const float* weights, bool is_below_zero)
      : is_plain(has_no_weights), x(values), w(weights) {
    const Floats first = hn::Load(kFloats, x);
    low = is_below_zero ? floats(0) : first;
    high = first;
    for (int i = 0; i < kGroup; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kLaneStep), weight = hn::Load(kFloats, w + i * kLaneStep);
      low = lesser(value, low);
      high = greater(value, high);
      w_sum = w_sum + weight;
      wx_sum = wx_sum + weight * value;
    }
  }

  Mask is_flat() const { return hn::Not(hn::And(high - low >= floats(reference::kZeroGroup), w_sum > floats(0))); }

  // Returns the best lines; see reference::lines_of(). The result of flat groups is not defined.
  BestLines lines(float first, float across, int tries, int refinements, int kept, bool clamps) const {
    BestLines best;
    const Floats range = high - low;
    for (int k = 0; k < tries; k += kAtOnce) {
      LineCandidates tried[kAtOnce];
      for (int i = 0; i < kAtOnce; ++i) {
        const float steps = first + across * static_cast<float>(k + i) / static_cast<float>(tries - 1);
        tried[i].scale = range / floats(steps);
        tried[i].minimum = hn::Neg(low);
      }
      Mask usable[kAtOnce];
      improve(tried, usable, refinements + 1, clamps);
      for (int i = 0; i < kAtOnce; ++i) best.offer(usable[i], tried[i], kept);
    }
    LineCandidates plain;
    plain.scale = range / floats(float{kLimit});
    plain.minimum = hn::Neg(low);
    plain.mean_level = floats(float{kLimit} / 2);
    best.set(hn::Not(best.has[0]), plain);
    return best;
  }

 private:
  static constexpr int kAtOnce = kLanes == 16 ? 4 : 2;  // divides every number of lines

  void improve(LineCandidates* lines, Mask* usable, int rounds, bool clamps) const {
    Mask active[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k) active[k] = all_lanes(), usable[k] = no_lanes();
    for (int round = 0; round < rounds; ++round) {
      LineNumbers numbers[kAtOnce];
      AffineSums sums[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) numbers[k] = {lines[k].scale, lines[k].minimum};
      sums_of_lines<kAtOnce, kGroup, kLimit, false>(is_plain, x, w, numbers, sums);
      for (int k = 0; k < kAtOnce; ++k) {
        LineCandidates better;
        active[k] = hn::And(active[k], fit(sums[k], clamps, better));
        usable[k] = hn::Or(usable[k], active[k]);
        lines[k] = LineCandidates::chosen(active[k], better, lines[k]);
      }
    }
  }

  // Computes the line of least squared error for some levels; false if there is none of positive scale.
  Mask fit(const AffineSums& sums, bool clamps, LineCandidates& line) const {
    const Floats zero = floats(0), determinant = w_sum * sums.qq - sums.q * sums.q;
    Floats scale = (w_sum * sums.qx - wx_sum * sums.q) / determinant;
    Floats minimum = (sums.q * sums.qx - sums.qq * wx_sum) / determinant;
    if (clamps) {
      const Mask below = minimum < zero;
      minimum = choose(below, zero, minimum);
      scale = choose(below, sums.qx / sums.qq, scale);
    }
    const Floats square = scale * scale * sums.qq + minimum * minimum * w_sum;
    const Floats cross = scale * sums.qx - minimum * wx_sum + scale * minimum * sums.q;
    line.scale = scale;
    line.minimum = minimum;
    line.mean_level = sums.q / w_sum;
    line.error = square - floats(2) * cross;
    return hn::And(determinant > zero, scale > zero);
  }
};

// Codes of a group, and the sums for them.
struct GroupCodes {
  Floats scale = floats(0), minimum = floats(0);
  AffineSums sums{floats(FLT_MAX), floats(0), floats(0), floats(0)};

  static GroupCodes chosen(Mask mask, const GroupCodes& yes, const GroupCodes& no) {
    GroupCodes made;
    made.scale = choose(mask, yes.scale, no.scale);
    made.minimum = choose(mask, yes.minimum, no.minimum);
    made.sums = AffineSums::chosen(mask, yes.sums, no.sums);
    return made;
  }
  void improve(Mask mask, const GroupCodes& other) {
    *this = chosen(hn::And(mask, other.sums.error < sums.error), other, *this);
  }
};

// The result of a search, for super-blocks in lanes.
template <int kGroups>
struct AffineResult {
  PerLane<double> error;
  Floats d = floats(0), dmin = floats(0);
  Floats scales[kGroups], minimums[kGroups];

  explicit AffineResult(const PerLane<double>& zeros) : error(zeros) {
    for (int group = 0; group < kGroups; ++group) scales[group] = minimums[group] = floats(0);
  }
};

// A super-block per lane. `Codec` has a `kFormat`.
template <class Codec>
class AffineProblem {
 public:
  static constexpr int kGroup = Codec::kFormat.group, kLimit = Codec::kFormat.limit, kMax = Codec::kFormat.most_code;
  static constexpr int kGroups = 256 / kGroup;
  using Result = AffineResult<kGroups>;

  AffineProblem(const reference::AffineEffort& effort, bool is_plain, const float* x, const float* w)
      : effort_(effort), is_plain_(is_plain), x_(x), w_(w) {}

  // Improves `result`; `sign` is -1 if x is negated.
  void search(Result& result, float sign) {
    constexpr reference::AffineFormat kFormat = Codec::kFormat;
    Floats most_scale = floats(0), most_minimum = floats(0);
    for (int group = 0; group < kGroups; ++group) {
      const LineGroups<kGroup, kLimit> values(is_plain_, at(x_, group), at(w_, group), true);
      lines_[group] =
          values.lines(kFormat.first, kFormat.across, effort_.lines, effort_.refinements, effort_.kept, true);
      LineCandidates flat;
      flat.minimum = hn::Neg(values.low);
      lines_[group].set(values.is_flat(), flat);
      w_sums_[group] = values.w_sum;
      wx_sums_[group] = values.wx_sum;
      most_scale = greater(lines_[group].best[0].scale, most_scale);
      most_minimum = greater(lines_[group].best[0].minimum, most_minimum);
    }
    const float code = static_cast<float>(kMax) + 0.4f;
    most_scale = choose(most_scale == floats(0), floats(1e-12f), most_scale);  // only minimums
    for (int i = 0; i < effort_.d_starts; ++i)
      for (int j = 0; j < effort_.m_starts; ++j)
        descend(through_half(most_scale / floats(code - kFormat.apart * static_cast<float>(i))),
                through_half(most_minimum / floats(code - kFormat.apart * static_cast<float>(j))), result, sign);
  }

 private:
  static constexpr int kScales = 3;  // codes tried for a line

  static const float* at(const float* values, int group) { return values + group * kGroup * kLaneStep; }

  static Floats code_of_minimum(Floats minimum, Floats dmin) {
    return or_zero(dmin > floats(0), nearest_within(minimum / dmin, floats(0), floats(float{kMax})));
  }
  static Mask is_code(Floats code) { return hn::And(code >= floats(0), code <= floats(float{kMax})); }

  template <int kLines>
  HWY_INLINE void sums_of(int group, Floats d, Floats dmin, GroupCodes* codes) const {
    LineNumbers lines[kLines];
    AffineSums sums[kLines];
    for (int k = 0; k < kLines; ++k) lines[k] = {d * codes[k].scale, dmin * codes[k].minimum};
    sums_of_lines<kLines, kGroup, kLimit, true>(is_plain_, at(x_, group), at(w_, group), lines, sums);
    for (int k = 0; k < kLines; ++k) codes[k].sums = sums[k];
  }

  // A scale that is tried with minimums that follow from the levels by turns.
  struct Trial {
    GroupCodes now;   // to be tried next
    Mask on;          // the lanes where it is
    GroupCodes best;  // of error infinity before the first
    Mask is_used;     // the lanes where the scale was tried
    Floats tried[reference::kMinimumTurns];
  };

  // Takes the sums of trial.now, and moves on to the next minimum.
  void finish_turn(int group, Floats d, Floats dmin, int turn, Trial& trial) const {
    trial.best.improve(trial.on, trial.now);
    trial.tried[turn] = trial.now.minimum;
    const Floats next =
        code_of_minimum((d * trial.now.scale * trial.now.sums.q - wx_sums_[group]) / w_sums_[group], dmin);
    for (int i = 0; i <= turn; ++i) trial.on = and_differ(trial.on, next, trial.tried[i]);
    // Lanes that are done repeat their last minimum: the others in `tried` are not changed by it.
    trial.now.minimum = choose(trial.on, next, trial.now.minimum);
  }

  void run_trials(int group, Floats d, Floats dmin, Trial* trials) const {
    GroupCodes first[kScales];
    for (int k = 0; k < kScales; ++k) first[k] = trials[k].now;
    sums_of<kScales>(group, d, dmin, first);
    for (int k = 0; k < kScales; ++k) {
      trials[k].now.sums = first[k].sums;
      finish_turn(group, d, dmin, 0, trials[k]);
    }
    for (int k = 0; k < kScales; ++k)
      for (int turn = 1; turn < reference::kMinimumTurns; ++turn) {
        Trial& trial = trials[k];
        for (int i = turn; i < reference::kMinimumTurns; ++i) trial.tried[i] = trial.now.minimum;
        if (!any(trial.on)) break;
        sums_of<1>(group, d, dmin, &trial.now);
        finish_turn(group, d, dmin, turn, trial);
      }
  }

  // Tries the minimums beside the best one, if it belongs to this scale.
  void try_near(int group, Floats d, Floats dmin, const Trial& trial, GroupCodes& best) const {
    const Mask mine = hn::And(trial.is_used, best.scale == trial.now.scale);
    const Floats middle = best.minimum;
    for (int step = -1; step <= 1; ++step) {
      GroupCodes near;
      near.scale = trial.now.scale;
      near.minimum = middle + floats(static_cast<float>(step));
      Mask on = hn::And(mine, is_code(near.minimum));
      for (const Floats& tried : trial.tried) on = and_differ(on, near.minimum, tried);
      if (!any(on)) continue;
      sums_of<1>(group, d, dmin, &near);
      best.improve(on, near);
    }
  }

  // Improves the codes of a group in some lanes.
  void find_codes(int group, Floats d, Floats dmin, Mask lanes, GroupCodes& best) const {
    Floats first_middle = floats(0);
    for (int line = 0; line < effort_.kept; ++line) {
      const LineCandidates& found = lines_[group].best[line];
      const Mask has = hn::And(lanes, lines_[group].has[line]);
      if (!any(has)) continue;
      const Floats middle = nearest_within(found.scale / d, floats(0), floats(float{kMax}));
      Trial trials[kScales];
      for (int k = 0; k < kScales; ++k) {
        const Floats scale = middle + floats(static_cast<float>(k - 1));
        trials[k].is_used = hn::And(has, is_code(scale));
        if (line > 0) trials[k].is_used = and_greater(trials[k].is_used, hn::Abs(scale - first_middle), floats(1));
        trials[k].on = trials[k].is_used;
        trials[k].now.scale = scale;
        trials[k].now.minimum = code_of_minimum(found.minimum + (d * scale - found.scale) * found.mean_level, dmin);
        trials[k].best.sums.error = floats(HUGE_VALF);
      }
      first_middle = middle;
      run_trials(group, d, dmin, trials);
      for (int k = 0; k < kScales; ++k) {
        trials[k].best.scale = trials[k].now.scale;
        best.improve(trials[k].is_used, trials[k].best);
        if (effort_.near_minimums) try_near(group, d, dmin, trials[k], best);
      }
    }
  }

  void descend(Floats d, Floats dmin, Result& result, float sign) const {
    GroupCodes found[kGroups];
    PerLane<double> before(DBL_MAX);
    Mask active = all_lanes();
    for (int round = 0; round < reference::kAffineRounds; ++round) {
      active = hn::And(active, hn::And(d > floats(0), hn::And(d <= floats(kMaxHalf), dmin <= floats(kMaxHalf))));
      if (!any(active)) return;
      PerLane<double> total;
      for (int group = 0; group < kGroups; ++group) {
        if (round > 0)
          sums_of<1>(group, d, dmin, &found[group]);
        else
          found[group] = {};
        find_codes(group, d, dmin, active, found[group]);
        const PerLane<float> error = per_lane(found[group].sums.error);
        for (std::size_t lane = 0; lane < kLanes; ++lane) total.at[lane] += double{error.at[lane]};
      }
      keep(active, total, found, d, dmin, result, sign);
      PerLane<float> still = per_lane(active);
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        if (!(total.at[lane] < before.at[lane])) still.at[lane] = 0;
      before = total;
      const Floats d_before = d, dmin_before = dmin;
      fit_scales(found, still, d, dmin);
      active = hn::And(mask_of(still), hn::Or(differ(d, d_before), differ(dmin, dmin_before)));
    }
  }

  // Computes d and dmin of least squared error for the codes and their levels; clears `lanes` where there are none.
  void fit_scales(const GroupCodes* found, PerLane<float>& lanes, Floats& d, Floats& dmin) const {
    PerLane<double> ss, sm, mm, s, m;
    for (int group = 0; group < kGroups; ++group) {
      const PerLane<float> scales = per_lane(found[group].scale), minimums = per_lane(found[group].minimum);
      const PerLane<float> qq = per_lane(found[group].sums.qq), q = per_lane(found[group].sums.q);
      const PerLane<float> qx = per_lane(found[group].sums.qx);
      const PerLane<float> w = per_lane(w_sums_[group]), wx = per_lane(wx_sums_[group]);
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double scale = double{scales.at[lane]}, minimum = double{minimums.at[lane]};
        ss.at[lane] += scale * scale * double{qq.at[lane]};
        sm.at[lane] += scale * minimum * double{q.at[lane]};
        mm.at[lane] += minimum * minimum * double{w.at[lane]};
        s.at[lane] += scale * double{qx.at[lane]};
        m.at[lane] += minimum * double{wx.at[lane]};
      }
    }
    PerLane<float> ds = per_lane(d), dmins = per_lane(dmin);
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double determinant = ss.at[i] * mm.at[i] - sm.at[i] * sm.at[i];
      if (mm.at[i] > 0 && determinant > 1e-12 * ss.at[i] * mm.at[i]) {
        ds.at[i] = static_cast<float>((s.at[i] * mm.at[i] - sm.at[i] * m.at[i]) / determinant);
        dmins.at[i] = static_cast<float>((sm.at[i] * s.at[i] - ss.at[i] * m.at[i]) / determinant);
      } else if (ss.at[i] > 0) {
        ds.at[i] = static_cast<float>((s.at[i] + double{dmins.at[i]} * sm.at[i]) / ss.at[i]);
      } else {
        lanes.at[i] = 0;
      }
    }
    d = through_half(floats_of(ds));
    dmin = through_half(greater(floats_of(dmins), floats(0)));
  }

  static void keep(Mask active, const PerLane<double>& total, const GroupCodes* found, Floats d, Floats dmin,
                   Result& result, float sign) {
    PerLane<float> better = per_lane(active);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (!(total.at[lane] < result.error.at[lane])) better.at[lane] = 0;
      if (better.at[lane] != 0) result.error.at[lane] = total.at[lane];
    }
    const Mask mask = mask_of(better);
    result.d = choose(mask, d * floats(sign), result.d);
    result.dmin = choose(mask, dmin * floats(sign), result.dmin);
    for (int group = 0; group < kGroups; ++group) {
      result.scales[group] = choose(mask, found[group].scale, result.scales[group]);
      result.minimums[group] = choose(mask, found[group].minimum, result.minimums[group]);
    }
  }

  static constexpr float kMaxHalf = 65504;

  const reference::AffineEffort& effort_;
  const bool is_plain_;
  const float* x_;
  const float* w_;
  BestLines lines_[kGroups];
  Floats w_sums_[kGroups], wx_sums_[kGroups];
};

// Sets the levels of kCount values of a block, with values in lanes; see put_levels() of
// plugins/reference/search_affine.cpp.
template <int kCount>
HWY_INLINE void put_levels(const float* x, float scale, float minimum, int limit, std::uint8_t* levels) {
  const Floats inverse = floats(reference::inverse_of(scale)), most = floats(static_cast<float>(limit));
  for (int i = 0; i < kCount; i += kLaneStep) {
    const Floats scaled = (hn::LoadU(kFloats, x + i) + floats(minimum)) * inverse;
    store_bytes(as_words(round_to_ints(nearest_within(scaled, floats(0), most))), levels + i);
  }
}

// A LaneSearch of types with scales and minimums.
template <class Codec>
void search_affine(const SearchLanes<256>& block, const float* const* x, std::uint32_t effort,
                   reference::AffineCodes* codes, bool* found) {
  using Problem = AffineProblem<Codec>;
  const reference::AffineEffort& tried = reference::kAffineEfforts[effort - 1];
  PerLane<double> zeros;
  store(weighted_squares(block), zeros.at);
  typename Problem::Result result(zeros);
  Problem(tried, block.is_plain, block.x, block.weights).search(result, 1);
  if (tried.reflects) {
    alignas(64) float negated[256 * kLanes];
    for (int i = 0; i < 256; ++i)
      hn::Store(hn::Neg(hn::Load(kFloats, block.x + i * kLaneStep)), kFloats, negated + i * kLaneStep);
    Problem(tried, block.is_plain, negated, block.weights).search(result, -1);
  }
  const PerLane<float> d = per_lane(result.d), dmin = per_lane(result.dmin);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    codes[lane].d = d.at[lane];
    codes[lane].dmin = dmin.at[lane];
    found[lane] =
        zeros.at[lane] == 0 ? reference::sum_of_squares(x[lane], 256) == 0 : d.at[lane] != 0 || dmin.at[lane] != 0;
  }
  for (int group = 0; group < Problem::kGroups; ++group) {
    const PerLane<float> scales = per_lane(result.scales[group]), minimums = per_lane(result.minimums[group]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      codes[lane].scales[group] = static_cast<std::uint8_t>(scales.at[lane]);
      codes[lane].minimums[group] = static_cast<std::uint8_t>(minimums.at[lane]);
    }
  }
  constexpr int kGroup = Codec::kFormat.group;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    reference::AffineCodes& of_lane = codes[lane];
    for (int group = 0; group < Problem::kGroups; ++group)
      put_levels<kGroup>(x[lane] + group * kGroup, of_lane.d * of_lane.scales[group],
                         of_lane.dmin * of_lane.minimums[group], Codec::kFormat.limit, of_lane.levels + group * kGroup);
  }
}

// A LaneSearch of types with a scale and a minimum for each block.
template <class Codec>
void search_line(const SearchLanes<reference::kInLine>& block, const float* const* x, std::uint32_t effort,
                 reference::LineCodes* codes, bool* found) {
  constexpr int kLimit = Codec::kLimit;
  using Group = LineGroups<reference::kInLine, kLimit>;
  const Group group(block.is_plain, block.x, block.weights, false);
  const reference::AffineEffort& effort_tried = reference::kAffineEfforts[effort - 1];
  BestLines lines = group.lines(float{kLimit} - 1.0f, reference::kLineAcross, effort_tried.lines_alone,
                                effort_tried.refinements_alone, reference::kLinesKept, false);
  GroupCodes best;  // with d and m in place of codes
  for (int line = 0; line < reference::kLinesKept; ++line) {
    const Floats d = through_half(lines.best[line].scale), m = through_half(lines.best[line].minimum);
    const LineNumbers numbers{d, m};
    GroupCodes tried;
    sums_of_lines<1, reference::kInLine, kLimit, true>(block.is_plain, block.x, block.weights, &numbers, &tried.sums);
    tried.scale = d;
    tried.minimum = hn::Neg(m);
    const Floats most = floats(FLT_MAX);
    best.improve(hn::And(lines.has[line], hn::And(hn::Abs(d) <= most, hn::Abs(m) <= most)), tried);
  }
  const PerLane<float> d = per_lane(best.scale), m = per_lane(best.minimum), error = per_lane(best.sums.error);
  const PerLane<float> flat = per_lane(group.is_flat()), low = per_lane(group.low), high = per_lane(group.high);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (flat.at[lane] != 0) {
      codes[lane] = {};
      codes[lane].m = reference::as_half(x[lane][0]);
      found[lane] = high.at[lane] - low.at[lane] < reference::kZeroGroup && std::isfinite(codes[lane].m);
      continue;
    }
    codes[lane].d = d.at[lane];
    codes[lane].m = m.at[lane];
    put_levels<reference::kInLine>(x[lane], codes[lane].d, -codes[lane].m, kLimit, codes[lane].levels);
    found[lane] = error.at[lane] < FLT_MAX;
  }
}

}  // namespace ggufmill::simd
