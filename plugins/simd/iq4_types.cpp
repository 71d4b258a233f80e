// IQ4_NL and IQ4_XS, with the same results as plugins/reference/iq4_types.cpp, and with one block per lane.

#include "plugins/simd/iq4_types.h"

#include "plugins/reference/fit.h"
#include "plugins/simd/iq4_values.h"
#include "plugins/simd/pack.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32;
constexpr int kFirstTry = -7;  // the tries map the extreme value to the lowest value and to within 7 of it
constexpr int kTrials = 16;    // the first one differs: it maps the extreme value to the opposite sign
constexpr int kAtOnce = 4;     // trials in flight; hides the latency of additions
constexpr int kStep = static_cast<int>(kLanes);

// kCount weights per lane, with their importance.
template <int kCount>
class Input {
 public:
  explicit Input(const Batch<1>& batch) : weighted_(batch.weighted) {
    rows_to_lanes(batch.x, kCount, x_);
    if (weighted_) rows_to_lanes(batch.importance, kCount, importance_);
  }

  const float* x(int first) const { return x_ + first * kStep; }
  Floats at(int i) const { return hn::Load(kFloats, x(i)); }

  Floats sum_of_squares() const {
    Floats sum = floats(0);
    for (int i = 0; i < kCount; ++i) sum = sum + at(i) * at(i);
    return sum;
  }

  // Computes the weights of kSub squared differences, starting at element `first`.
  void weigh(int first, Floats mean_square, float* weights) const {
    for (int i = 0; i < kSub; ++i) {
      const Floats square = at(first + i) * at(first + i);
      const Floats importance = hn::Load(kFloats, importance_ + (first + i) * kStep);
      hn::Store(weighted_ ? importance * hn::Sqrt(mean_square + square) : square, kFloats, weights + i * kStep);
    }
  }

 private:
  bool weighted_;
  alignas(64) float x_[kCount * kLanes];
  alignas(64) float importance_[kCount * kLanes] = {};
};

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

Floats value_of_largest_magnitude(const float* x) {
  Floats value = floats(0);
  for (int i = 0; i < kSub; ++i) {
    const Floats next = hn::Load(kFloats, x + i * kStep);
    value = choose(hn::Abs(next) > hn::Abs(value), next, value);
  }
  return value;
}

Floats find_scale(const float* x, const float* weights) {
  const Floats extreme = value_of_largest_magnitude(x);
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

Floats inverse_or_zero(Floats value) { return or_zero(differ(value, floats(0)), floats(1) / value); }

// The nibbles of kSub levels; a byte(i) functor for set_bytes.
class Nibbles {
 public:
  Nibbles(const float* x, Floats inverse) {
    for (int i = 0; i < kSub; ++i) levels_.set(i, Iq4Place(inverse * hn::Load(kFloats, x + i * kStep)).level());
  }
  Words operator()(int i) const { return levels_[i] | hn::ShiftLeft<4>(levels_[i + 16]); }

 private:
  LaneLevels<kSub> levels_;
};

}  // namespace

void Iq4Nl::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  const Input<kSub> input(batch);
  alignas(64) float weights[kSub * kLanes];
  input.weigh(0, input.sum_of_squares() * floats(2.0f / kSub), weights);
  const Floats d = find_scale(input.x(0), weights);
  const Nibbles nibbles(input.x(0), inverse_or_zero(d));
  blocks->set(0, floats_to_half(d) | hn::ShiftLeft<16>(nibbles(0)) | hn::ShiftLeft<24>(nibbles(1)));
  set_bytes(*blocks, 1, 4, [&](int i) { return i < 14 ? nibbles(i + 2) : words(0); });
}

void Iq4Xs::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  const Input<256> input(batch);
  const Floats mean_square = input.sum_of_squares() * floats(2.0f / 256);
  Floats scales[8];
  Floats most = floats(0);  // the scale of greatest magnitude, with its sign
  for (int sub = 0; sub < 8; ++sub) {
    alignas(64) float weights[kSub * kLanes];
    input.weigh(kSub * sub, mean_square, weights);
    scales[sub] = find_scale(input.x(kSub * sub), weights);
    most = choose(hn::Abs(scales[sub]) > hn::Abs(most), scales[sub], most);
  }
  const Floats d = hn::Neg(most) / floats(32);
  const Floats inverse = inverse_or_zero(d);
  Words high = words(0), low = words(0);
  for (int sub = 0; sub < 8; ++sub) {
    const Ints level = clamp(nearest_ints(inverse * scales[sub]), -32, 31);
    const Nibbles nibbles(input.x(kSub * sub), inverse_or_zero(d * to_floats(level)));
    set_bytes(*blocks, 2 + 4 * sub, 4, nibbles);
    const Words stored = as_words(level + ints(32));
    low = low | hn::ShiftLeftSame(stored & words(15), 4 * sub);
    high = high | hn::ShiftLeftSame(hn::ShiftRight<4>(stored), 16 + 2 * sub);
  }
  blocks->set(0, floats_to_half(d) | high);
  blocks->set(1, low);
}

}  // namespace ggufmill::simd
