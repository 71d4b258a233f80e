#pragma once
// The encoders of IQ4_NL and IQ4_XS for a search of the scale of a block, with one block per lane.
//
//   struct Search {
//     Floats run(const float* x, const float* weights);  // the scale of kSub values, whose weights are those of errors
//     static Words level(Floats scaled);                 // the level of a value that is divided by its scale
//   };

#include "plugins/simd/fit_symmetric.h"
#include "plugins/simd/iq4_types.h"
#include "plugins/simd/pack.h"

namespace ggufmill::simd::iq4 {

inline constexpr int kSub = 32;
inline constexpr int kStep = static_cast<int>(kLanes);

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

// The nibbles of kSub levels; a byte(i) functor for set_bytes.
template <class Search>
class Nibbles {
 public:
  Nibbles(const float* x, Floats inverse) {
    for (int i = 0; i < kSub; ++i) levels_.set(i, Search::level(inverse * hn::Load(kFloats, x + i * kStep)));
  }
  Words operator()(int i) const { return levels_[i] | hn::ShiftLeft<4>(levels_[i + 16]); }

 private:
  LaneLevels<kSub> levels_;
};

template <class Search>
void encode_nl(const Batch<1>& batch, LaneBlocks<Iq4Nl::Block>& blocks) {
  Search search;
  const Input<kSub> input(batch);
  alignas(64) float weights[kSub * kLanes];
  input.weigh(0, input.sum_of_squares() * floats(2.0f / kSub), weights);
  const Floats d = search.run(input.x(0), weights);
  const Nibbles<Search> nibbles(input.x(0), inverse_of(d));
  blocks.set(0, floats_to_half(d) | hn::ShiftLeft<16>(nibbles(0)) | hn::ShiftLeft<24>(nibbles(1)));
  set_bytes(blocks, 1, 4, [&](int i) { return i < 14 ? nibbles(i + 2) : words(0); });
}

template <class Search>
void encode_xs(const Batch<1>& batch, LaneBlocks<Iq4Xs::Block>& blocks) {
  Search search;
  const Input<256> input(batch);
  const Floats mean_square = input.sum_of_squares() * floats(2.0f / 256);
  Floats scales[8];
  for (int sub = 0; sub < 8; ++sub) {
    alignas(64) float weights[kSub * kLanes];
    input.weigh(kSub * sub, mean_square, weights);
    scales[sub] = search.run(input.x(kSub * sub), weights);
  }
  Floats magnitude;
  const Floats d = hn::Neg(extreme<8>([&](int sub) { return scales[sub]; }, magnitude)) / floats(32);
  const Floats inverse = inverse_of(d);
  Words high = words(0), low = words(0);
  for (int sub = 0; sub < 8; ++sub) {
    const Ints level = clamp(nearest_ints(inverse * scales[sub]), -32, 31);
    const Nibbles<Search> nibbles(input.x(kSub * sub), inverse_of(d * to_floats(level)));
    set_bytes(blocks, 2 + 4 * sub, 4, nibbles);
    const Words stored = as_words(level + ints(32));
    low = low | hn::ShiftLeftSame(stored & words(15), 4 * sub);
    high = high | hn::ShiftLeftSame(hn::ShiftRight<4>(stored), 16 + 2 * sub);
  }
  blocks.set(0, floats_to_half(d) | high);
  blocks.set(1, low);
}

}  // namespace ggufmill::simd::iq4
