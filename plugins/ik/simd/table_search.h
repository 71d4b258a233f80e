#pragma once
// ik::search_tables() in lanes: finds the scales of kLanes sub-blocks, with the same sums in the same order.
//
// Source of speed: all inverse scales that are tried with a table and a sign are within a few percent, so that a scaled
// value passes at most one or two of the borders between levels (kBorders; proven below from the tables). The levels on
// either side, and their terms of the sums, are looked up once; a trial is then a product, a comparison and a choice.

#include <utility>

#include "plugins/ik/simd/sub_blocks.h"

namespace ggufmill::simd {

// Returns the greatest number of borders that x * inverse can pass when the magnitude of the inverse varies between
// `least` and `most` per greatest value.
template <std::size_t kSize>
constexpr int borders_between(const LevelTable<kSize>& table, float least, float most) {
  least *= 0.9999f, most *= 1.0001f;
  int passed = 0;
  for (std::size_t first = 0; first + 1 < kSize; ++first)
    for (std::size_t last = first; last + 1 < kSize; ++last) {
      const float a = table.border(first), b = table.border(last);
      if ((a < 0) != (b < 0)) continue;  // the sign does not change
      const float near = a < 0 ? -b : a, far = a < 0 ? -a : b;
      // The product is below `near` for the least inverse and not below `far` for the greatest one.
      if (far <= most && far * least <= near * most) passed = std::max(passed, static_cast<int>(last - first) + 1);
    }
  return passed;
}
// The same for `tries` steps to either side of the first entry.
template <std::size_t kSize>
constexpr int borders_passed(const LevelTable<kSize>& table, int tries, float step) {
  const float front = -table.value(std::size_t{0}), reach = static_cast<float>(tries) * step;
  return borders_between(table, front - reach, front + reach);
}

// The sums of kCount values for inverse scales that pass kBorders borders at most.
template <std::size_t kSize, int kCount, int kBorders>
class TableTrials {
 public:
  static_assert(kBorders == 1 || kBorders == 2);
  // Trials in flight; the sums of all of them stay in registers.
  static constexpr int kAtOnce = kLanes == 16 ? 8 : 4;

  // Value and weight i of a lane's sub-block are at x[i * kLanes] and weights[i * kLanes].
  void read(const float* x, const float* weights) { x_ = x, weights_ = weights; }
  const float* values(int i) const { return x_ + i * kStep; }
  const float* weights(int i) const { return weights_ + i * kStep; }
  Floats value(int i) const { return hn::Load(kFloats, values(i)); }
  Floats weight(int i) const { return hn::Load(kFloats, weights(i)); }

  // Prepares the terms for inverse scales between two ones.
  HWY_INLINE void prepare(const LevelTable<kSize>& table, Floats one, Floats other) {
    for (int i = 0; i < kCount; ++i) {
      const Floats x = value(i), weight = this->weight(i);
      Words level = table.level(lesser(one * x, other * x));
      GGUFMILL_UNROLL
      for (int n = 0; n <= kBorders; ++n) {
        const Floats q = table.value(level), weighted = weight * q;
        hn::Store(weighted * x, kFloats, terms_[i].qx[n]);
        hn::Store(weighted * q, kFloats, terms_[i].q2[n]);
        if (n == kBorders) break;
        hn::Store(table.border(level), kFloats, terms_[i].border[n]);
        level = hn::Min(level + words(1), words(kSize - 1));
      }
    }
  }

  // Computes the sums of kAtOnce trials: those of qx and of q2 in turn.
  HWY_INLINE void sum(const float* inverses, float* sums) const {
    Floats qx[kAtOnce], q2[kAtOnce];
    GGUFMILL_UNROLL
    for (int t = 0; t < kAtOnce; ++t) qx[t] = q2[t] = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Terms& terms = terms_[i];
      const Floats x = value(i), border = hn::Load(kFloats, terms.border[0]);
      const Floats qx0 = hn::Load(kFloats, terms.qx[0]), qx1 = hn::Load(kFloats, terms.qx[1]);
      const Floats q20 = hn::Load(kFloats, terms.q2[0]), q21 = hn::Load(kFloats, terms.q2[1]);
      GGUFMILL_UNROLL
      for (int t = 0; t < kAtOnce; ++t) {
        const Floats scaled = hn::Load(kFloats, inverses + t * kStep) * x;
        const Mask is_next = scaled >= border;
        Floats of_qx = choose(is_next, qx1, qx0), of_q2 = choose(is_next, q21, q20);
        if constexpr (kBorders == 2) {
          const Mask is_last = scaled >= hn::Load(kFloats, terms.border[1]);
          of_qx = choose(is_last, hn::Load(kFloats, terms.qx[2]), of_qx);
          of_q2 = choose(is_last, hn::Load(kFloats, terms.q2[2]), of_q2);
        }
        qx[t] = qx[t] + of_qx;
        q2[t] = q2[t] + of_q2;
      }
    }
    GGUFMILL_UNROLL
    for (int t = 0; t < kAtOnce; ++t) {
      hn::Store(qx[t], kFloats, sums + 2 * t * kStep);
      hn::Store(q2[t], kFloats, sums + (2 * t + 1) * kStep);
    }
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  // The borders at which a scaled value changes from a level to the next, and its terms in the sums for each of the
  // levels.
  struct Terms {
    float border[kBorders][kLanes];
    float qx[kBorders + 1][kLanes], q2[kBorders + 1][kLanes];
  };

  const float *x_, *weights_;
  alignas(64) Terms terms_[kCount];
};

template <std::size_t kSize, int kCount, int kTries, int kStep, ik::Start kStart>
class TableSearch {
 public:
  // Value and weight i of a lane's sub-block are at x[i * kLanes] and weights[i * kLanes].
  FoundScales run(const float* x, const float* weights) {
    trials_.read(x, weights);
    Floats magnitude;
    extreme_ = extreme<kCount>([&](int i) { return trials_.value(i); }, magnitude);
    const Floats first = hn::Neg(extreme_) / floats(kTables.plain.value(std::size_t{0}));
    start_ = floats(1) / first;
    for (const bool is_shifted : {false, true}) {
      sum_family(is_shifted, false);
      sum_family(is_shifted, true);
    }
    choose_best(first);
    const Mask is_zero = magnitude < floats(ik::kZero);
    return {hn::IfThenZeroElse(is_zero, best_.scale), hn::AndNot(is_zero, is_shifted_)};
  }

 private:
  static constexpr const LevelTables<kSize>& kTables = kLevels<kSize>;
  static constexpr int kSteps = 2 * kTries + 1;
  static constexpr int kLanesInt = static_cast<int>(kLanes);
  static constexpr int kBorders =
      std::max(borders_passed(kTables.plain, kTries, kStep), borders_passed(kTables.shifted, kTries, kStep));
  using Trials = TableTrials<kSize, kCount, kBorders>;
  static constexpr int kAtOnce = Trials::kAtOnce;

  // Sums all trials with a table and a sign. The start is one with the plain table and the other sign, last here.
  void sum_family(bool is_shifted, bool is_negative) {
    alignas(64) float inverses[kPadded * kLanes];
    const LevelTable<kSize>& table = kTables[is_shifted];
    const auto put = [&](int trial, Floats inverse) { hn::Store(inverse, kFloats, inverses + trial * kLanesInt); };
    for (int t = 0; t < kPadded; ++t) {
      const float change = static_cast<float>(kStep) * static_cast<float>(std::min(t, kSteps - 1) - kTries);
      const Floats inverse = floats(change + table.value(std::size_t{0})) / extreme_;
      put(t, is_negative ? hn::Neg(inverse) : inverse);
    }
    if (!is_shifted) put(kSteps, is_negative ? start_ : hn::Neg(start_));
    trials_.prepare(table, hn::Load(kFloats, inverses), hn::Load(kFloats, inverses + (kSteps - 1) * kLanesInt));
    float* const sums = sums_[is_shifted][is_negative];
    for (int t = 0; t < kPadded; t += kAtOnce) trials_.sum(inverses + t * kLanesInt, sums + 2 * t * kLanesInt);
  }

  std::pair<Floats, Floats> sums(bool is_shifted, bool is_negative, int trial) const {
    const float* const at = sums_[is_shifted][is_negative] + 2 * trial * kLanesInt;
    return {hn::Load(kFloats, at), hn::Load(kFloats, at + kLanesInt)};
  }

  void take(bool is_shifted, bool is_negative, int trial) {
    const auto [qx, q2] = sums(is_shifted, is_negative, trial);
    if (!any(best_.is_better(qx, q2))) return;
    const Mask better = best_.take(qx, q2);
    is_shifted_ = is_shifted ? hn::Or(is_shifted_, better) : hn::AndNot(better, is_shifted_);
  }

  void choose_best(Floats first) {
    const auto [qx, q2] = sums(false, true, kSteps);
    best_.scale = qx / q2;
    best_.score = best_.scale * qx;
    is_shifted_ = hn::MaskFromVec(floats(0));
    if constexpr (kStart == ik::Start::kScale) {
      const Mask fits = q2 > floats(0);
      best_.scale = choose(fits, best_.scale, first);
      best_.score = or_zero(fits, best_.score);
    }
    take(false, false, kSteps);
    for (int t = 0; t < kSteps; ++t)
      for (const bool is_shifted : {false, true}) {
        take(is_shifted, false, t);
        take(is_shifted, true, t);
      }
  }

  static constexpr int kPadded = (kSteps + 1 + kAtOnce - 1) / kAtOnce * kAtOnce;  // trials, the start, and unused ones

  Trials trials_;
  Floats extreme_, start_;
  LaneBest best_;
  Mask is_shifted_;
  alignas(64) float sums_[2][2][2 * kPadded * kLanes];
};

}  // namespace ggufmill::simd
