#pragma once
// Input of the encoders of the IQ2 and IQ3 types (reference::SubBlock), with one sub-block per lane and magnitudes
// separated from signs. Each value has a weight. Elements are stored in lanes, and also in rows for the neighbour
// search.

#include "plugins/reference/iq_format.h"
#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

template <class Format>
class LatticeInput {
 public:
  using Space = typename std::remove_cvref_t<decltype(Format::lattice())>::SpaceType;
  static constexpr int kCount = Format::kSubBlock;
  static constexpr int kSigns = kCount / 8;

  // Reads kCount values per lane, in lanes, and their importance or null. `mean_square` is that of the super-block.
  void prepare(const float* x, const float* importance, Floats mean_square);

  // With even signs, one magnitude of each eight can be negative.
  Floats x(int i) const { return hn::Load(kFloats, x_ + i * kStep); }
  Floats weight(int i) const { return hn::Load(kFloats, weight_ + i * kStep); }
  Floats root(int i) const { return hn::Load(kFloats, root_ + i * kStep); }
  Floats weighted_x(int i) const { return hn::Load(kFloats, weighted_x_ + i * kStep); }
  // Bit i is set if element i of the eight is negative.
  Words signs(int eight) const { return signs_[eight]; }
  void flip_signs(Mask lanes) {
    for (Words& signs : signs_) signs = choose(lanes, signs ^ words(Format::kEvenSigns ? 127 : 255), signs);
  }

  // The values of one group of one lane, followed by the square roots of their weights, which the neighbour search
  // uses. `at` is group * kLanes + lane. A full vector can be read from each part.
  const float* group_x(std::size_t at) const { return rows_ + at * 2 * Space::kDims; }
  const float* group_root(std::size_t at) const { return group_x(at) + Space::kDims; }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  void weigh(const float* x, const float* importance, Floats mean_square);
  void split_signs(const float* x, int eight);
  void flip_least(const float* x, int eight);
  void set_rows(const float* from, int part);

  Words signs_[kSigns];
  alignas(64) float x_[kCount * kLanes];
  alignas(64) float weight_[kCount * kLanes];
  alignas(64) float weighted_x_[kCount * kLanes];
  alignas(64) float root_[kCount * kLanes];
  alignas(64) float rows_[2 * kCount * kLanes + kLanes] = {};
};

template <class Format>
void LatticeInput<Format>::weigh(const float* x, const float* importance, Floats mean_square) {
  for (int i = 0; i < kCount; ++i) {
    const Floats value = hn::Load(kFloats, x + i * kStep);
    Floats weight = floats(0);
    if (importance)
      weight = hn::Load(kFloats, importance + i * kStep) * hn::Sqrt(mean_square + value * value);
    else if constexpr (Format::kFlags != GGUFMILL_NEEDS_IMPORTANCE)
      weight = Format::plain_weight(value, mean_square);
    hn::Store(weight, kFloats, weight_ + i * kStep);
    hn::Store(hn::Sqrt(weight), kFloats, root_ + i * kStep);
  }
}

template <class Format>
void LatticeInput<Format>::prepare(const float* x, const float* importance, Floats mean_square) {
  weigh(x, importance, mean_square);
  for (int eight = 0; eight < kSigns; ++eight) {
    split_signs(x + 8 * eight * kStep, eight);
    if (Format::kEvenSigns) flip_least(x + 8 * eight * kStep, eight);
  }
  for (int i = 0; i < kCount; ++i) hn::Store(weight(i) * this->x(i), kFloats, weighted_x_ + i * kStep);
  set_rows(x_, 0);
  set_rows(root_, 1);
}

template <class Format>
void LatticeInput<Format>::set_rows(const float* from, int part) {
  constexpr int kDims = Space::kDims;
  for (int group = 0; group < kCount / kDims; ++group) {
    std::uint8_t* rows[kLanes];
    for (int lane = 0; lane < kStep; ++lane)
      rows[lane] = reinterpret_cast<std::uint8_t*>(rows_ + (2 * (group * kStep + lane) + part) * kDims);
    lanes_to_rows(reinterpret_cast<const std::uint32_t*>(from + group * kDims * kStep), kDims, rows);
  }
}

// Splits eight values into magnitudes and sign bits.
template <class Format>
void LatticeInput<Format>::split_signs(const float* x, int eight) {
  Words signs = words(0);
  for (int i = 0; i < 8; ++i) {
    const Floats value = hn::Load(kFloats, x + i * kStep);
    const Mask negative = hn::Not(value >= floats(0));
    hn::Store(choose(negative, hn::Neg(value), value), kFloats, x_ + (8 * eight + i) * kStep);
    signs = signs | choose(negative, words(1u << i), words(0));
  }
  signs_[eight] = signs;
}

// Makes the number of negatives even, like reference::split_even_signs.
template <class Format>
void LatticeInput<Format>::flip_least(const float* x, int eight) {
  Words least = words(0);
  Floats least_cost = floats(0);
  for (int i = 0; i < 8; ++i) {
    const Floats value = hn::Load(kFloats, x + i * kStep);
    const Floats cost = weight(8 * eight + i) * value * value;
    const Mask less = cost < least_cost;
    least = i == 0 ? least : choose(less, words(static_cast<std::uint32_t>(i)), least);
    least_cost = i == 0 ? cost : choose(less, cost, least_cost);
  }
  Words parity = signs_[eight];
  parity = parity ^ hn::ShiftRight<4>(parity);
  parity = parity ^ hn::ShiftRight<2>(parity);
  parity = parity ^ hn::ShiftRight<1>(parity);
  const Mask odd = mask_of((parity & words(1)) == words(1));
  for (int i = 0; i < 8; ++i) {
    const Mask flip = hn::And(odd, mask_of(least == words(static_cast<std::uint32_t>(i))));
    const Floats value = this->x(8 * eight + i);
    hn::Store(choose(flip, hn::Neg(value), value), kFloats, x_ + (8 * eight + i) * kStep);
    signs_[eight] = signs_[eight] ^ choose(flip, words(1u << i), words(0));
  }
  signs_[eight] = signs_[eight] & words(127);
}

}  // namespace ggufmill::simd
