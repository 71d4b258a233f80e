// IQ4_NL and IQ4_XS, with the same results as plugins/reference/iq4_types.cpp, and with one block per lane.

#include "plugins/reference/fit.h"
#include "plugins/simd/iq4_blocks.h"
#include "plugins/simd/iq4_values.h"
#include "plugins/simd/table_trials.h"

namespace ggufmill::simd {
namespace {

using iq4::kStep;
using iq4::kSub;

// Finds the best of the scales that map the extreme value close to the lowest level, or to the opposite of it.
class Search {
 public:
  Floats run(const float* x, const float* weights) {
    trials_.read(x, weights);
    Floats magnitude;
    const Floats extreme = simd::extreme<kSub>([&](int i) { return trials_.value(i); }, magnitude);
    try_opposite(extreme);
    try_close(extreme);
    return hn::IfThenZeroElse(magnitude < floats(reference::kZeroGroup), scale_);
  }
  static Words level(Floats scaled) { return Iq4Place(scaled).level(); }

 private:
  static constexpr int kTries = 7, kSteps = 2 * kTries + 1;  // to either side of the lowest level
  static constexpr LevelTable<16> kTable{reference::kIq4Values};
  static_assert(kTable.guesses_well());
  static constexpr float kLowest = kTable.value(std::size_t{0});
  using Trials = TableTrials<16, kSub, borders_between(kTable, -kLowest - kTries, -kLowest + kTries)>;
  static constexpr int kTrials = (kSteps + Trials::kAtOnce - 1) / Trials::kAtOnce * Trials::kAtOnce;

  void try_opposite(Floats extreme) {
    const Floats inverse = floats(1) / (hn::Neg(extreme) / floats(kLowest));
    Floats xq = floats(0), qq = floats(0);
    for (int i = 0; i < kSub; ++i) {
      const Floats x = trials_.value(i), q = Iq4Place(inverse * x).value(), weighted = trials_.weight(i) * q;
      xq = xq + weighted * x;
      qq = qq + weighted * q;
    }
    scale_ = hn::IfThenElseZero(qq > floats(0), xq / qq);
    best_ = scale_ * xq;
  }

  void try_close(Floats extreme) {
    alignas(64) float inverses[kTrials * kLanes], sums[2 * kTrials * kLanes];
    for (int t = 0; t < kTrials; ++t) {  // the last ones only fill up
      const float mapped = static_cast<float>(std::min(t, kSteps - 1) - kTries) + kLowest;
      hn::Store(floats(mapped) / extreme, kFloats, inverses + t * kStep);
    }
    trials_.prepare(kTable, hn::Load(kFloats, inverses), hn::Load(kFloats, inverses + (kSteps - 1) * kStep));
    for (int t = 0; t < kTrials; t += Trials::kAtOnce) trials_.sum(inverses + t * kStep, sums + 2 * t * kStep);
    for (int t = 0; t < kSteps; ++t) {
      const Floats xq = hn::Load(kFloats, sums + 2 * t * kStep), qq = hn::Load(kFloats, sums + (2 * t + 1) * kStep);
      const Mask better = hn::And(qq > floats(0), xq * xq > best_ * qq);
      scale_ = choose(better, xq / qq, scale_);
      best_ = choose(better, scale_ * xq, best_);
    }
  }

  Trials trials_;
  Floats scale_, best_;
};

}  // namespace

void Iq4Nl::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) { iq4::encode_nl<Search>(batch, *blocks); }

void Iq4Xs::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) { iq4::encode_xs<Search>(batch, *blocks); }

}  // namespace ggufmill::simd
