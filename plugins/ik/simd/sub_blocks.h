#pragma once
// ik::make_weights() in lanes, and the steps that follow the search for scales.

#include "plugins/ik/simd/level_tables.h"
#include "plugins/simd/fit_symmetric.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd {

// kLanes super-blocks with the weights of their squared errors, in sub-blocks of kSubBlock.
template <int kSubBlock>
class WeightedBlocks : public SuperBlocks {
 public:
  static constexpr int kSubBlocks = kSuperBlock / kSubBlock;

  WeightedBlocks(const Batch<1>& batch, const ik::Weighting& weighting) : SuperBlocks(batch) {
    const Floats added =
        floats(weighting.factor) * sum_of_squares(0, kSuperBlock) / floats(static_cast<float>(kSuperBlock));
    if (weighted())
      weigh_by_importance(added);
    else
      weigh_by_values(added, weighting.without);
  }

  // Pointers to the first value or weight of a sub-block, in lanes.
  const float* values(int b) const { return x(b * kSubBlock); }
  const float* weights(int b) const { return weights_ + b * kSubBlock * static_cast<int>(kLanes); }
  Floats weight(int i) const { return hn::Load(kFloats, weights_ + i * static_cast<int>(kLanes)); }

 private:
  void put(int i, Floats weight) { hn::Store(weight, kFloats, weights_ + i * static_cast<int>(kLanes)); }

  void weigh_by_values(Floats added, ik::Without without) {
    const Floats quarter = floats(0.25f) * added;
    for (int i = 0; i < kSuperBlock; ++i) {
      const Floats square = at(i) * at(i);
      put(i, without == ik::Without::kMagnitudes          ? hn::Abs(at(i))
             : without == ik::Without::kSquaresAndQuarter ? quarter + square
                                                          : square);
    }
  }

  void weigh_by_importance(Floats added) {
    constexpr float kMin = static_cast<float>(kSubBlock) * (1e-9f * 1e-9f);
    for (int begin = 0; begin < kSuperBlock; begin += kSubBlock) {
      Floats w2 = floats(0), x2 = floats(0), wx = floats(0);
      for (int i = begin; i < begin + kSubBlock; ++i) {
        const Floats x = at(i), w = importance(i);
        w2 = w2 + w * w;
        x2 = x2 + x * x;
        wx = wx + w * hn::Abs(x);
      }
      const Floats least = floats(kMin);
      const Mask counts = hn::And(hn::And(w2 > least, x2 > least), wx > least);
      for (int i = begin; i < begin + kSubBlock; ++i)
        put(i, choose(counts, importance(i), floats(1e-9f)) * hn::Sqrt(added + at(i) * at(i)));
    }
  }

  alignas(64) float weights_[kSuperBlock * kLanes];
};

// Sums for the least-squares scale, as ik::Sums.
struct LaneSums {
  Floats qx = floats(0), q2 = floats(0);

  void add(Floats weight, Floats level, Floats x) {
    const Floats weighted = weight * level;
    qx = qx + weighted * x;
    q2 = q2 + weighted * level;
  }
  // Returns the scale, or `otherwise` where there is none.
  Floats scale(Floats otherwise) const { return choose(q2 > floats(0), qx / q2, otherwise); }
};

// The scales of a sub-block in each lane.
struct FoundScales {
  Floats scale;
  Mask is_shifted;
};

// The best scale so far, as ik::Best.
struct LaneBest {
  Floats scale = floats(0), score = floats(0);

  Mask is_better(Floats qx, Floats q2) const { return hn::And(q2 > floats(0), qx * qx > score * q2); }
  // Takes the scales of the sums where they are better. Returns these lanes.
  Mask take(Floats qx, Floats q2) {
    const Mask better = is_better(qx, q2);
    replace(better, qx, q2);
    return better;
  }
  // Takes the scales of the sums in some lanes.
  void replace(Mask lanes, Floats qx, Floats q2) {
    const Floats next = qx / q2;
    scale = choose(lanes, next, scale);
    score = choose(lanes, next * qx, score);
  }
};

// Keeps the value of greatest magnitude, with its sign; the first of several.
struct Extreme {
  Floats magnitude = floats(0), value = floats(0);

  void add(Floats next) { keep_extreme(next, magnitude, value); }
};

// ik::refit() in lanes.
template <int kCount, std::size_t kSize>
Floats refit(const LevelTables<kSize>& tables, Mask is_shifted, const float* x, const float* weights, Floats scale) {
  const Floats inverse = inverse_of(scale);
  LaneSums sums;
  for (int i = 0; i < kCount; ++i) {
    const Floats value = hn::Load(kFloats, x + i * static_cast<int>(kLanes));
    const Words level = tables.level(is_shifted, inverse * value);
    sums.add(hn::Load(kFloats, weights + i * static_cast<int>(kLanes)), tables.value(is_shifted, level), value);
  }
  return sums.scale(scale);
}

// Chooses the levels of sub-block b, whose scale is `code` times d, where `counts`; elsewhere they are 0.
template <std::size_t kSize, int kSubBlock>
void choose_levels(const WeightedBlocks<kSubBlock>& blocks, int b, Mask is_shifted, Floats d, Floats code, Mask counts,
                   LaneLevels<kSuperBlock>& levels, LaneSums& sums) {
  const Floats inverse = inverse_of(d * code);
  for (int i = b * kSubBlock; i < (b + 1) * kSubBlock; ++i) {
    const Words level = kLevels<kSize>.level(is_shifted, inverse * blocks.at(i));
    LaneSums next = sums;
    next.add(blocks.weight(i), kLevels<kSize>.value(is_shifted, level) * code, blocks.at(i));
    sums = {choose(counts, next.qx, sums.qx), choose(counts, next.q2, sums.q2)};
    levels.set(i, choose(counts, level, words(0)));
  }
}

// Clears the blocks of some lanes: those whose scales are all zero.
template <class Block>
void clear(Mask lanes, LaneBlocks<Block>& block) {
  if (!any(lanes)) return;
  for (int word = 0; word < LaneBlocks<Block>::kWords; ++word)
    block.set(word, choose(lanes, words(0), block.get(word)));
}

}  // namespace ggufmill::simd
