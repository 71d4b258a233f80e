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
// exact: where a value is so close to a threshold that rounding decides, the comparison of the plain loop is made.
//
// A trial is left out if it has the levels of the one before. The plain loop compares the two signs of a trial with
// each other first, so it is left out only if both signs have these levels, or are not near the greatest score.

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

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
constexpr int kBorders = 3, kThresholds = 2 * kBorders * kTrials, kBins = kThresholds + 1;
constexpr int kUp = 2, kCentre = 2;  // the border above the level that is next to zero, and this level
static_assert(kTables.plain.border(1) < 0 && kTables.plain.border(kUp) > 0);
static_assert(kTables.shifted.border(1) < 0 && kTables.shifted.border(kUp) > 0);

// Border b of the plain table has number b, of the shifted one kBorders + b. Returns its distance from zero.
constexpr float distance(int border) {
  const float at = kTables[border >= kBorders].border(static_cast<std::size_t>(border % kBorders));
  return at < 0 ? -at : at;
}

// Sets of borders whose thresholds are apart: each magnitude is beyond all thresholds of a border, or before all, but
// for one of them.
struct Apart {
  int count, border[3];
};
constexpr Apart kApart[] = {{3, {kBorders + 1, 2, 0}}, {2, {1, kBorders}}, {1, {kBorders + 2}}};
constexpr bool are_apart(const Apart& set) {
  for (int i = 0; i + 1 < set.count; ++i) {
    const int a = set.border[i], b = set.border[i + 1];
    if (distance(a) / divisor(a >= kBorders, kTrials) <= distance(b) / divisor(b >= kBorders, -1)) return false;
  }
  return true;
}
static_assert(are_apart(kApart[0]) && are_apart(kApart[1]));

// The position of each threshold among all of them, in ascending order. The order of equal ones does not matter.
struct Order {
  int position[2][kBorders][kTrials] = {};

  constexpr Order() {
    for (const bool is_shifted : {false, true})
      for (int k = 0; k < kBorders; ++k)
        for (int t = 0; t < kTrials; ++t) position[is_shifted][k][t] = count_before(is_shifted, k, t);
  }

 private:
  static constexpr double threshold(bool is_shifted, int k, int t) {
    const double ratio = double{kTables[is_shifted].border(static_cast<std::size_t>(k))} / divisor(is_shifted, t);
    return ratio < 0 ? -ratio : ratio;
  }
  static constexpr int count_before(bool is_shifted, int k, int t) {
    const int number = (is_shifted * kBorders + k) * kTrials + t;
    const double limit = threshold(is_shifted, k, t);
    int count = 0;
    for (int other = 0; other < kThresholds; ++other) {
      const double each = threshold(other >= kThresholds / 2, other / kTrials % kBorders, other % kTrials);
      count += each < limit || (each == limit && other < number) ? 1 : 0;
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
    Floats magnitude;
    extreme_ = extreme<kSub>([&](int i) { return value(i); }, magnitude);
    is_zero_ = magnitude < floats(1e-14f);
    const Mask none = hn::MaskFromVec(floats(0)), every = hn::Not(none);
    const Floats start = extreme_ / floats(kTables.shifted.value(std::size_t{3}));
    best_ = {start, floats(-1)};
    is_shifted_ = none;
    const Values plain(kTables.plain);
    take(plain, start, every, none, none);
    take(plain, hn::Neg(start), every, every, none);
    best_ = {choose(was_found_, tried_.scale, start), or_zero(was_found_, tried_.score)};
    find_candidates();
    take_candidates();
    return {hn::IfThenZeroElse(is_zero_, best_.scale), hn::AndNot(is_zero_, is_shifted_)};
  }

 private:
  static constexpr float kSpare = 6e-5f;
  // More than the distance from a threshold, in trials, at which the comparison of the plain loop depends on rounding,
  // for all borders. The greatest one is 2 D (25 u) / |b| = 1e-4 for the one at -1.
  static constexpr float kNear = 2.5e-4f;

  Floats value(int i) const { return hn::Load(kFloats, x_ + i * kStep); }
  Floats weight(int i) const { return hn::Load(kFloats, weights_ + i * kStep); }

  // Tries a scale where `counts`, as the plain loop does. Where `is_second`, it is the other sign of the one before.
  void take(const Values& values, Floats d, Mask counts, Mask is_second, Mask is_shifted) {
    Floats products[4];
    for (std::size_t i = 0; i < 4; ++i) products[i] = d * values.at[i];
    EightSums of_qx, of_q2;
    for (int i = 0; i < kSub; ++i) {
      const Floats level = nearest(values, products, value(i)), weighted = weight(i) * level;
      of_qx.add(i, weighted, value(i));
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

  // Returns the number of trials in which magnitudes are beyond a border, plus a half, from 0 to kTrials.
  static HWY_INLINE Floats passed(int border, Floats inverse) {
    const Floats at = floats(0.5f - 2 * divisor(border >= kBorders, 0)) - floats(2 * distance(border)) * inverse;
    return lesser(greater(at, floats(0)), floats(kTrials));
  }

  // Returns the bins of values from the inverse of their magnitudes.
  HWY_INLINE Floats bins(Floats x, Floats inverse) {
    Floats bin = floats(0), off = floats(0);
    GGUFMILL_UNROLL
    for (const Apart& set : kApart) {
      // All but one are zero or kTrials, so that they can be rounded together.
      Floats at = passed(set.border[0], inverse);
      GGUFMILL_UNROLL
      for (int i = 1; i < set.count; ++i) at = at + passed(set.border[i], inverse);
      const Floats count = hn::Round(at);
      bin = bin + count;
      off = hn::Max(off, hn::Abs(at - count));
    }
    return HWY_UNLIKELY(any(off > floats(0.5f - kNear))) ? exact_bins(x, inverse) : bin;
  }

  HWY_NOINLINE Floats exact_bins(Floats x, Floats inverse) {
    const Mask is_positive = x * extreme_ > floats(0);
    Floats bin = floats(0), close = floats(0);  // number of thresholds that are close
    Floats at[2 * kBorders];
    for (int g = 0; g < 2 * kBorders; ++g) {
      const bool is_shifted = g >= kBorders;
      const int k = g % kBorders;
      at[g] = passed(g, inverse);
      const Mask is_close = hn::Abs(at[g] - hn::Round(at[g])) > floats(0.5f - kNear);
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
      bin = bin + choose(is_close, trial + or_zero(passes, floats(1)), hn::Round(at[g]));
      close = close + or_zero(is_close, floats(1));
    }
    // Rounding may reverse the order of two thresholds that are equal. These trials become candidates.
    const unsigned positive = mask_bits(is_positive);
    if (any(close > floats(1)))
      for (int g = 0; g < 2 * kBorders; ++g) {
        alignas(64) float trials[kLanes];
        hn::Store(hn::Floor(at[g]), kFloats, trials);
        const Mask is_close = hn::Abs(at[g] - hn::Round(at[g])) > floats(0.5f - kNear);
        for (unsigned bits = mask_bits(hn::And(close > floats(1), is_close)); bits != 0; bits &= bits - 1) {
          const int lane = std::countr_zero(bits);
          const bool is_negative = (positive >> lane & 1) == (g % kBorders == kUp ? 1u : 0u);
          forced_[g >= kBorders][static_cast<int>(trials[lane])][is_negative] |= 1u << lane;
        }
      }
    return bin;
  }

  // The weights, and weighted magnitudes, of the values in a bin or in all bins from it on.
  struct Bin {
    float weights[kLanes], products[kLanes];
  };
  using Side = Bin[kBins];

  // Fills the bins of positive and negative ratios to the greatest value.
  void fill_bins() {
    constexpr float kOfBin = sizeof(Bin) / sizeof(float), kOfSide = kOfBin * kBins;
    alignas(64) std::int32_t places[kSub * kLanes];
    alignas(64) float products[kSub * kLanes];
    least_weight_ = floats(std::numeric_limits<float>::max());
    const Floats inverse = floats(1) / extreme_, lane = hn::ConvertTo(kFloats, hn::Iota(kInts, 0));
    for (int i = 0; i < kSub; ++i) {
      const Floats x = value(i), ratio = x * inverse, weight = this->weight(i);
      least_weight_ = choose(weight > floats(0), hn::Min(least_weight_, weight), least_weight_);
      const Floats side = lane + or_zero(ratio < floats(0), floats(kOfSide));
      const Floats bin = bins(x, floats(1) / hn::Abs(ratio));
      hn::Store(weight * hn::Abs(ratio), kFloats, products + i * kStep);
      hn::Store(to_ints(bin * floats(kOfBin) + side), kInts, places + i * kStep);
    }
    std::memset(sides_, 0, sizeof sides_);
    auto* const sums = reinterpret_cast<float*>(sides_);
    for (std::size_t i = 0; i < kSub * kLanes; ++i) {
      float* const sum = sums + places[i];
      sum[0] += weights_[i];
      sum[kLanes] += products[i];
    }
    Floats of_weights[2] = {floats(0), floats(0)}, of_products[2] = {floats(0), floats(0)};
    for (int bin = kBins - 1; bin >= 0; --bin)
      for (const int side : {0, 1}) {
        Bin& at = sides_[side][bin];
        of_weights[side] = of_weights[side] + hn::Load(kFloats, at.weights);
        of_products[side] = of_products[side] + hn::Load(kFloats, at.products);
        hn::Store(of_weights[side], kFloats, at.weights);
        hn::Store(of_products[side], kFloats, at.products);
      }
  }

  struct Estimate {
    float score[kLanes], key[kLanes];  // equal keys come from equal levels
  };

  // Computes the scores of all trials with a table. Returns the greater ones of them and `greatest`.
  Floats score(bool is_shifted, Floats greatest) {
    const auto q = [&](int level) { return kTables[is_shifted].value(static_cast<std::size_t>(level)); };
    const auto difference = [&](int a, int b) { return floats(q(a) - q(b)); };
    const auto of_squares = [&](int a, int b) { return floats(q(a) * q(a) - q(b) * q(b)); };
    const auto product = [](const Bin& bin) { return hn::Load(kFloats, bin.products); };
    const auto weight = [](const Bin& bin) { return hn::Load(kFloats, bin.weights); };
    const Floats all = floats(q(kCentre) * q(kCentre)) * weights_of_all();
    const Floats centre = floats(q(kCentre)) * (product(sides_[1][0]) - product(sides_[0][0]));
    for (auto& estimates : estimates_[is_shifted]) hn::Store(floats(-1), kFloats, estimates[0].key);
    for (int t = 0; t < kTrials; ++t)
      for (const bool is_negative : {false, true}) {
        // The greatest value has the first level with the positive sign: positive ratios are below zero.
        const auto& position = kOrder.position[is_shifted];
        const Side &down = sides_[is_negative ? 1 : 0], &up = sides_[is_negative ? 0 : 1];
        const Bin &first = down[position[0][t] + 1], &second = down[position[1][t] + 1];
        const Bin& third = up[position[kUp][t] + 1];
        Floats qx = is_negative ? hn::Neg(centre) : centre;
        qx = hn::MulAdd(product(first), difference(1, 0), qx);
        qx = hn::MulAdd(product(second), difference(2, 1), qx);
        qx = hn::MulAdd(product(third), difference(3, 2), qx);
        Floats q2 = hn::MulAdd(weight(first), of_squares(0, 1), all);
        q2 = hn::MulAdd(weight(second), of_squares(1, 2), q2);
        q2 = hn::MulAdd(weight(third), of_squares(3, 2), q2);
        const Floats score = qx * qx / q2;
        greatest = hn::Max(greatest, HWY_LIKELY(forced_[is_shifted][t][is_negative] == 0) ? score : floats(0));
        Estimate& estimate = estimates_[is_shifted][is_negative][t + 1];
        hn::Store(score, kFloats, estimate.score);
        hn::Store(weight(first) + weight(second) + weight(third), kFloats, estimate.key);
      }
    return greatest;
  }

  Floats weights_of_all() const {
    return hn::Load(kFloats, sides_[0][0].weights) + hn::Load(kFloats, sides_[1][0].weights);
  }

  // True if the proof holds for all lanes: no sum overflows or is so small that products are not exact to u.
  bool is_known(Floats greatest) const {
    const Floats weights = weights_of_all();
    const Floats products = hn::Load(kFloats, sides_[0][0].products) + hn::Load(kFloats, sides_[1][0].products);
    const Floats least = floats(1e-30f), most = floats(1e17f), unit = hn::Abs(extreme_);
    const Floats score = greatest * unit * unit;
    const auto in_range = [&](Floats sum) { return hn::And(sum > least, sum < most); };
    Mask known = hn::And(hn::And(in_range(weights), in_range(score)), in_range(weights * score));
    known = hn::And(known, weights * unit * unit < most);
    known = hn::And(known, products * products <= floats(4) * greatest * weights);
    return all(hn::Or(known, is_zero_));
  }

  void find_candidates() {
    std::fill_n(counts_, kLanes, 0);
    std::memset(forced_, 0, sizeof forced_);
    fill_bins();
    const Floats greatest = score(true, score(false, floats(0)));
    const bool is_known = this->is_known(greatest);
    const Floats least = greatest * floats(1 - kSpare);
    // Sums of weights that do not change come from the same levels, unless they hide a change of the least weight.
    const Mask hides = least_weight_ < floats(1e-6f) * weights_of_all();
    for (const bool is_shifted : {false, true}) {
      unsigned near[2] = {0, 0};
      for (int t = 0; t < kTrials; ++t) {
        unsigned is_new = 0;  // lanes in which a sign changes that is near now or was near before
        for (const bool is_negative : {false, true}) {
          const Estimate* const estimate = estimates_[is_shifted][is_negative] + t + 1;
          const Floats key = hn::Load(kFloats, estimate->key), before = hn::Load(kFloats, estimate[-1].key);
          const unsigned forced = forced_[is_shifted][t][is_negative];
          unsigned changed = mask_bits(hn::Or(hides, differ(key, before))) | forced;
          if (t > 0) changed |= forced_[is_shifted][t - 1][is_negative];
          const unsigned was_near = near[is_negative];
          near[is_negative] = mask_bits(hn::Load(kFloats, estimate->score) >= least) | forced;
          is_new |= (near[is_negative] | was_near) & changed;
        }
        const unsigned every = (1u << kLanes) - 1, positive = is_known ? near[0] & is_new : every;
        const unsigned negative = is_known ? near[1] & is_new : every;
        for (unsigned bits = positive | negative << kLanes; bits != 0; bits &= bits - 1) {
          const int bit = std::countr_zero(bits), lane = bit % kStep;
          Candidates& candidates = candidates_[counts_[lane]++];
          candidates.trial[lane] = is_shifted * kTrials + t;
          candidates.divisor[lane] = bit >= kStep ? -divisor(is_shifted, t) : divisor(is_shifted, t);
        }
      }
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
           mask_of(trial == before), is_shifted);
      before = trial;
    }
  }

  // Candidate n of each lane, in the order in which they are tried. Both signs of a trial have its number.
  struct Candidates {
    float divisor[kLanes];
    std::int32_t trial[kLanes];
  };

  const float *x_, *weights_;
  Floats extreme_, least_weight_;  // the least one above 0
  Mask is_zero_;
  LaneBest best_, before_, tried_;  // before the last trial; the better one of its signs
  Mask is_shifted_, was_shifted_, was_found_;
  unsigned forced_[2][kTrials][2];           // lanes in which the estimates of a trial may be wrong
  alignas(64) std::int32_t counts_[kLanes];  // of candidates
  alignas(64) Candidates candidates_[4 * kTrials];
  alignas(64) Estimate estimates_[2][2][kTrials + 1];  // by table and sign; trial t has number t + 1
  alignas(64) Side sides_[2];
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
