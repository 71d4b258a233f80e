#pragma once
// ik::fit_unequal() in lanes: finds the scales of kLanes blocks whose levels are entries of a table, with the same sums
// in the same order.

#include <bit>
#include <limits>

#include "plugins/ik/simd/table_search.h"

namespace ggufmill::simd {

class UnequalSearch {
 public:
  // Value and weight i of a lane's block are at x[i * kLanes] and weights[i * kLanes].
  Floats run(const float* x, const float* weights) {
    trials_.read(x, weights);
    Mask is_zero;
    extreme_ = extreme_of_ends<kCount>([&](int i) { return trials_.value(i); }, reference::kZeroGroup, is_zero);
    try_scales();
    set_levels();
    Mask goes_on = hn::Not(is_zero);
    for (int i = 0; i < 32 * kCount && any(goes_on); ++i) goes_on = step(goes_on);
    return hn::IfThenZeroElse(is_zero, best_.scale);
  }
  static Words level(Floats scaled) { return kTable.level(scaled); }

 private:
  static constexpr int kCount = 32, kTries = 7, kSteps = 2 * kTries + 1, kTrials = kSteps + 1;
  static constexpr std::size_t kSize = 16;
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr const LevelTable<kSize>& kTable = kLevels<kSize>.plain;
  static constexpr float kFirst = kTable.value(std::size_t{0}), kLast = kTable.value(kSize - 1);

  // The tries map the extreme value to about the first level, or to about the last one; the start maps it to the
  // opposite of the first one.
  static constexpr int kBorders = std::max(borders_between(kTable, -kFirst - kTries, -kFirst + kTries),
                                           borders_between(kTable, kLast - kTries, -kFirst));
  using Trials = TableTrials<kSize, kCount, kBorders>;
  static_assert(kTrials % Trials::kAtOnce == 0);

  // The distances of an entry from the next and from the last one; infinite at the ends of the table.
  template <int kDirection>
  static constexpr LookupTable<kSize> kGaps = [] {
    LookupTable<kSize> gaps{};
    for (std::size_t i = 0; i < kSize; ++i) {
      const bool is_end = i == (kDirection > 0 ? kSize - 1 : 0);
      const float beside = kTable.value(kDirection > 0 ? i + 1 : i - 1), here = kTable.value(i);
      gaps.values[i] = is_end ? std::numeric_limits<float>::infinity() : beside > here ? beside - here : here - beside;
    }
    return gaps;
  }();

  // The sums of a family of trials, and their inverse scales. The last trial is the start.
  struct Family {
    alignas(64) float inverses[kTrials * kLanes], sums[2 * kTrials * kLanes];

    Floats inverse(int trial) const { return hn::Load(kFloats, inverses + trial * kStep); }
    LaneSums at(int trial) const {
      const float* const both = sums + 2 * trial * kStep;
      return {hn::Load(kFloats, both), hn::Load(kFloats, both + kStep)};
    }
  };
  // A level as an entry of the table, its value, and the distances to the entries beside it.
  struct Level {
    std::uint32_t entry[kLanes];
    float value[kLanes], up[kLanes], down[kLanes];
  };

  // Sums the tries that map the extreme value to about `target`, and the start after them.
  void sum_family(float target, Floats start, Family& family) {
    for (int t = 0; t < kSteps; ++t) {
      const Floats inverse = floats(static_cast<float>(t - kTries) + target) / extreme_;
      hn::Store(inverse, kFloats, family.inverses + t * kStep);
    }
    hn::Store(start, kFloats, family.inverses + kSteps * kStep);
    trials_.prepare(kTable, family.inverse(0), family.inverse(target < 0 ? kSteps - 1 : kSteps));
    for (int t = 0; t < kTrials; t += Trials::kAtOnce)
      trials_.sum(family.inverses + t * kStep, family.sums + 2 * t * kStep);
  }

  void try_scales() {
    const Floats start = floats(1) / (hn::Neg(extreme_) / floats(kFirst));
    Family first, last;
    sum_family(kFirst, floats(kFirst) / extreme_, first);  // its last sums are unused
    sum_family(kLast, start, last);
    inverse_ = start;
    sums_ = last.at(kSteps);
    best_.scale = sums_.qx / sums_.q2;
    best_.score = best_.scale * sums_.qx;
    for (int t = 0; t < kSteps; ++t) {
      take(first.at(t), first.inverse(t));
      take(last.at(t), last.inverse(t));
    }
  }
  void take(const LaneSums& sums, Floats inverse) {
    const Mask better = best_.take(sums.qx, sums.q2);
    sums_ = {choose(better, sums.qx, sums_.qx), choose(better, sums.q2, sums_.q2)};
    inverse_ = choose(better, inverse, inverse_);
  }

  void set_levels() {
    for (int i = 0; i < kCount; ++i) {
      const Words entry = kTable.level(inverse_ * trials_.value(i));
      Level& level = levels_[i];
      hn::Store(entry, kWords, level.entry);
      hn::Store(kTable.value(entry), kFloats, level.value);
      hn::Store(kGaps<1>[entry], kFloats, level.up);
      hn::Store(kGaps<-1>[entry], kFloats, level.down);
    }
  }

  HWY_INLINE Floats gradient(Floats weight, Floats x, Floats level) const {
    return best_.scale * weight * (x - best_.scale * level);
  }

  // Returns the number of the value for which the step to the next level along its gradient is the shortest; -1 where
  // none can be taken.
  HWY_INLINE Ints find_shortest() const {
    Floats shortest = floats(std::numeric_limits<float>::infinity());
    Ints found = ints(-1);
    for (int i = 0; i < kCount; ++i) {
      const Level& level = levels_[i];
      const Floats g = gradient(trials_.weight(i), trials_.value(i), hn::Load(kFloats, level.value));
      const Floats gap = choose(g > floats(0), hn::Load(kFloats, level.up), hn::Load(kFloats, level.down));
      const Floats length = gap / hn::Abs(g);  // infinite or not a number where the level cannot change
      const Mask takes = length < shortest;
      shortest = lesser(length, shortest);
      found = choose(takes, ints(i), found);
    }
    return found;
  }

  // Moves by one entry the level for which that takes the shortest step. Returns the lanes of `goes_on` in which that
  // helps.
  Mask step(Mask goes_on) {
    alignas(64) std::int32_t changed[kLanes];
    const Ints found = find_shortest();
    goes_on = hn::And(goes_on, mask_of(found > ints(-1)));
    hn::Store(hn::Max(found, ints(0)), kInts, changed);
    alignas(64) float weights[kLanes], values[kLanes], levels[kLanes], ups[kLanes], downs[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const Level& level = levels_[changed[lane]];
      weights[lane] = trials_.weights(changed[lane])[lane];
      values[lane] = trials_.values(changed[lane])[lane];
      levels[lane] = level.value[lane];
      ups[lane] = level.up[lane];
      downs[lane] = level.down[lane];
    }
    const Floats weight = hn::Load(kFloats, weights), x = hn::Load(kFloats, values), from = hn::Load(kFloats, levels);
    const Mask rises = gradient(weight, x, from) > floats(0);
    const Floats to = choose(rises, from + hn::Load(kFloats, ups), from - hn::Load(kFloats, downs));
    const LaneSums next{sums_.qx + weight * x * (to - from), sums_.q2 + weight * (to * to - from * from)};
    goes_on = hn::And(goes_on, best_.is_better(next.qx, next.q2));
    if (!any(goes_on)) return goes_on;
    best_.replace(goes_on, next.qx, next.q2);
    sums_ = {choose(goes_on, next.qx, sums_.qx), choose(goes_on, next.q2, sums_.q2)};
    const unsigned up = mask_bits(rises);
    for (unsigned lanes = mask_bits(goes_on); lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      Level& level = levels_[changed[lane]];
      const std::uint32_t entry = (up >> lane & 1) != 0 ? level.entry[lane] + 1 : level.entry[lane] - 1;
      level.entry[lane] = entry;
      level.value[lane] = kTable.value(entry);
      level.up[lane] = kGaps<1>.values[entry];
      level.down[lane] = kGaps<-1>.values[entry];
    }
    return goes_on;
  }

  Trials trials_;
  Floats extreme_, inverse_;
  LaneBest best_;
  LaneSums sums_;
  alignas(64) Level levels_[kCount];
};

}  // namespace ggufmill::simd
