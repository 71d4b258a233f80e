// IQ4_NL and IQ4_XS, with the same results as plugins/reference/iq4_types.cpp, and with one block per lane.

#include "plugins/reference/fit.h"
#include "plugins/simd/iq4_blocks.h"
#include "plugins/simd/iq4_values.h"

namespace ggufmill::simd {
namespace {

using iq4::kStep;
using iq4::kSub;

constexpr int kFirstTry = -7;  // the tries map the extreme value to the lowest value and to within 7 of it
constexpr int kTrials = 16;    // the first one differs: it maps the extreme value to the opposite sign
constexpr int kAtOnce = 4;     // trials in flight; hides the latency of additions

// Sums for the least-squares scales of kSub values whose levels are those at several inverse scales.
struct Trials {
  Floats xq[kAtOnce], qq[kAtOnce];

  Trials(const float* x, const float* weights, const Floats* inverses) {
    for (int t = 0; t < kAtOnce; ++t) xq[t] = qq[t] = floats(0);
    for (int i = 0; i < kSub; ++i) {
      const Floats value = hn::Load(kFloats, x + i * kStep);
      const Floats weight = hn::Load(kFloats, weights + i * kStep);
      for (int t = 0; t < kAtOnce; ++t) {
        const Floats q = Iq4Place(inverses[t] * value).value();
        const Floats wq = weight * q;
        xq[t] = xq[t] + wq * value;
        qq[t] = qq[t] + wq * q;
      }
    }
  }
};

struct Search {
  static Floats run(const float* x, const float* weights) {
    Floats magnitude;
    const Floats extreme = simd::extreme<kSub>([&](int i) { return hn::Load(kFloats, x + i * kStep); }, magnitude);
    Floats scale = floats(0), best = floats(0);
    for (int trial = 0; trial < kTrials; trial += kAtOnce) {
      Floats inverses[kAtOnce];
      for (int t = 0; t < kAtOnce; ++t)
        inverses[t] = floats(static_cast<float>(trial + t - 1 + kFirstTry + reference::kIq4Values[0])) / extreme;
      if (trial == 0) inverses[0] = floats(1) / (hn::Neg(extreme) / floats(reference::kIq4Values[0]));
      const Trials sums(x, weights, inverses);
      for (int t = 0; t < kAtOnce; ++t) {
        const bool first = trial + t == 0;
        const Floats xq = sums.xq[t], qq = sums.qq[t];
        const Mask better = first ? qq > floats(0) : hn::And(qq > floats(0), xq * xq > best * qq);
        scale = choose(better, xq / qq, scale);
        best = first ? scale * xq : choose(better, scale * xq, best);
      }
    }
    return hn::IfThenZeroElse(hn::Abs(extreme) < floats(reference::kZeroGroup), scale);
  }
  static Words level(Floats scaled) { return Iq4Place(scaled).level(); }
};

}  // namespace

void Iq4Nl::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) { iq4::encode_nl<Search>(batch, *blocks); }

void Iq4Xs::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) { iq4::encode_xs<Search>(batch, *blocks); }

}  // namespace ggufmill::simd
