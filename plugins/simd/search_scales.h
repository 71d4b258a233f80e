#pragma once
// The searches of plugins/reference/search_scales.h with a block per lane. Codes and values are floats.

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "plugins/reference/fit.h"
#include "plugins/reference/search_scales.h"
#include "plugins/simd/bytes.h"
#include "plugins/simd/iq4_values.h"
#include "plugins/simd/search_lanes.h"

namespace ggufmill::simd {

// Sums over a group, for values v: of w v x and w v v.
struct ValueSums {
  Floats vx = floats(0), vv = floats(0);

  // With kIsPlain, w is 1; then v v is a small whole number, and the fused operation is exact.
  template <bool kIsPlain>
  HWY_INLINE void add(Floats x, Floats w, Floats v) {
    const Floats wv = kIsPlain ? v : w * v;
    vx = vx + wv * x;
    vv = kIsPlain ? hn::MulAdd(v, v, vv) : vv + wv * v;
  }
};

struct ScaleCandidates {
  Floats scale, error;

  Mask is_like(const ScaleCandidates& other) const {
    return hn::Abs(scale - other.scale) < floats(1e-4f) * hn::Abs(scale);
  }
  static ScaleCandidates chosen(Mask mask, const ScaleCandidates& yes, const ScaleCandidates& no) {
    return {choose(mask, yes.scale, no.scale), choose(mask, yes.error, no.error)};
  }
};
using BestScales = BestOfLanes<ScaleCandidates>;

// Scales above zero and below.
struct ScalePair {
  ScaleCandidates scales[2];
  Mask active[2];  // the lanes where they can be improved
  Mask usable[2];  // the lanes where they were
  bool is_one;     // both have the same magnitude

  void set(Floats scale, bool has_signs) {
    is_one = true;
    for (int sign = 0; sign < 2; ++sign) {
      scales[sign].scale = sign == 1 && has_signs ? hn::Neg(scale) : scale;
      active[sign] = all_lanes();
      usable[sign] = no_lanes();
    }
  }
};

// Loads the values of the blocks in the lanes.
struct OwnLanes {
  Floats operator()(const float* values) const { return hn::Load(kFloats, values); }
};

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

  // Returns the best scales; see reference::scales_of().
  static BestScales scales_of(bool is_plain, const float* x, const float* w, const reference::ScaleEffort& effort,
                              int tries, int kept) {
    Floats magnitude = floats(0);
    for (int i = 0; i < kGroup; ++i) magnitude = greater(hn::Abs(hn::Load(kFloats, x + i * kLaneStep)), magnitude);
    ScalePair found[kMaxTries];
    for (int k = 0; k < tries; ++k) found[k].set(magnitude / floats(extreme_of(effort, k, tries)), kFormat.is_table);
    // Round by round, so that no scale waits for the divisions of the one before.
    for (int round = 0; round < effort.improvements; ++round)
      for (int k = 0; k < tries; ++k) {
        const Ends ends = round == 0 ? ends_at(extreme_of(effort, k, tries)) : Ends::kBoth;
        if (is_plain)
          improve<true>(x, w, ends, found[k]);
        else
          improve<false>(x, w, ends, found[k]);
      }
    if constexpr (!kFormat.is_table)
      for (int k = 0; k < tries; ++k) found[k].scales[1].scale = hn::Neg(found[k].scales[1].scale);
    BestScales best;
    for (int sign = 0; sign < 2; ++sign)
      for (int k = 0; k < tries; ++k) best.offer(found[k].usable[sign], found[k].scales[sign], kept);
    best.set(hn::Not(best.has[0]), {magnitude / floats(kFormat.extreme), floats(0)});
    best.set(magnitude < floats(reference::kZeroGroup), ScaleCandidates());
    return best;
  }

  // Computes the errors at kScales scales with these inverses, of the values that `lanes` loads. A scale is a half, or
  // one times a code, so that its product with a value has at most 11 + 7 + 5 or 11 + 5 + 7 bits: it is exact, and the
  // fused operation rounds as the others do.
  template <int kScales, bool kIsPlain, class Lanes>
  static HWY_INLINE void errors_at(const float* x, const float* w, const Lanes& lanes, const Floats* scales,
                                   const Floats* inverse, Floats* errors) {
    GGUFMILL_UNROLL
    for (int k = 0; k < kScales; ++k) errors[k] = floats(0);
    GGUFMILL_ROLLED
    for (int i = 0; i < kGroup; ++i) {
      const Floats value = lanes(x + i * kLaneStep);
      const Floats weight = kIsPlain ? value : lanes(w + i * kLaneStep);
      GGUFMILL_UNROLL
      for (int k = 0; k < kScales; ++k) {
        const Floats e = hn::NegMulAdd(scales[k], nearest_value(value * inverse[k]), value);
        errors[k] = errors[k] + (kIsPlain ? e : weight * e) * e;
      }
    }
  }

  // Computes the other sums at a scale.
  template <bool kIsPlain, class Lanes>
  static HWY_INLINE ValueSums values_at(const float* x, const float* w, const Lanes& lanes, Floats scale) {
    const Floats inverse = inverse_of(scale);
    ValueSums sums;
    GGUFMILL_ROLLED
    for (int i = 0; i < kGroup; ++i) {
      const Floats value = lanes(x + i * kLaneStep);
      sums.template add<kIsPlain>(value, kIsPlain ? value : lanes(w + i * kLaneStep), nearest_value(value * inverse));
    }
    return sums;
  }

 private:
  static constexpr int kMaxTries = 40;

  // Returns the value that the greatest weight is first given.
  static float extreme_of(const reference::ScaleEffort& effort, int k, int tries) {
    const float part = effort.first + effort.across * static_cast<float>(k) / static_cast<float>(tries - 1);
    return kFormat.extreme * part;
  }

  // The ends of the range that values can be beyond, when a weight of greatest magnitude is given `extreme`. The bounds
  // leave a margin that is far above the errors of rounding.
  enum class Ends { kNone, kLess, kBoth };
  static Ends ends_at(float extreme) {
    constexpr float kMax = static_cast<float>(kFormat.most) + 0.499f;
    constexpr float kMin = static_cast<float>(-kFormat.least) + 0.499f;
    return extreme < kMax ? Ends::kNone : extreme < kMin ? Ends::kLess : Ends::kBoth;
  }

  template <bool kIsPlain>
  static void improve(const float* x, const float* w, Ends ends, ScalePair& found) {
    ValueSums sums[2];
    const Floats scales[] = {found.scales[0].scale, found.scales[1].scale};
    if constexpr (kFormat.is_table)
      sums_of_signs<kIsPlain>(x, w, scales, sums);
    else if (!found.is_one)
      sums_of_ranges<kIsPlain, false, Ends::kBoth>(x, w, scales, sums);
    else if (ends == Ends::kNone)
      sums_of_ranges<kIsPlain, true, Ends::kNone>(x, w, scales, sums);
    else if (ends == Ends::kLess)
      sums_of_ranges<kIsPlain, true, Ends::kLess>(x, w, scales, sums);
    else
      sums_of_ranges<kIsPlain, true, Ends::kBoth>(x, w, scales, sums);
    const bool is_shared = kIsSymmetric || ends == Ends::kNone;
    if (is_shared) sums[1] = sums[0];
    found.is_one = found.is_one && is_shared;
    for (int sign = 0; sign < 2; ++sign) {
      found.active[sign] = and_greater(found.active[sign], sums[sign].vv, floats(0));
      found.usable[sign] = hn::Or(found.usable[sign], found.active[sign]);
      const Floats scale = sums[sign].vx / sums[sign].vv;
      const ScaleCandidates better{scale, hn::Neg(sums[sign].vx) * scale};
      found.scales[sign] = ScaleCandidates::chosen(found.active[sign], better, found.scales[sign]);
    }
  }

  // Computes the sums at two scales.
  template <bool kIsPlain>
  static HWY_INLINE void sums_of_signs(const float* x, const float* w, const Floats* scales, ValueSums* sums) {
    const Floats inverse[] = {inverse_of(scales[0]), inverse_of(scales[1])};
    GGUFMILL_ROLLED
    for (int i = 0; i < kGroup; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kLaneStep), weight = hn::Load(kFloats, w + i * kLaneStep);
      for (int k = 0; k < 2; ++k) sums[k].template add<kIsPlain>(value, weight, nearest_value(value * inverse[k]));
    }
  }

  // At a scale below zero, the values are those at the scale above zero and of the other sign, in the range whose ends
  // have the other sign; w v x has the other sign as well, and nothing else changes. So these scales and sums are
  // computed for the opposite range. With kIsOne, both scales are the same, and rounding is done once. If the range is
  // symmetric, or no value is beyond its ends, so are the sums, and only the first ones are computed.
  template <bool kIsPlain, bool kIsOne, Ends kEnds>
  static HWY_INLINE void sums_of_ranges(const float* x, const float* w, const Floats* scales, ValueSums* sums) {
    const Floats least = floats(float{kFormat.least}), most = floats(float{kFormat.most});
    const Floats inverse = inverse_of(scales[0]), other_inverse = kIsOne ? inverse : inverse_of(scales[1]);
    GGUFMILL_ROLLED
    for (int i = 0; i < kGroup; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kLaneStep), weight = hn::Load(kFloats, w + i * kLaneStep);
      const Floats rounded = hn::Round(value * inverse);
      const Floats others = kIsOne ? rounded : hn::Round(value * other_inverse);
      const Floats above = kEnds == Ends::kBoth ? greater(rounded, least) : rounded;
      sums[0].template add<kIsPlain>(value, weight, kEnds == Ends::kNone ? above : lesser(above, most));
      if constexpr (kIsSymmetric || kEnds == Ends::kNone) continue;
      const Floats below = kEnds == Ends::kBoth ? lesser(others, hn::Neg(least)) : others;
      sums[1].template add<kIsPlain>(value, weight, greater(below, hn::Neg(most)));
    }
  }
};

// The scales of super-blocks in lanes.
//
// Starts and rounds of reference::ScaleProblem are steps of a descent, and descents of any blocks can be in the lanes:
// most of them end early. The scales that d and -d give with codes of the other sign are the same, so that both share
// their errors: only the codes that they may choose from differ, at the ends of the range, and their order.
template <class Codec>
class ScaleProblem {
 public:
  using Groups = ScaleGroups<Codec>;
  static constexpr reference::ScaleFormat kFormat = Codec::kFormat;
  static constexpr int kGroups = 256 / kFormat.group;

  ScaleProblem(const reference::ScaleEffort& effort, const SearchLanes<256>& block, reference::ScaleCodes* codes)
      : effort_(effort), block_(block), codes_(codes) {
    store(weighted_squares(block), least_);
    std::fill_n(start_of_least_, kLanes, -1);
  }

  // Improves the codes of all blocks. Returns the lanes where a scale is not a number, which need the scalar search.
  Mask search() {
    Floats greatest = floats(0);
    Mask is_lost = no_lanes();
    for (int group = 0; group < kGroups; ++group) {
      scales_[group] = Groups::scales_of(block_.is_plain, x(group), w(group), effort_, effort_.scales, effort_.kept);
      for (const ScaleCandidates& each : scales_[group].best) is_lost = hn::Or(is_lost, is_nan(each.scale));
      const Floats scale = scales_[group].best[0].scale;
      greatest = choose(hn::Abs(scale) > hn::Abs(greatest), scale, greatest);
    }
    const float code = 0.5f - static_cast<float>(kFormat.least_code);
    if (effort_.starts == 0) start(hn::Neg(greatest) / floats(code), 0, false);
    for (int i = 0; i < effort_.starts; ++i)
      start(hn::Abs(greatest) / floats(code - kFormat.apart * static_cast<float>(i)), 2 * i, true);
    while (count_ > 0) {
      Descent some[kLanes];
      int count = 0;
      for (; count < kLaneStep && count_ > 0; --count_) some[count++] = waiting_[first_++ % kMaxWaiting];
      if (block_.is_plain)
        step<true>(some, count);
      else
        step<false>(some, count);
    }
    return is_lost;
  }

 private:
  static constexpr int kCodes = 3;                     // tried for a scale
  static constexpr unsigned kMaxWaiting = 8 * kLanes;  // a block has eight starts at most
  static constexpr int kBeyond = -kFormat.least_code;
  static_assert(kBeyond == kFormat.most_code + 1);

  struct Descent {
    std::int32_t lane;
    int start, round;
    bool is_pair;  // stands for that of the next start as well, whose d and codes have had the other sign so far
    float d;
    double before;  // its error
  };

  // Loads the values of the blocks of some descents.
  struct Lanes {
    decltype(hn::SetTableIndices(kFloats, static_cast<const std::int32_t*>(nullptr))) indices;
    Floats operator()(Floats values) const { return hn::TableLookupLanes(values, indices); }
    Floats operator()(const float* values) const { return (*this)(hn::Load(kFloats, values)); }
  };

  // The codes tried for a scale, which is `exact` in the same unit, and the scales that they stand for.
  struct Trial {
    Floats exact, codes[kCodes], scales[kCodes], inverse[kCodes];
  };

  // The codes of all groups for a sign of d, and the sum of their errors.
  struct Choice {
    Floats codes[kGroups];
    LaneDoubles total;
  };

  const float* x(int group) const { return block_.x + group * kFormat.group * kLaneStep; }
  const float* w(int group) const { return block_.weights + group * kFormat.group * kLaneStep; }

  void start(Floats d, int start, bool is_pair) {
    const PerLane<float> ds = per_lane(through_half(d));
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      add({static_cast<std::int32_t>(lane), start, 0, is_pair, ds.at[lane], DBL_MAX});
  }
  void add(const Descent& descent) {
    if (descent.round == effort_.rounds || descent.d == 0 || !std::isfinite(descent.d)) return;
    waiting_[(first_ + count_) % kMaxWaiting] = descent;
    ++count_;
  }

  // Finds codes for up to kLanes descents, and adds those that go on.
  template <bool kIsPlain>
  void step(const Descent* descents, int count) {
    PerLane<std::int32_t> lanes_of;
    PerLane<float> ds;
    bool has_pairs = false;
    for (int i = 0; i < kLaneStep; ++i) {
      const Descent& each = descents[std::min(i, count - 1)];
      lanes_of.at[i] = each.lane;
      ds.at[i] = each.d;
      has_pairs |= each.is_pair;
    }
    const Lanes lanes{hn::SetTableIndices(kFloats, lanes_of.at)};
    const Floats d = floats_of(ds);
    Choice choices[2];
    if (has_pairs)
      find_codes<kIsPlain, 2>(lanes, d, choices);
    else
      find_codes<kIsPlain, 1>(lanes, d, choices);

    PerLane<double> totals[2];
    Mask apart = no_lanes();
    for (int sign = 0; sign < (has_pairs ? 2 : 1); ++sign) store(choices[sign].total, totals[sign].at);
    if (has_pairs)
      for (int group = 0; group < kGroups; ++group)
        apart = hn::Or(apart, differ(choices[0].codes[group], hn::Neg(choices[1].codes[group])));
    const PerLane<float> is_apart = per_lane(apart);
    bool is_on[2] = {false, false};
    for (int i = 0; i < count; ++i) {
      const bool splits = descents[i].is_pair && is_apart.at[i] != 0;
      for (int sign = 0; sign < (splits ? 2 : 1); ++sign) {
        keep(descents[i], i, sign, totals[sign].at[i], choices[sign].codes);
        is_on[sign] |= descents[i].round + 1 < effort_.rounds && totals[sign].at[i] < descents[i].before;
      }
    }
    ValueSums sums[kGroups];
    for (int sign = 0; sign < 2; ++sign) {
      if (!is_on[sign]) continue;
      for (int group = 0; group < kGroups; ++group) {
        const Floats code = sign == 0 ? choices[0].codes[group] : hn::Neg(choices[1].codes[group]);
        if (sign == 1 && is_on[0] && all(code == choices[0].codes[group])) continue;  // has the sums of the other
        sums[group] = Groups::template values_at<kIsPlain>(x(group), w(group), lanes, d * code);
      }
      const PerLane<float> next = per_lane(next_d(choices[sign].codes, sums));
      for (int i = 0; i < count; ++i) {
        const Descent& from = descents[i];
        const bool splits = from.is_pair && is_apart.at[i] != 0;
        if (sign == 1 && !splits) continue;
        const float before = sign == 0 ? from.d : -from.d;
        if (totals[sign].at[i] < from.before && next.at[i] != before)
          add({from.lane, from.start + sign, from.round + 1, from.is_pair && !splits, next.at[i], totals[sign].at[i]});
      }
    }
  }

  Trial trial(const Lanes& lanes, Floats d, int group, int kept) const {
    const Floats most = floats(float{kFormat.most_code});
    Trial made;
    made.exact = hn::Round(lanes(scales_[group].best[kept].scale) / d);
    const Floats within = lesser(greater(made.exact, hn::Neg(most)), most);
    for (int k = 0; k < kCodes; ++k) {
      made.codes[k] = within + floats(static_cast<float>(k - 1));
      made.scales[k] = d * made.codes[k];
      made.inverse[k] = inverse_of(made.scales[k]);
    }
    return made;
  }

  // Finds the best codes for d and, if kSigns is 2, for -d.
  template <bool kIsPlain, int kSigns>
  HWY_INLINE void find_codes(const Lanes& lanes, Floats d, Choice* choices) const {
    const Floats most = floats(float{kFormat.most_code}), beyond = floats(float{kBeyond});
    for (int sign = 0; sign < kSigns; ++sign) choices[sign].total = doubles_of(floats(0));
    Trial next = trial(lanes, d, 0, 0);
    for (int group = 0; group < kGroups; ++group) {
      Floats best[kSigns], least[kSigns], first_middle[kSigns];
      GGUFMILL_UNROLL
      for (int sign = 0; sign < kSigns; ++sign) {
        best[sign] = first_middle[sign] = floats(0);
        least[sign] = floats(FLT_MAX);
      }
      Trial now = next;
      if (group + 1 < kGroups) next = trial(lanes, d, group + 1, 0);  // its divisions take long
      for (int kept = 0; kept < effort_.kept; ++kept) {
        const Mask has =
            kept == 0 ? all_lanes() : differ(lanes(or_zero(scales_[group].has[kept], floats(1))), floats(0));
        if (!any(has)) continue;
        if (kept > 0) now = trial(lanes, d, group, kept);
        const Floats* const codes = now.codes;
        Floats errors[kCodes];
        Groups::template errors_at<kCodes, kIsPlain>(x(group), w(group), lanes, now.scales, now.inverse, errors);
        const bool is_inside = kept == 0 && all(hn::Abs(now.exact) < most);  // all codes are in both ranges
        for (int sign = 0; sign < kSigns; ++sign) {
          const Floats middle = sign == 0 ? lesser(greater(now.exact, hn::Neg(beyond)), most)
                                          : lesser(greater(now.exact, hn::Neg(most)), beyond);
          for (int i = 0; i < kCodes; ++i) {
            const int k = sign == 0 ? i : kCodes - 1 - i;
            Mask better = hn::And(has, errors[k] < least[sign]);
            if (!is_inside) {
              better = hn::And(better, hn::Abs(codes[k] - middle) <= floats(1));
              better = hn::And(better, sign == 0 ? codes[k] <= most : codes[k] >= hn::Neg(most));
            }
            if (kept > 0) better = and_greater(better, hn::Abs(codes[k] - first_middle[sign]), floats(1));
            best[sign] = choose(better, codes[k], best[sign]);
            least[sign] = choose(better, errors[k], least[sign]);
          }
          first_middle[sign] = middle;
        }
      }
      for (int sign = 0; sign < kSigns; ++sign) {
        choices[sign].codes[group] = sign == 0 ? best[sign] : hn::Neg(best[sign]);
        choices[sign].total = choices[sign].total + doubles_of(least[sign]);
      }
    }
  }

  // Returns the d of least squared error for some codes and their sums. The result is 0 if there is none.
  static Floats next_d(const Floats* codes, const ValueSums* sums) {
    LaneDoubles vx = doubles_of(floats(0)), vv = vx;
    for (int group = 0; group < kGroups; ++group) {
      // A code of 0 adds nothing; it also stands for groups where no error was finite, whose sums may be infinite.
      const Mask counts = differ(codes[group], floats(0));
      const LaneDoubles factor = doubles_of(codes[group]);
      vx = vx + factor * doubles_of(or_zero(counts, sums[group].vx));
      vv = vv + factor * factor * doubles_of(or_zero(counts, sums[group].vv));
    }
    PerLane<double> vx_of, vv_of;
    store(vx, vx_of.at);
    store(vv, vv_of.at);
    PerLane<float> next;
    for (std::size_t i = 0; i < kLanes; ++i)
      next.at[i] = vv_of.at[i] > 0 ? static_cast<float>(vx_of.at[i] / vv_of.at[i]) : 0.0f;
    return through_half(floats_of(next));
  }

  // Keeps the total of the first start among equal ones, and that of the first round of a start.
  void keep(const Descent& descent, int at, int sign, double total, const Floats* codes) {
    const int lane = descent.lane, start = descent.start + sign;
    if (!(total < least_[lane] || (total == least_[lane] && start < start_of_least_[lane]))) return;
    least_[lane] = total;
    start_of_least_[lane] = start;
    codes_[lane].d = sign == 0 ? descent.d : -descent.d;
    for (int group = 0; group < kGroups; ++group)
      codes_[lane].scales[group] =
          static_cast<std::int8_t>(hn::ExtractLane(codes[group], static_cast<std::size_t>(at)));
  }

  const reference::ScaleEffort& effort_;
  const SearchLanes<256>& block_;
  reference::ScaleCodes* codes_;
  BestScales scales_[kGroups];
  alignas(64) double least_[kLanes];
  int start_of_least_[kLanes];
  unsigned first_ = 0;  // of those that wait, in a ring
  unsigned count_ = 0;
  Descent waiting_[kMaxWaiting];
};

// Sets the levels of a group of a block whose values are at `x`, with values in lanes; see put_levels() of
// plugins/reference/search_scales.cpp.
template <class Codec>
HWY_INLINE void put_levels(const float* x, int group, float scale, reference::ScaleCodes& codes) {
  constexpr reference::ScaleFormat kFormat = Codec::kFormat;
  const Floats inverse = floats(reference::inverse_of(scale));
  for (int i = group * kFormat.group; i < (group + 1) * kFormat.group; i += kLaneStep) {
    const Floats scaled = hn::LoadU(kFloats, x + i) * inverse;
    if constexpr (kFormat.is_table)
      store_bytes(Iq4Place(greater(scaled, floats(-128))).level(), codes.levels + i);
    else
      store_bytes(as_words(round_to_ints(ScaleGroups<Codec>::nearest_value(scaled)) - ints(kFormat.least)),
                  codes.levels + i);
  }
}

// A LaneSearch of types with scales.
template <class Codec>
void search_scales(const SearchLanes<256>& block, const float* const* x, std::uint32_t effort,
                   reference::ScaleCodes* codes, bool* found) {
  const Mask is_lost = ScaleProblem<Codec>(reference::kScaleEfforts[effort - 1], block, codes).search();
  const unsigned lost = mask_bits(is_lost);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (lost >> lane & 1) {
      float weights[256];
      for (std::size_t i = 0; i < 256; ++i) weights[i] = block.weights[i * kLanes + lane];
      found[lane] = reference::search_scales(Codec::kFormat, x[lane], weights, effort, codes[lane]);
      continue;
    }
    found[lane] = codes[lane].d != 0;
    if (!found[lane]) continue;
    for (int group = 0; group < 256 / Codec::kFormat.group; ++group)
      put_levels<Codec>(x[lane], group, codes[lane].d * codes[lane].scales[group], codes[lane]);
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
    const Floats inverse = inverse_of(d);
    Floats error;
    if (block.is_plain)
      Groups::template errors_at<1, true>(block.x, block.weights, OwnLanes(), &d, &inverse, &error);
    else
      Groups::template errors_at<1, false>(block.x, block.weights, OwnLanes(), &d, &inverse, &error);
    const Mask better = hn::And(hn::And(scales.has[kept], is_usable), error < least);
    least = choose(better, error, least);
    best = choose(better, d, best);
  }
  const PerLane<float> d = per_lane(best);
  PerLane<double> zeros;
  store(weighted_squares(block), zeros.at);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    codes[lane].d = d.at[lane];
    found[lane] = zeros.at[lane] != 0 && d.at[lane] != 0;
    if (!found[lane]) continue;
    put_levels<Codec>(x[lane], 0, codes[lane].d, codes[lane]);
  }
}

}  // namespace ggufmill::simd
