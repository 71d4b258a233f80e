// The encoder of IQ2_KS.
//
// The search tries scales with a table and a sign that differ by half. Within this range, a value divided by the scale
// passes at most one border between levels, so each value has one trial from which on it has its second level. This
// trial is computed from the border; only the comparison that is next to it can be close enough to depend on rounding,
// and is made as the plain loop makes it. (static_asserts below.)

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

struct Nearest {
  Floats value;
  Words level;
};

// Returns the first level whose value, times d, is nearest to x. `products` are the values times d.
Nearest nearest(const Values& values, const Floats* products, Floats x) {
  Nearest best{values.at[0], words(0)};
  Floats off = x - products[0], least = off * off;
  for (std::size_t i = 1; i < 4; ++i) {
    off = x - products[i];
    const Floats square = off * off;
    const Mask is_less = square < least;
    least = choose(is_less, square, least);
    best = {choose(is_less, values.at[i], best.value),
            choose(is_less, words(static_cast<std::uint32_t>(i)), best.level)};
  }
  return best;
}

// The sums of a trial, with both signs.
struct TrialSums {
  Floats qx[2], q2[2];
};

// The better one of two signs; `is_found` where there is any.
struct Tried {
  LaneBest best;
  Mask is_found;

  explicit Tried(const TrialSums& sums) {
    const Mask first = sums.q2[0] > floats(0), second = hn::AndNot(first, sums.q2[1] > floats(0));
    best.scale = choose(first, sums.qx[0] / sums.q2[0], sums.qx[1] / sums.q2[1]);
    best.score = best.scale * choose(first, sums.qx[0], sums.qx[1]);
    is_found = hn::Or(first, second);
    LaneBest other = best;
    other.take(sums.qx[1], sums.q2[1]);
    best = {choose(first, other.scale, best.scale), choose(first, other.score, best.score)};
  }
};

// The divisor of the greatest value in trial t.
constexpr float divisor(bool is_shifted, int t) {
  return kTables[is_shifted].value(std::size_t{0}) + 0.5f * static_cast<float>(t - kTries);
}

// True if no value passes two borders, even if the range of trials were a little wider.
constexpr bool passes_one_border(bool is_shifted) {
  const float ratio = divisor(is_shifted, -1) / divisor(is_shifted, kTrials) * 1.01f;
  for (std::size_t i = 0; i < 2; ++i) {
    const float a = kTables[is_shifted].border(i), b = kTables[is_shifted].border(i + 1);
    if (a < 0 && b < 0 && a / b < ratio) return false;
    if (a > 0 && b > 0 && b / a < ratio) return false;
  }
  return true;
}
static_assert(passes_one_border(false) && passes_one_border(true));

class LevelSearch {
 public:
  FoundScales run(const float* x, const float* weights) {
    x_ = x;
    weights_ = weights;
    Floats magnitude;
    extreme_ = extreme<kSub>([&](int i) { return value(i); }, magnitude);
    const Floats start = extreme_ / floats(kTables.shifted.value(std::size_t{3}));
    const Tried first(exact_sums(kTables.plain, start));
    scale_ = choose(first.is_found, first.best.scale, start);
    score_ = or_zero(first.is_found, first.best.score);
    is_shifted_ = hn::MaskFromVec(floats(0));
    // Squares of greater values may overflow, and all of them are equal then.
    const bool is_exact = any(magnitude > floats(1e16f));
    for (const bool is_shifted : {false, true}) {
      if (!is_exact) {
        sum_family(is_shifted, false);
        sum_family(is_shifted, true);
      }
      for (int t = 0; t < kTrials; ++t)
        take(is_shifted, is_exact ? exact_sums(kTables[is_shifted], d_of(is_shifted, t)) : sums(t));
    }
    const Mask is_zero = magnitude < floats(1e-14f);
    return {hn::IfThenZeroElse(is_zero, scale_), hn::AndNot(is_zero, is_shifted_)};
  }

 private:
  Floats value(int i) const { return hn::Load(kFloats, x_ + i * kStep); }
  Floats weight(int i) const { return hn::Load(kFloats, weights_ + i * kStep); }
  Floats d_of(bool is_shifted, int t) const { return extreme_ / floats(divisor(is_shifted, t)); }

  TrialSums exact_sums(const LevelTable<4>& table, Floats d) const {
    const Values values(table);
    Floats products[2][4];
    for (std::size_t i = 0; i < 4; ++i) {
      products[0][i] = d * values.at[i];
      products[1][i] = hn::Neg(d) * values.at[i];
    }
    EightSums qx[2], q2[2];
    for (int i = 0; i < kSub; ++i)
      for (const int sign : {0, 1}) {
        const Floats level = nearest(values, products[sign], value(i)).value, weighted = weight(i) * level;
        qx[sign].add(i, weighted, value(i));
        q2[sign].add(i, weighted, level);
      }
    return {{qx[0].total(), qx[1].total()}, {q2[0].total(), q2[1].total()}};
  }

  // The trial from which on a value has its second level, less kTries, and what it adds to the sums.
  struct Terms {
    float trial[kLanes];
    float first[kLanes], second[kLanes];                    // values of the levels
    float weighted_first[kLanes], weighted_second[kLanes];  // times the weight
  };

  // Prepares the terms of the trials with a table and a sign.
  HWY_INLINE void prepare(bool is_shifted, bool is_negative) {
    const LevelTable<4>& table = kTables[is_shifted];
    const Floats front = floats(table.value(std::size_t{0})), inverse = floats(1) / extreme_;
    for (int i = 0; i < kSub; ++i) {
      const Floats x = is_negative ? hn::Neg(value(i)) : value(i), ratio = x * inverse;
      // A little below the least multiple, so that the border above it is the one that may be passed.
      const Floats one = ratio * floats(divisor(is_shifted, 0)),
                   other = ratio * floats(divisor(is_shifted, kTrials - 1));
      const Words low = table.level(lesser(one, other) - floats(0.01f));
      const Words high = choose(x == floats(0), low, hn::Min(low + words(1), words(3)));
      const Floats a = table.value(low), b = table.value(high);
      const Mask rises = ratio > floats(0);  // with the trials
      const Floats passed = (table.border(low) / ratio - front) * floats(2);
      const Floats near = hn::Round(greater(lesser(passed, floats(kTries + 1)), floats(-kTries - 1)));
      // The comparison of the plain loop.
      const Floats d = extreme_ / (front + floats(0.5f) * near);
      const Floats off_a = x - d * a, off_b = x - d * b;
      const Mask is_above = off_b * off_b < off_a * off_a;
      const Mask has_second = hn::Xor(is_above, hn::Not(rises));
      hn::Store(choose(has_second, near, near + floats(1)), kFloats, terms_[i].trial);
      const Floats first = choose(rises, a, b), second = choose(rises, b, a);
      hn::Store(first, kFloats, terms_[i].first);
      hn::Store(second, kFloats, terms_[i].second);
      hn::Store(weight(i) * first, kFloats, terms_[i].weighted_first);
      hn::Store(weight(i) * second, kFloats, terms_[i].weighted_second);
    }
  }

  static constexpr int kAtOnce = kLanes == 16 ? 4 : 2;  // trials in flight
  static constexpr int kPadded = (kTrials + kAtOnce - 1) / kAtOnce * kAtOnce;

  // Computes the sums of values `lane`, lane + 8, lane + 16 and lane + 24 of kAtOnce trials.
  HWY_INLINE void sum_lane(int lane, int first, Floats* qx, Floats* q2) const {
    GGUFMILL_UNROLL
    for (int t = 0; t < kAtOnce; ++t) qx[t] = q2[t] = floats(0);
    for (int i = lane; i < kSub; i += 8) {
      const Floats trial = hn::Load(kFloats, terms_[i].trial), x = value(i);
      const Floats q_first = hn::Load(kFloats, terms_[i].first), q_second = hn::Load(kFloats, terms_[i].second);
      const Floats w_first = hn::Load(kFloats, terms_[i].weighted_first);
      const Floats w_second = hn::Load(kFloats, terms_[i].weighted_second);
      GGUFMILL_UNROLL
      for (int t = 0; t < kAtOnce; ++t) {
        const Mask is_first = floats(static_cast<float>(first + t - kTries)) < trial;
        const Floats weighted = choose(is_first, w_first, w_second);
        qx[t] = fused(weighted, x, qx[t]);
        q2[t] = fused(weighted, choose(is_first, q_first, q_second), q2[t]);
      }
    }
  }

  // Sums all trials with a table and a sign.
  void sum_family(bool is_shifted, bool is_negative) {
    prepare(is_shifted, is_negative);
    for (int first = 0; first < kPadded; first += kAtOnce) {
      Floats qx[8][kAtOnce], q2[8][kAtOnce];
      GGUFMILL_UNROLL
      for (int lane = 0; lane < 8; ++lane) sum_lane(lane, first, qx[lane], q2[lane]);
      GGUFMILL_UNROLL
      for (int t = 0; t < kAtOnce; ++t) {
        const auto total = [&](const Floats(&of)[8][kAtOnce]) {
          const Floats sums[8] = {of[0][t], of[1][t], of[2][t], of[3][t], of[4][t], of[5][t], of[6][t], of[7][t]};
          return total_of(sums);
        };
        float* const sums = sums_[is_negative] + 2 * (first + t) * kStep;
        hn::Store(total(qx), kFloats, sums);
        hn::Store(total(q2), kFloats, sums + kStep);
      }
    }
  }

  TrialSums sums(int t) const {
    const float *const positive = sums_[0] + 2 * t * kStep, *const negative = sums_[1] + 2 * t * kStep;
    return {{hn::Load(kFloats, positive), hn::Load(kFloats, negative)},
            {hn::Load(kFloats, positive + kStep), hn::Load(kFloats, negative + kStep)}};
  }

  void take(bool is_shifted, const TrialSums& sums) {
    const Tried tried(sums);
    const Mask better = hn::And(tried.is_found, tried.best.score > score_);
    score_ = choose(better, tried.best.score, score_);
    scale_ = choose(better, tried.best.scale, scale_);
    is_shifted_ = is_shifted ? hn::Or(is_shifted_, better) : hn::AndNot(better, is_shifted_);
  }

  const float *x_, *weights_;
  Floats extreme_, scale_, score_;
  Mask is_shifted_;
  alignas(64) Terms terms_[kSub];
  alignas(64) float sums_[2][2 * kPadded * kLanes];
};

// The levels of a sub-block for a scale, with their weighted error.
struct Chosen {
  Floats error;
  Words levels[kSub];
  Floats values[kSub];

  Chosen(const Blocks& blocks, int b, const Values& values_of, Floats scale) {
    Floats products[4];
    for (std::size_t i = 0; i < 4; ++i) products[i] = scale * values_of.at[i];
    EightSums sum;
    for (int j = 0; j < kSub; ++j) {
      const Floats x = blocks.at(b * kSub + j);
      const Nearest found = nearest(values_of, products, x);
      levels[j] = found.level;
      values[j] = found.value;
      const Floats off = fused(hn::Neg(scale), found.value, x);
      sum.add(j, blocks.weight(b * kSub + j) * off, off);
    }
    error = sum.total();
  }
};

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
      const Floats q = to_floats(code) * choose(takes, other.values[j], chosen.values[j]);
      const Floats weighted = blocks.weight(b * kSub + j) * q;
      qx_.add(j, weighted, blocks.at(b * kSub + j));
      q2_.add(j, weighted, q);
      levels.set(b * kSub + j, choose(is_zero, words(0), choose(takes, other.levels[j], chosen.levels[j])));
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
