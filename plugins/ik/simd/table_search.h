#pragma once
// ik::search_tables() in lanes: finds the scales of kLanes sub-blocks, with the same sums in the same order.
// The inverse scales that are tried with a table and a sign are close to each other, so TableTrials sums them.

#include <utility>

#include "plugins/ik/simd/sub_blocks.h"
#include "plugins/simd/table_trials.h"

namespace ggufmill::simd {

// Returns the greatest number of borders that x * inverse can pass within `tries` steps to either side of the inverse
// that maps the greatest value to the first entry.
template <std::size_t kSize>
constexpr int borders_passed(const LevelTable<kSize>& table, int tries, float step) {
  const float front = -table.value(std::size_t{0}), reach = static_cast<float>(tries) * step;
  return borders_between(table, front - reach, front + reach);
}

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
