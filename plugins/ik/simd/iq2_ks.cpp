// The encoder of IQ2_KS.
//
// The search tries 27 scales with each table and sign, and takes the one with the greatest score. First, the scores of
// all of them are estimated from a histogram: a value passes a border between levels from one of these scales on. For
// magnitude a = |x / greatest|, level border b, and the divisor D of the greatest value, this is the case if
// a >= |b| / D. These thresholds are the same for all sub-blocks, so each value is in one bin between two of them, and
// the sums of a trial are made of three sums of bins. Then only the trials whose estimates are next to the greatest one
// are computed as the plain loop computes them.
//
// Proof that no other trial can win. All weights are non-negative, and c is the value of the level that is next to
// zero. u is the rounding error of a float, 2^-24. In an estimate of q2, all terms are positive, and each value is
// rounded at most 37 times. This is also true of qx, but for c * sum(w x), where terms cancel: its error is at most 37
// u qx + 70 u c X for X = sum(w |x|). Every level has a magnitude of c or more, so that q2 >= c^2 W for W = sum(w). A
// trial with a score S has qx = sqrt(S q2) >= c sqrt(S W). The search makes sure that X <= 2 sqrt(S W) for the greatest
// score, so the error of qx is at most 177 u, and that of the score at most 394 u. By the same argument, the error of
// the score of the plain loop is at most 92 u. Two of these add up to less than kSpare. The divisions by levels are
// exact: where a value is so close to a threshold that rounding decides, the comparison of the plain loop is made. All
// other values are on the same side of a border however they are compared with it.
//
// The scale that the plain loop starts from is estimated, too. Values as great as the extreme one are halfway between
// two levels there, and rounding decides which of them has the first one. If their weights are v, the score is (qx +
// 18 v)^2 / (q2 + 792 v), which is convex in v, so it is not above the greater one of those for none and all of them.
// Their magnitudes count as 1, which adds 8 u (qx + c X) <= 24 u qx to the error.
//
// A trial is skipped if it has the levels of the one before. The plain loop compares the two signs of a trial with
// each other first, so it is skipped only if both signs have these levels, or are not near the greatest score. Values
// move in one direction from each trial to the next, and every move changes q2 by 28 times its weight or more. If q2
// stays, there was no move, unless one is lost in the error of a sum of bins, u W for each bin with a value, and in
// eight roundings of at most 961 u W each: not if the least weight is 400 u W.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "plugins/ik/simd/eight_sums.h"
#include "plugins/ik/simd/ks_types.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32, kSubs = LaneScales::kCount, kStep = static_cast<int>(kLanes);
constexpr int kTries = 13, kTrials = 2 * kTries + 1;
constexpr ik::Weighting kWeighting{1.5f, ik::Without::kSquaresAndQuarter};
constexpr const LevelTables<4>& kTables = kLevels<4>;

using Blocks = WeightedBlocks<kSub>;

// The values of a table, for lanes that may differ in the table.
struct Values {
  Floats at[4];

  explicit Values(const LevelTable<4>& table) {
    for (std::size_t i = 0; i < 4; ++i) at[i] = floats(table.value(i));
  }
  explicit Values(Mask is_shifted) {
    for (std::size_t i = 0; i < 4; ++i)
      at[i] = choose(is_shifted, floats(kTables.shifted.value(i)), floats(kTables.plain.value(i)));
  }
};

// Returns the value of the first level whose value, times d, is nearest to x. `products` are the values times d.
// Squared distances do not rise before the nearest level, and do not fall after it, also when they are rounded.
HWY_INLINE Floats nearest(const Values& values, const Floats* products, Floats x) {
  Floats nearest = values.at[0], before = (x - products[0]) * (x - products[0]);
  GGUFMILL_UNROLL
  for (std::size_t i = 1; i < 4; ++i) {
    const Floats off = x - products[i], square = off * off;
    nearest = choose(square < before, values.at[i], nearest);
    before = square;
  }
  return nearest;
}

// The divisor of the greatest value in trial t; negative.
constexpr float divisor(bool is_shifted, int t) {
  return kTables[is_shifted].value(std::size_t{0}) + 0.5f * static_cast<float>(t - kTries);
}

// Borders 0 and 1 of both tables are below zero, border 2 is above.
constexpr int kBorders = 3;
constexpr int kUp = 2, kCentre = 2;  // the border above the level that is next to zero, and this level
static_assert(kTables.plain.border(1) < 0 && kTables.plain.border(kUp) > 0);
static_assert(kTables.shifted.border(1) < 0 && kTables.shifted.border(kUp) > 0);

// Border b of the plain table has number b, of the shifted one kBorders + b. Returns its distance from zero.
constexpr float distance(int border) {
  const float at = kTables[border >= kBorders].border(static_cast<std::size_t>(border % kBorders));
  return at < 0 ? -at : at;
}

// The start has the plain table and the divisor of trial kStart, which is beyond the others. Only the extreme value
// itself is beyond border 0 there, so that this border needs no threshold for it.
constexpr int kStart = 31;
static_assert(divisor(false, kStart) == -kTables.shifted.value(std::size_t{3}));
static_assert(distance(0) == -divisor(false, kStart));

// Trials that a border has thresholds for.
constexpr int trials_of(int border) { return border == 1 || border == 2 ? kStart + 1 : kTrials; }
constexpr std::size_t kBins = 4 * kTrials + 2 * (kStart + 1) + 1;

// Sets of borders whose thresholds are apart: each magnitude is beyond all thresholds of a border, or before all, but
// for one of them.
struct Apart {
  int count, border[3];
};
constexpr Apart kApart[] = {{3, {kBorders + 1, 2, 0}}, {2, {1, kBorders}}, {1, {kBorders + 2}}};
constexpr bool are_apart(const Apart& set) {
  for (int i = 0; i + 1 < set.count; ++i) {
    const int a = set.border[i], b = set.border[i + 1];
    if (distance(a) / divisor(a >= kBorders, trials_of(a)) <= distance(b) / divisor(b >= kBorders, -1)) return false;
  }
  return true;
}
static_assert(are_apart(kApart[0]) && are_apart(kApart[1]));

constexpr std::size_t kOfBin = 2 * kLanes, kOfSide = kBins * kOfBin;  // numbers in the bins

// The number of the first bin beyond each threshold, times kOfBin. The order of equal thresholds does not matter.
struct Order {
  std::size_t first[2][kBorders][kStart + 1] = {};

  constexpr Order() {
    for (int border = 0; border < 2 * kBorders; ++border)
      for (int t = 0; t < trials_of(border); ++t)
        first[border / kBorders][border % kBorders][t] = (count_before(border, t) + 1) * kOfBin;
  }

 private:
  static constexpr double threshold(int border, int t) {
    return double{distance(border)} / -divisor(border >= kBorders, t);
  }
  static constexpr std::size_t count_before(int border, int t) {
    const double limit = threshold(border, t);
    std::size_t count = 0;
    for (int other = 0; other < 2 * kBorders; ++other)
      for (int n = 0; n < trials_of(other); ++n) {
        const double each = threshold(other, n);
        count += each < limit || (each == limit && (other < border || (other == border && n < t))) ? 1 : 0;
      }
    return count;
  }
};
constexpr Order kOrder;

class LevelSearch {
 public:
  FoundScales run(const float* x, const float* weights) {
    x_ = x;
    weights_ = weights;
    extreme_ = extreme_of_ends<kSub>([&](int i) { return value(i); }, 1e-14f, is_zero_);
    const Mask none = hn::MaskFromVec(floats(0)), every = hn::Not(none);
    const Floats start = extreme_ / floats(kTables.shifted.value(std::size_t{3}));
    best_ = {start, floats(0)};
    is_shifted_ = none;
    fill_bins();
    if (find_candidates()) {
      best_ = {start, floats(-1)};
      const Values plain(kTables.plain);
      take(plain, start, every, none, none, ~0u);
      take(plain, hn::Neg(start), every, every, none, ~0u);
      best_ = {choose(was_found_, tried_.scale, start), or_zero(was_found_, tried_.score)};
    }
    take_candidates();
    return {hn::IfThenZeroElse(is_zero_, best_.scale), hn::AndNot(is_zero_, is_shifted_)};
  }

 private:
  static constexpr float kSpare = 7e-5f;
  // Less than the ratio to the extreme value of all values that may be beyond border 0 in the start.
  static constexpr float kTop = 1 - 0x1p-21f;
  static constexpr unsigned kEvery = (1u << kLanes) - 1;
  // More than the distance from a threshold, in trials, at which the comparison of the plain loop depends on rounding,
  // for all borders. The greatest one is 2 D (25 u) / |b| = 1e-4 for the one at -1.
  static constexpr float kNear = 2.5e-4f;

  Floats value(int i) const { return hn::Load(kFloats, x_ + i * kStep); }
  Floats weight(int i) const { return hn::Load(kFloats, weights_ + i * kStep); }

  // Tries a scale where `counts`, as the plain loop does. Where `is_second`, it is the other sign of the one before.
  // `close` are the bits of values that may be so close to a border that rounding decides.
  void take(const Values& values, Floats d, Mask counts, Mask is_second, Mask is_shifted, unsigned close) {
    const Floats inverse = floats(1) / d;
    Floats products[4], borders[3];
    for (std::size_t i = 0; i < 4; ++i) products[i] = d * values.at[i];
    for (std::size_t i = 0; i < 3; ++i) borders[i] = floats(0.5f) * (values.at[i] + values.at[i + 1]);
    EightSums of_qx, of_q2;
    for (int i = 0; i < kSub; ++i, close >>= 1) {
      const Floats x = value(i), ratio = inverse * x;
      Floats level = values.at[0];
      GGUFMILL_UNROLL
      for (std::size_t k = 0; k < 3; ++k) level = choose(ratio < borders[k], level, values.at[k + 1]);
      if (HWY_UNLIKELY(close & 1)) level = nearest(values, products, x);
      const Floats weighted = weight(i) * level;
      of_qx.add(i, weighted, x);
      of_q2.add(i, weighted, level);
    }
    const Floats qx = of_qx.total(), q2 = of_q2.total(), scale = qx / q2;
    const Mask is_positive = q2 > floats(0), other = hn::And(is_second, was_found_);
    const Mask takes = hn::And(is_positive, hn::Or(hn::Not(other), qx * qx > tried_.score * q2));
    before_ = {choose(is_second, before_.scale, best_.scale), choose(is_second, before_.score, best_.score)};
    was_shifted_ = hn::Or(hn::And(is_second, was_shifted_), hn::AndNot(is_second, is_shifted_));
    was_found_ = hn::Or(is_positive, other);
    tried_ = {choose(takes, scale, tried_.scale), choose(takes, scale * qx, tried_.score)};
    const Mask better = hn::And(was_found_, tried_.score > before_.score);
    best_ = {choose(counts, choose(better, tried_.scale, before_.scale), best_.scale),
             choose(counts, choose(better, tried_.score, before_.score), best_.score)};
    const Mask chosen = hn::Or(hn::And(better, is_shifted), hn::AndNot(better, was_shifted_));
    is_shifted_ = hn::Or(hn::And(counts, chosen), hn::AndNot(counts, is_shifted_));
  }

  // Returns the number of trials in which magnitudes are beyond a border, plus a half, from 0 to the number of all.
  static HWY_INLINE Floats passed(int border, Floats inverse) {
    const Floats most = floats(0.5f - 2 * divisor(border >= kBorders, 0));
    const Floats at = hn::NegMulAdd(floats(2 * distance(border)), inverse, most);
    return lesser(greater(at, floats(0)), floats(static_cast<float>(trials_of(border))));
  }

  // Returns the bins of values from the inverse of their magnitudes.
  HWY_INLINE Floats bins(int i, Floats x, Floats inverse) {
    Floats bin = floats(0), off = floats(0);
    GGUFMILL_UNROLL
    for (const Apart& set : kApart) {
      // All but one are integral, so that they can be rounded together.
      Floats at = passed(set.border[0], inverse);
      GGUFMILL_UNROLL
      for (int n = 1; n < set.count; ++n) at = at + passed(set.border[n], inverse);
      const Floats count = hn::Round(at);
      bin = bin + count;
      off = hn::Max(off, hn::Abs(at - count));
    }
    return HWY_UNLIKELY(any(off > floats(0.5f - kNear))) ? exact_bins(i, x, inverse) : bin;
  }

  HWY_NOINLINE Floats exact_bins(int i, Floats x, Floats inverse) {
    close_ |= 1u << i;
    const Mask is_positive = x * extreme_ > floats(0);
    Floats bin = floats(0), close = floats(0), beyond = floats(0);  // numbers of thresholds that are close
    Floats at[2 * kBorders];
    for (int g = 0; g < 2 * kBorders; ++g) {
      const bool is_shifted = g >= kBorders;
      const int k = g % kBorders;
      at[g] = passed(g, inverse);
      const Floats count = hn::Round(at[g]);
      const Mask is_close = hn::Abs(at[g] - count) > floats(0.5f - kNear);
      if (!any(is_close)) {
        bin = bin + count;
        continue;
      }
      // The comparison of the plain loop, with the sign that has the border on the side of the value.
      const Floats trial = hn::Floor(at[g]);
      const Floats front = floats(kTables[is_shifted].value(std::size_t{0}));
      const Floats d = extreme_ / (front + floats(0.5f) * (trial - floats(kTries)));
      const Mask is_negated = k == kUp ? is_positive : hn::Not(is_positive);
      const Floats signed_d = choose(is_negated, hn::Neg(d), d);
      const Floats below = x - signed_d * floats(kTables[is_shifted].value(static_cast<std::size_t>(k)));
      const Floats above = x - signed_d * floats(kTables[is_shifted].value(static_cast<std::size_t>(k + 1)));
      const Mask is_above = above * above < below * below;
      const Mask passes = k == kUp ? is_above : hn::Not(is_above);
      const Floats is_beyond = or_zero(hn::And(is_close, passes), floats(1));
      bin = bin + choose(is_close, trial + is_beyond, count);
      close = close + or_zero(is_close, floats(1));
      beyond = beyond + is_beyond;
    }
    // Rounding may reverse the order of two thresholds that are equal. These trials become candidates, unless the value
    // is beyond all or none of them.
    const Mask is_between = hn::And(beyond > floats(0), beyond < close);
    const unsigned positive = mask_bits(is_positive);
    if (any(is_between))
      for (int g = 0; g < 2 * kBorders; ++g) {
        alignas(64) float trials[kLanes];
        hn::Store(hn::Floor(at[g]), kFloats, trials);
        const Mask is_close = hn::Abs(at[g] - hn::Round(at[g])) > floats(0.5f - kNear);
        for (unsigned bits = mask_bits(hn::And(is_between, is_close)); bits != 0; bits &= bits - 1) {
          const int lane = std::countr_zero(bits);
          const bool is_negative = (positive >> lane & 1) == (g % kBorders == kUp ? 1u : 0u);
          is_forced_ = true;
          forced_[g >= kBorders][static_cast<int>(trials[lane])][is_negative] |= 1u << lane;
        }
      }
    return bin;
  }

  // A pair of numbers for each lane, the first one of weights and the second one of values, as they are in memory.
  struct Pairs {
    Floats low, high;

    static Pairs of(Floats weights, Floats values) {
      return {hn::InterleaveLower(kFloats, weights, values), hn::InterleaveUpper(kFloats, weights, values)};
    }
    Floats weights() const { return hn::InterleaveLower(kFloats, even(), odd()); }
    Floats values() const { return hn::InterleaveUpper(kFloats, even(), odd()); }
    Pairs operator+(const Pairs& other) const { return {low + other.low, high + other.high}; }
    // Adds products of weights with one factor, and of values with another one.
    HWY_INLINE void add(const Pairs& pairs, Floats factors) {
      low = hn::MulAdd(pairs.low, factors, low);
      high = hn::MulAdd(pairs.high, factors, high);
    }

    // The number of the pair of a lane.
    static constexpr int number_of(int lane) { return lane / 4 * 2 + lane % 2 + lane / 2 % 2 * (kStep / 2); }

   private:
    Floats even() const { return hn::InterleaveLower(kFloats, low, high); }
    Floats odd() const { return hn::InterleaveUpper(kFloats, low, high); }
  };
  static Pairs load(const float* pairs) { return {hn::Load(kFloats, pairs), hn::Load(kFloats, pairs + kLanes)}; }
  static void store(const Pairs& from, float* pairs) {
    hn::Store(from.low, kFloats, pairs);
    hn::Store(from.high, kFloats, pairs + kLanes);
  }
  // Returns the sums of a bin, and clears it.
  static HWY_INLINE Pairs take_out(float* bin) {
    const Pairs pairs = load(bin);
    store({floats(0), floats(0)}, bin);
    return pairs;
  }

  // Fills the bins of positive and negative ratios to the greatest value.
  void fill_bins() {
    alignas(64) std::int32_t places[kSub * kLanes];
    alignas(64) float added[kSub][kOfBin];
    least_weight_ = floats(std::numeric_limits<float>::max());
    close_ = 0;
    if (is_forced_) std::memset(forced_, 0, sizeof forced_);
    is_forced_ = false;
    for (Floats& top : tops_) top = floats(0);
    const Floats inverse = floats(1) / extreme_;
    for (int i = 0; i < kSub; ++i) {
      const Floats x = value(i), ratio = x * inverse, weight = this->weight(i);
      least_weight_ = choose(weight > floats(0), hn::Min(least_weight_, weight), least_weight_);
      const Floats side = or_zero(ratio < floats(0), floats(kOfSide));
      const Floats bin = bins(i, x, floats(1) / hn::Abs(ratio));
      tops_[0] = tops_[0] + or_zero(ratio > floats(kTop), weight);
      tops_[1] = tops_[1] + or_zero(ratio < floats(-kTop), weight);
      store(Pairs::of(weight, weight * hn::Abs(ratio)), added[i]);
      hn::Store(to_ints(bin * floats(float{kOfBin}) + side), kInts, places + i * kStep);
    }
    constexpr hn::FixedTag<float, 2> kPair{};
    for (int i = 0; i < kSub; ++i) {
      GGUFMILL_UNROLL16
      for (int lane = 0; lane < kStep; ++lane) {
        const int number = 2 * Pairs::number_of(lane);
        float* const sum = sides_ + places[i * kStep + lane] + number;
        hn::StoreU(hn::LoadU(kPair, sum) + hn::LoadU(kPair, added[i] + number), kPair, sum);
      }
    }
    Pairs totals[2] = {{floats(0), floats(0)}, {floats(0), floats(0)}};
    for (std::size_t bin = kOfSide - kOfBin; bin > 0; bin -= kOfBin)
      for (const int side : {0, 1}) {
        float* const sums = sides_ + (side == 0 ? 0 : kOfSide) + bin;
        totals[side] = totals[side] + load(sums);
        store(totals[side], sums);
      }
    for (const int side : {0, 1}) totals[side] = totals[side] + take_out(sides_ + (side == 0 ? 0 : kOfSide));
    weights_of_all_ = totals[0].weights() + totals[1].weights();
    for (const int side : {0, 1}) products_of_all_[side] = totals[side].values();
  }

  // Returns the factors of weights in the change of q2, and of weighted magnitudes in that of qx, where values move
  // from one level next to a border to the other, away from zero.
  static HWY_INLINE Floats factors(bool is_shifted, int border) {
    const float from = kTables[is_shifted].value(static_cast<std::size_t>(border));
    const float to = kTables[is_shifted].value(static_cast<std::size_t>(border + 1));
    const float of_squares = border == kUp ? to * to - from * from : from * from - to * to;
    return hn::InterleaveLower(kFloats, floats(of_squares), floats(to - from));
  }
  static HWY_INLINE Floats score_of(Floats q2, Floats qx) { return qx * qx / q2; }

  // Returns q2 and qx if all values have the level that is next to zero.
  HWY_INLINE Pairs sums_of_centre(bool is_shifted, bool is_negative) const {
    const float q = kTables[is_shifted].value(std::size_t{kCentre});
    return Pairs::of(floats(q * q) * weights_of_all_,
                     floats(is_negative ? -q : q) * (products_of_all_[1] - products_of_all_[0]));
  }

  // Returns the sums of the values that are beyond a border in a trial.
  HWY_INLINE float* beyond(bool is_shifted, int border, bool is_negative, int t) {
    // The greatest value has the first level with the positive sign: positive ratios are below zero.
    return sides_ + (is_negative == (border != kUp) ? kOfSide : 0) + kOrder.first[is_shifted][border][t];
  }

  // Computes the scores of all trials with a table; negative where the levels are those of the trial before. Returns
  // the greater ones of them and `greatest`. Clears the bins for the next sub-block.
  Floats score(bool is_shifted, Floats greatest) {
    for (const bool is_negative : {false, true}) {
      const Pairs centre = sums_of_centre(is_shifted, is_negative);
      Floats before = floats(-1);
      for (int t = 0; t < kTrials; ++t) {
        Pairs sums = centre;
        GGUFMILL_UNROLL
        for (int border = 0; border < kBorders; ++border)
          sums.add(take_out(beyond(is_shifted, border, is_negative, t)), factors(is_shifted, border));
        const Floats q2 = sums.weights(), score = score_of(q2, sums.values());
        hn::Store(choose(q2 == before, hn::Neg(score), score), kFloats, scores_[is_shifted][is_negative][t]);
        greatest = hn::Max(greatest, score);
        before = q2;
      }
    }
    return greatest;
  }

  // Makes candidates of the trials whose scores may be wrong. Returns the greatest other score.
  Floats force() {
    Floats greatest = floats(0);
    for (const bool is_shifted : {false, true})
      for (const bool is_negative : {false, true}) {
        auto& scores = scores_[is_shifted][is_negative];
        for (int t = 0; t < kTrials; ++t) {
          unsigned lanes = forced_[is_shifted][t][is_negative];
          if (lanes == 0) greatest = hn::Max(greatest, hn::Abs(hn::Load(kFloats, scores[t])));
          for (; lanes != 0; lanes &= lanes - 1) {
            const int lane = std::countr_zero(lanes);
            scores[t][lane] = std::numeric_limits<float>::infinity();
            if (t + 1 < kTrials) scores[t + 1][lane] = std::fabs(scores[t + 1][lane]);
          }
        }
      }
    return greatest;
  }

  // Returns a score that those of the start, with both signs, do not exceed.
  Floats score_of_start() {
    Floats greatest = floats(0);
    for (const bool is_negative : {false, true}) {
      for (const int border : {1, kUp})
        for (int t = kTrials; t < kStart; ++t) take_out(beyond(false, border, is_negative, t));
      Pairs sums = sums_of_centre(false, is_negative);
      for (const int border : {1, kUp})
        sums.add(take_out(beyond(false, border, is_negative, kStart)), factors(false, border));
      greatest = hn::Max(greatest, score_of(sums.weights(), sums.values()));
      const Floats top = tops_[is_negative ? 1 : 0];
      sums.add(Pairs::of(top, top), factors(false, 0));
      greatest = hn::Max(greatest, score_of(sums.weights(), sums.values()));
    }
    return greatest;
  }

  // True if the proof holds for all lanes: no sum overflows or is so small that products are not exact to u.
  bool is_known(Floats greatest) const {
    const Floats weights = weights_of_all_, products = products_of_all_[0] + products_of_all_[1];
    const Floats least = floats(1e-30f), most = floats(1e17f), unit = hn::Abs(extreme_);
    const Floats score = greatest * unit * unit;
    const auto in_range = [&](Floats sum) { return hn::And(sum > least, sum < most); };
    Mask known = hn::And(hn::And(in_range(weights), in_range(score)), in_range(weights * score));
    known = hn::And(known, weights * unit * unit < most);
    known = hn::And(known, products * products <= floats(4) * greatest * weights);
    return all(hn::Or(known, is_zero_));
  }

  // Returns true if the start is one, too.
  bool find_candidates() {
    std::fill_n(counts_, kLanes, 0);
    const Floats of_start = score_of_start();
    Floats greatest = score(true, score(false, floats(0)));
    if (HWY_UNLIKELY(is_forced_)) greatest = force();
    is_known_ = is_known(greatest);
    const Floats least = greatest * floats(1 - kSpare);
    const Mask hides = least_weight_ < floats(400 * 0x1p-24f) * weights_of_all_, none = hn::MaskFromVec(floats(0));
    for (const bool is_shifted : {false, true}) {
      Mask was_near[2] = {none, none};
      for (int t = 0; t < kTrials; ++t) {
        Mask near[2], is_new = none;  // a sign changes that is near now or was near before
        GGUFMILL_UNROLL
        for (int sign = 0; sign < 2; ++sign) {
          const Floats score = hn::Load(kFloats, scores_[is_shifted][sign][t]);
          near[sign] = hn::Abs(score) >= least;
          const Mask changes = hn::Or(hides, score > floats(0));
          is_new = hn::Or(is_new, hn::And(hn::Or(near[sign], was_near[sign]), changes));
          was_near[sign] = near[sign];
        }
        const unsigned positive = mask_bits(hn::And(near[0], is_new)), negative = mask_bits(hn::And(near[1], is_new));
        if (HWY_LIKELY(is_known_))
          add_candidates(is_shifted, t, positive, negative);
        else
          add_candidates(is_shifted, t, kEvery, kEvery);
      }
    }
    const unsigned forced = forced_[false][kStart][false] | forced_[false][kStart][true];
    return !is_known_ || forced != 0 || any(of_start >= least);
  }

  void add_candidates(bool is_shifted, int t, unsigned positive, unsigned negative) {
    for (unsigned bits = positive | negative << kLanes; bits != 0; bits &= bits - 1) {
      const int bit = std::countr_zero(bits), lane = bit % kStep;
      Candidates& candidates = candidates_[counts_[lane]++];
      candidates.trial[lane] = is_shifted * kTrials + t;
      candidates.divisor[lane] = bit >= kStep ? -divisor(is_shifted, t) : divisor(is_shifted, t);
    }
  }

  void take_candidates() {
    const Ints counts = hn::Load(kInts, counts_);
    const int rounds = *std::max_element(counts_, counts_ + kLanes);
    Ints before = ints(-1);
    for (int n = 0; n < rounds; ++n) {
      const Ints trial = hn::Load(kInts, candidates_[n].trial);
      const Mask is_shifted = mask_of(trial > ints(kTrials - 1));
      take(Values(is_shifted), extreme_ / hn::Load(kFloats, candidates_[n].divisor), mask_of(counts > ints(n)),
           mask_of(trial == before), is_shifted, is_known_ ? close_ : ~0u);
      before = trial;
    }
  }

  // Candidate n of each lane, in the order in which they are tried. Both signs of a trial have its number.
  struct Candidates {
    float divisor[kLanes];
    std::int32_t trial[kLanes];
  };

  const float *x_, *weights_;
  Floats extreme_, least_weight_;               // the least one above 0
  Floats weights_of_all_, products_of_all_[2];  // the latter by sign
  Floats tops_[2];                              // the weights of values as great as the extreme one, by sign
  Mask is_zero_;
  LaneBest best_, before_, tried_;  // before the last trial; the better one of its signs
  Mask is_shifted_, was_shifted_, was_found_;
  bool is_known_, is_forced_ = false;
  unsigned close_;                           // bits: values that exact_bins() was called for
  unsigned forced_[2][kStart + 1][2] = {};   // lanes in which the estimates of a trial may be wrong
  alignas(64) std::int32_t counts_[kLanes];  // of candidates
  alignas(64) Candidates candidates_[4 * kTrials];
  alignas(64) float scores_[2][2][kTrials][kLanes];  // by table, sign and trial
  // The bins of positive, then of negative ratios: the weights, and weighted magnitudes, of the values in a bin or in
  // all bins from it on.
  alignas(64) float sides_[2 * kOfSide] = {};
};

// The values of the levels of a sub-block for a scale, with their weighted error.
struct Chosen {
  Floats error;
  Floats values[kSub];

  Chosen(const Blocks& blocks, int b, const Values& values_of, Floats scale) {
    Floats products[4];
    for (std::size_t i = 0; i < 4; ++i) products[i] = scale * values_of.at[i];
    EightSums sum;
    for (int j = 0; j < kSub; ++j) {
      const Floats x = blocks.at(b * kSub + j);
      values[j] = nearest(values_of, products, x);
      const Floats off = fused(hn::Neg(scale), values[j], x);
      sum.add(j, blocks.weight(b * kSub + j) * off, off);
    }
    error = sum.total();
  }
};

// Levels are a sixteenth of the distance from the first value, rounded down.
constexpr bool are_sixteenths(const LevelTable<4>& table) {
  for (std::size_t i = 0; i < 4; ++i)
    if (static_cast<std::size_t>((table.value(i) - table.value(std::size_t{0})) / 16) != i) return false;
  return true;
}
static_assert(are_sixteenths(kTables.plain) && are_sixteenths(kTables.shifted));

}  // namespace

void IQ2_KS::search(const Batch<1>& batch, LaneScales& found) {
  const Blocks blocks(batch, kWeighting);
  LevelSearch search;
  found.shifted = words(0);
  for (int b = 0; b < kSubs; ++b) {
    const FoundScales scales = search.run(blocks.values(b), blocks.weights(b));
    found.scale[b] = scales.scale;
    found.shifted = found.shifted | choose(scales.is_shifted, words(1u << b), words(0));
    found.of_weights[b] = floats(0);
    for (int j = 0; j < kSub; ++j) found.of_weights[b] = found.of_weights[b] + blocks.weight(b * kSub + j);
  }
}

IQ2_KS::Rows::Rows(const RowScales& found)
    : fit_(found.size() * kSubs, [&](std::uint64_t at) { return found.scale_and_weight(at); }) {}

void IQ2_KS::Rows::encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block) {
  const Blocks blocks(batch, kWeighting);
  const Mask is_zero = fit_.d == floats(0);
  LaneLevels<kSuperBlock> levels;
  Words codes[kSubs], high = words(0);
  for (int b = 0; b < kSubs; ++b) {
    Ints code = fit_.code(found.scale[b]);
    const Values values(found.is_shifted(b));
    const Floats scale = fit_.d * to_floats(code);
    const Chosen chosen(blocks, b, values, scale);
    // One step towards the scale that was found.
    const Mask down = hn::And(mask_of(code > ints(-16)), scale > found.scale[b]);
    const Mask up = hn::AndNot(down, hn::And(mask_of(code < ints(-1)), scale < found.scale[b]));
    const Ints stepped = code + choose(down, ints(-1), choose(up, ints(1), ints(0)));
    const Chosen other(blocks, b, values, fit_.d * to_floats(stepped));
    const Mask takes = hn::And(hn::Or(down, up), other.error < chosen.error);
    code = choose(takes, stepped, code);
    for (int j = 0; j < kSub; ++j) {
      const Floats value = choose(takes, other.values[j], chosen.values[j]), q = to_floats(code) * value;
      const Floats weighted = blocks.weight(b * kSub + j) * q;
      qx_.add(j, weighted, blocks.at(b * kSub + j));
      q2_.add(j, weighted, q);
      const Words level = as_words(to_ints((value - values.at[0]) * floats(0.0625f)));
      levels.set(b * kSub + j, choose(is_zero, words(0), level));
    }
    codes[b] = as_words(code + ints(16)) & words(15);
    high = high | choose(mask_of(code > ints(-1)), words(1u << b), words(0));
  }
  const Words extra = found.shifted | choose(is_zero, words(0), hn::ShiftLeft<8>(high));
  set_bytes(block, 0, LaneBlocks<Block>::kWords, [&](int i) {
    if (i < 2) return hn::ShiftRightSame(extra, 8 * i) & words(255);
    if (i < 6) return choose(is_zero, words(0), codes[2 * (i - 2)] | hn::ShiftLeft<4>(codes[2 * (i - 2) + 1]));
    return i < 70 ? crumbs<0>(levels, i - 6) : words(0);
  });
}

Words IQ2_KS::Rows::header() const {
  const Floats sum = q2_.total();
  const Floats d = choose(sum > floats(0), qx_.total() / sum, fit_.d);
  return floats_to_half(choose(fit_.d == floats(0), floats(0), d));
}

}  // namespace ggufmill::simd
