#pragma once
// ik::fit_affine() with one group per lane. The product of a weight, a level and a value is exact as a double, so fused
// operations add it with the same result; the sums run in the order of the values.

#include <bit>

#include "plugins/ik/llama_fit.h"
#include "plugins/simd/fit_lines.h"
#include "plugins/simd/lane_doubles.h"

namespace ggufmill::simd {

// A group of kCount values in each lane, with levels from 0 to kLimit.
template <int kCount, int kLimit>
class LineWalk {
 public:
  static constexpr int kAttempts = reference::kWeightedSearch.last + 1;

  // Reads the groups, of which value i is at x[i * kLanes], and starts with the lines from the lowest to the highest
  // value. Both arrays must stay valid until walk() returns.
  void start(const float* x, const float* weights) {
    x_ = x;
    weights_ = weights;
    LaneDoubles sum_w = doubles(0), sum_x = sum_w, sum_x2 = sum_w;
    Floats low = value(0), high = low;
    for (int i = 0; i < kCount; ++i) {
      low = lesser(value(i), low);
      high = greater(value(i), high);
      const LaneDoubles w = load_doubles(weights + i * kStep), x_i = load_doubles(x + i * kStep);
      store(w, pairs_[i].w);
      store(x_i, pairs_[i].x);
      sum_w = sum_w + w;
      sum_x = add_exact(w, x_i, sum_x);
      sum_x2 = sum_x2 + w * x_i * x_i;
    }
    sum_w_ = sum_w, sum_x_ = sum_x, sum_x2_ = sum_x2;
    low_ = choose(low > floats(0), floats(0), low);
    flat_ = high - low_ < floats(ik::kMinRange);
    high_ = choose(flat_, floats(1), high);  // an arbitrary range, so that flat groups need no special case
    best_.inverse = floats(float{kLimit}) / (high_ - low_);
    best_.origin = best_.minimum = low_;
    best_.scale = floats(1) / best_.inverse;
    find_levels(best_);
    least_ = doubles(0);
    const LaneDoubles scale = doubles_of(best_.scale), minimum = doubles_of(best_.minimum);
    for (int i = 0; i < kCount; ++i) {
      const LaneDoubles off = add_exact(scale, load_doubles(levels_ + i * kStep), minimum) - load(pairs_[i].x);
      least_ = least_ + load(pairs_[i].w) * (off * off);
    }
  }

  // Tries the line for the levels of one more inverse scale. `number` counts from 0 to kAttempts - 1.
  void attempt(int number) {
    Line tried;
    constexpr reference::AffineSearch kSearch = reference::kWeightedSearch;
    const float reach = kSearch.first + kSearch.step * static_cast<float>(number) + float{kLimit};
    tried.inverse = floats(reach) / (high_ - best_.minimum);
    tried.origin = best_.minimum;
    find_levels(tried);
    const LevelSums sums = sums_of_levels();
    DoubleLine line;
    const Mask fits = line_of(sums, line);
    const auto [scale, minimum] = line;
    const LaneDoubles two = doubles(2);
    const LaneDoubles error = sum_x2_ - two * scale * sums.xl - two * minimum * sum_x_ +
                              two * scale * minimum * sums.l + scale * scale * sums.l2 + minimum * minimum * sum_w_;
    const Mask better = hn::And(fits, error < least_);
    least_ = choose(better, error, least_);
    best_.scale = choose(better, floats_of(scale), best_.scale);
    best_.minimum = choose(better, floats_of(minimum), best_.minimum);
    best_.inverse = choose(better, tried.inverse, best_.inverse);
    best_.origin = choose(better, tried.origin, best_.origin);
  }

  // Changes by one the level of the value that is farthest off, as long as that helps.
  void walk() {
    find_levels(best_);
    LevelSums sums = sums_of_levels();
    LaneDoubles best = score_of(sums, {doubles_of(best_.scale), doubles_of(best_.minimum)});
    Step last{floats(-1), floats(0), {}};
    Mask walks = hn::Not(flat_);
    for (int i = 0; i < kLimit * kCount; ++i) {
      const Step step = next_step(walks);
      const Mask returns = hn::And(step.at == last.at, step.direction == hn::Neg(last.direction));
      walks = hn::AndNot(returns, walks);
      const LaneDoubles w = doubles_of(step.value.w), direction = doubles_of(step.direction);
      const Floats square = floats(2) * step.value.level * step.direction + floats(1);  // the change of the square
      sums.l = add_exact(w, direction, sums.l);
      sums.l2 = add_exact(w, doubles_of(square), sums.l2);
      sums.xl = add_exact(w * doubles_of(step.value.x), direction, sums.xl);
      DoubleLine line;
      walks = hn::And(walks, line_of(sums, line));
      const LaneDoubles score = score_of(sums, line);
      walks = hn::AndNot(hn::Or(line.scale < doubles(0), score <= best), walks);
      if (!any(walks)) break;
      best = score;
      best_.scale = choose(walks, floats_of(line.scale), best_.scale);
      best_.minimum = choose(walks, floats_of(line.minimum), best_.minimum);
      set_levels(walks, step);
      last = step;
    }
    best_.scale = hn::IfThenZeroElse(flat_, best_.scale);
  }

  Floats scale() const { return best_.scale; }
  Floats minimum() const { return best_.minimum; }
  // Returns the levels after walk().
  Ints level(int i) const { return hn::ConvertTo(kInts, level_of(i)); }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  // Sums over the values with their levels.
  struct LevelSums {
    LaneDoubles l = doubles(0), l2 = doubles(0), xl = doubles(0);
  };
  struct DoubleLine {
    LaneDoubles scale, minimum;
  };
  // A weight and its value.
  struct Pair {
    double w[kLanes], x[kLanes];
  };
  // A change of the level of value `at` by `direction`.
  struct Step {
    struct Value {
      Floats w, x, level;
    };
    Floats at, direction;
    Value value;
  };

  Floats value(int i) const { return hn::Load(kFloats, x_ + i * kStep); }
  Floats level_of(int i) const { return hn::Load(kFloats, levels_ + i * kStep); }

  void find_levels(const Line& line) {
    RangeOfLevels<kLimit> range;
    range.add(line, low_, high_);
    with_level<kLimit>(range.rounding(), [&](const auto& level_at) {
      const Line local = line;
      const float* HWY_RESTRICT x = x_;
      float* HWY_RESTRICT levels = levels_;
      GGUFMILL_UNROLL4
      for (int i = 0; i < kCount * kStep; i += kStep)
        hn::Store(level_at(local, hn::Load(kFloats, x + i)), kFloats, levels + i);
    });
  }

  // Not inlined, so that the sums stay in registers.
  HWY_NOINLINE LevelSums sums_of_levels() const {
    const LaneDoubles zero = doubles(0);
    LaneDoubles l = zero, l2 = zero, xl = zero;
    const float* HWY_RESTRICT levels = levels_;
    const Pair* HWY_RESTRICT pairs = pairs_;
    GGUFMILL_UNROLL4
    for (int i = 0; i < kCount; ++i) {
      const LaneDoubles level = load_doubles(levels + i * kStep);
      const LaneDoubles weighted = load(pairs[i].w) * level;
      l = l + weighted;
      l2 = add_exact(weighted, level, l2);
      xl = add_exact(weighted, load(pairs[i].x), xl);
    }
    return {l, l2, xl};
  }

  // Computes the line of least squares. Returns the lanes where the levels determine one.
  Mask line_of(const LevelSums& sums, DoubleLine& line) const {
    const LaneDoubles determinant = sum_w_ * sums.l2 - sums.l * sums.l;
    line.scale = (sum_w_ * sums.xl - sum_x_ * sums.l) / determinant;
    line.minimum = (sums.l2 * sum_x_ - sums.l * sums.xl) / determinant;
    const Mask above = line.minimum > doubles(0);
    if (any(above)) {
      line.scale = choose(above, sums.xl / sums.l2, line.scale);
      line.minimum = choose(above, doubles(0), line.minimum);
    }
    return determinant > doubles(0);
  }

  // The share of the squares that is explained.
  LaneDoubles score_of(const LevelSums& sums, const DoubleLine& line) const {
    const auto [scale, minimum] = line;
    const LaneDoubles two = doubles(2);
    return two * scale * sums.xl + two * minimum * sum_x_ - two * scale * minimum * sums.l - scale * scale * sums.l2 -
           minimum * minimum * sum_w_;
  }

  // Finds the first of the values that are farthest off and whose level can change toward them. Removes the lanes that
  // have none from `walks`.
  Step next_step(Mask& walks) const {
    alignas(64) float offs[kCount * kLanes];
    Floats most = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats level = level_of(i), off = value(i) - best_.scale * level - best_.minimum;
      const Floats end = or_zero(off > floats(0), floats(float{kLimit}));
      const Floats allowed = hn::IfThenZeroElse(level == end, off);
      hn::Store(allowed, kFloats, offs + i * kStep);
      most = greater(hn::Abs(allowed), most);
    }
    Floats at = floats(0);
    for (int i = kCount - 1; i >= 0; --i)
      at = choose(hn::Abs(hn::Load(kFloats, offs + i * kStep)) == most, floats(static_cast<float>(i)), at);
    walks = and_greater(walks, most, floats(0));
    return read_step(walks, at, offs);
  }

  Step read_step(Mask walks, Floats at, const float* offs) const {
    alignas(64) std::int32_t places[kLanes];
    alignas(64) float w[kLanes] = {}, x[kLanes] = {}, level[kLanes] = {}, direction[kLanes] = {};
    hn::Store(places_of(at), kInts, places);
    for (unsigned lanes = mask_bits(walks); lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes), place = places[lane];
      w[lane] = weights_[place];
      x[lane] = x_[place];
      level[lane] = levels_[place];
      direction[lane] = offs[place] > 0 ? 1 : -1;
    }
    const auto load = [](const float* lanes) { return hn::Load(kFloats, lanes); };
    return {at, load(direction), {load(w), load(x), load(level)}};
  }

  void set_levels(Mask lanes_that_change, const Step& step) {
    alignas(64) std::int32_t places[kLanes];
    alignas(64) float levels[kLanes];
    hn::Store(places_of(step.at), kInts, places);
    hn::Store(step.value.level + step.direction, kFloats, levels);
    for (unsigned lanes = mask_bits(lanes_that_change); lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      levels_[places[lane]] = levels[lane];
    }
  }

  // Returns where value `at` of each lane is in arrays of all lanes.
  static Ints places_of(Floats at) { return hn::ConvertTo(kInts, at * floats(float{kStep})) + hn::Iota(kInts, 0); }

  const float *x_, *weights_;
  Floats low_, high_;
  Mask flat_;
  LaneDoubles sum_w_, sum_x_, sum_x2_;
  Line best_;
  LaneDoubles least_;  // its error
  alignas(64) Pair pairs_[kCount];
  alignas(64) float levels_[kCount * kLanes];
};

}  // namespace ggufmill::simd
