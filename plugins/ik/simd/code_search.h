#pragma once
// Codes for values x ~ scale * code, with one block per lane: the search of ik::fit_symmetric() and that of Q6_0, with
// the same sums in the same order.

#include <bit>
#include <limits>

#include "plugins/ik/simd/sub_blocks.h"

namespace ggufmill::simd {

// Codes from -kLimit to kLimit - 1 for kCount values. kFinite means that the values are finite, so that all products
// with an inverse scale are within one step of the limits.
template <int kCount, int kLimit, bool kFinite = true>
class CodeSearch {
 public:
  // Returns the scale. Value and weight i of a lane's block are at x[i * kLanes] and weights[i * kLanes]; null weights
  // mean x * x.
  Floats run(const float* x, const float* weights) {
    for (int i = 0; i < kCount; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kStep);
      const Floats weight = weights ? hn::Load(kFloats, weights + i * kStep) : value * value;
      hn::Store(value, kFloats, values_[i].x);
      hn::Store(weight, kFloats, values_[i].w);
      hn::Store(weight * value, kFloats, values_[i].wx);
    }
    extreme_ = extreme_of_ends<kCount>([&](int i) { return hn::Load(kFloats, values_[i].x); }, reference::kZeroGroup,
                                       is_zero_);
    start();
    // The greatest magnitude is about limit + 0.1 i in the first try of a step and limit - 1 + 0.1 i in the second one;
    // each try omits the clamps that it cannot reach.
    for (int i = -9; i <= -6; i += 2) try_steps<2, kNone, kNone>(i);
    for (int i = -5; i <= 4; i += 2) try_steps<2, kHigh, kNone>(i);
    for (int i = 5; i <= 8; i += 2) try_steps<2, kBoth, kHigh>(i);
    try_steps<1, kBoth, kHigh>(9);
    set_codes();
    Mask goes_on = hn::Not(is_zero_);
    for (int i = 0; i < kCount * (2 * kLimit - 1) && any(goes_on); ++i) goes_on = step(goes_on);
    return hn::IfThenZeroElse(is_zero_, best_.scale);
  }

  // Returns code i plus kLimit; 0 in blocks that count as zero.
  Words level(int i) const {
    const Ints level = hn::ConvertTo(kInts, hn::Load(kFloats, values_[i].code)) + ints(kLimit);
    return as_words(choose(is_zero_, ints(0), level));
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr float kMax = std::numeric_limits<float>::infinity();
  enum Clamps { kNone, kHigh, kBoth };

  // A value with its weight, their product, its code, and the least and the greatest gradient that count: 0 where the
  // code cannot change.
  struct Value {
    float x[kLanes], w[kLanes], wx[kLanes], code[kLanes], least[kLanes], greatest[kLanes];
  };
  // Adds (weight * x) * code, not (weight * code) * x as LaneSums::add() does.
  static HWY_INLINE void add(const Value& value, Floats code, LaneSums& sums) {
    sums.qx = sums.qx + hn::Load(kFloats, value.wx) * code;
    sums.q2 = sums.q2 + hn::Load(kFloats, value.w) * code * code;
  }

  template <Clamps kClamps>
  static HWY_INLINE Floats code_of(Floats scaled) {
    if constexpr (!kFinite) return to_floats(clamp(nearest_ints(scaled), -kLimit, kLimit - 1));
    Floats code = hn::Round(scaled);
    if constexpr (kClamps == kBoth) code = hn::Max(code, floats(float{-kLimit}));
    if constexpr (kClamps != kNone) code = hn::Min(code, floats(float{kLimit - 1}));
    return code;
  }

  void start() {
    inverse_ = floats(float{-kLimit}) / extreme_;
    sums_ = {};
    for (const Value& value : values_) add(value, code_of<kHigh>(inverse_ * hn::Load(kFloats, value.x)), sums_);
    const Mask fits = differ(sums_.q2, floats(0));
    best_.scale = or_zero(fits, sums_.qx / sums_.q2);
    best_.score = or_zero(fits, best_.scale * sums_.qx);
  }

  // Makes the two tries of kSteps steps, from step `from` on.
  template <int kSteps, Clamps kFirst, Clamps kSecond>
  HWY_INLINE void try_steps(int from) {
    Floats inverses[2 * kSteps];
    LaneSums sums[2 * kSteps];
    GGUFMILL_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      const float change = 0.1f * static_cast<float>(from + s);
      inverses[2 * s] = floats(-(float{kLimit} + change)) / extreme_;
      inverses[2 * s + 1] = floats(float{kLimit - 1} + change) / extreme_;
    }
    for (const Value& value : values_) {
      const Floats x = hn::Load(kFloats, value.x);
      GGUFMILL_UNROLL
      for (int s = 0; s < kSteps; ++s) {
        add(value, code_of<kFirst>(inverses[2 * s] * x), sums[2 * s]);
        add(value, code_of<kSecond>(inverses[2 * s + 1] * x), sums[2 * s + 1]);
      }
    }
    GGUFMILL_UNROLL
    for (int t = 0; t < 2 * kSteps; ++t) {
      const Mask better = best_.take(sums[t].qx, sums[t].q2);
      sums_ = {choose(better, sums[t].qx, sums_.qx), choose(better, sums[t].q2, sums_.q2)};
      inverse_ = choose(better, inverses[t], inverse_);
    }
  }

  void set_codes() {
    for (Value& value : values_) {
      const Floats code = code_of<kBoth>(inverse_ * hn::Load(kFloats, value.x));
      hn::Store(code, kFloats, value.code);
      hn::Store(or_zero(code > floats(float{-kLimit}), floats(-kMax)), kFloats, value.least);
      hn::Store(or_zero(code < floats(float{kLimit - 1}), floats(kMax)), kFloats, value.greatest);
    }
  }

  HWY_INLINE Floats gradient(Floats weight, Floats x, Floats code) const {
    return best_.scale * weight * (x - best_.scale * code);
  }

  // Returns the number of the value with the steepest gradient along which its code can change; -1 where there is none.
  HWY_INLINE Ints find_steepest() const {
    Floats steepest = floats(0);
    Ints found = ints(-1);
    for (int i = 0; i < kCount; ++i) {
      const Value& value = values_[i];
      const Floats g = gradient(hn::Load(kFloats, value.w), hn::Load(kFloats, value.x), hn::Load(kFloats, value.code));
      // A NaN passes both bounds, and no comparison with it is true.
      const Floats size =
          hn::Abs(lesser(hn::Load(kFloats, value.greatest), greater(hn::Load(kFloats, value.least), g)));
      found = choose(size > steepest, ints(i), found);
      steepest = greater(size, steepest);
    }
    return found;
  }

  // Changes by one the code with the steepest gradient. Returns the lanes of `goes_on` in which that helps.
  Mask step(Mask goes_on) {
    alignas(64) std::int32_t changed[kLanes];
    const Ints found = find_steepest();
    goes_on = hn::And(goes_on, mask_of(found > ints(-1)));
    hn::Store(hn::Max(found, ints(0)), kInts, changed);
    alignas(64) float xs[kLanes], weights[kLanes], codes[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const Value& value = values_[changed[lane]];
      xs[lane] = value.x[lane];
      weights[lane] = value.w[lane];
      codes[lane] = value.code[lane];
    }
    const Floats x = hn::Load(kFloats, xs), weight = hn::Load(kFloats, weights), code = hn::Load(kFloats, codes);
    const Mask rises = gradient(weight, x, code) > floats(0);
    const Floats wx = weight * x, twice = code + code;
    const LaneSums next{
        choose(rises, sums_.qx + wx, sums_.qx - wx),
        choose(rises, sums_.q2 + weight * (twice + floats(1)), sums_.q2 - weight * (twice - floats(1)))};
    goes_on = hn::And(goes_on, best_.is_better(next.qx, next.q2));
    if (!any(goes_on)) return goes_on;
    best_.replace(goes_on, next.qx, next.q2);
    sums_ = {choose(goes_on, next.qx, sums_.qx), choose(goes_on, next.q2, sums_.q2)};
    hn::Store(code + choose(rises, floats(1), floats(-1)), kFloats, codes);
    for (unsigned lanes = mask_bits(goes_on); lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      Value& value = values_[changed[lane]];
      value.code[lane] = codes[lane];
      value.least[lane] = codes[lane] > float{-kLimit} ? -kMax : 0;
      value.greatest[lane] = codes[lane] < float{kLimit - 1} ? kMax : 0;
    }
    return goes_on;
  }

  LaneBest best_;
  Floats extreme_, inverse_;
  Mask is_zero_;
  LaneSums sums_;
  alignas(64) Value values_[kCount];
};

}  // namespace ggufmill::simd
