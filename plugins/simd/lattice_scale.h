#pragma once
// Search for the scale of a sub-block of an IQ2 or IQ3 type (plugins/reference/iq_scale_search.h), with one sub-block
// per lane. Points that are not in the book are processed outside the lanes, by the neighbour search. Consecutive tries
// often round a group to the same point, whose neighbour stays the same over a range of scales (lattice_reach.h).

#include "plugins/simd/fit_positive.h"
#include "plugins/simd/lattice_input.h"
#include "plugins/simd/lattice_neighbours.h"

namespace ggufmill::simd {

template <class Format>
class LatticeScale {
 public:
  using Input = LatticeInput<Format>;
  using Space = typename Input::Space;
  using Book = Points<Space>;
  static constexpr int kGroups = Input::kCount / Space::kDims;

  explicit LatticeScale(const LatticeView<Space>& lattice) : lattice_(lattice) {}

  // Finds the scale and the points. Inverts the signs in lanes where the values whose sign was changed outweigh the
  // others. Returns false if a lane has no point in the book (reference::kNoBookPoint).
  bool find(Input& input);

  // Results: the scale, which is 0 for a sub-block of zeros; the lanes with such sub-blocks; and the index of each
  // group.
  Floats scale() const { return scale_; }
  Mask zeros() const { return zeros_; }
  Words index(int group) const {
    const Words entry = entry_of(points_[group]);
    const Mask in_book = mask_of((entry & words(LatticeEntry::kChunks)) == words(0));
    return choose(in_book, hn::ShiftRight<8>(entry), words(~0u));
  }

 private:
  static constexpr int kCount = Input::kCount;
  static constexpr std::uint32_t kAllGroups = (1u << kGroups) - 1;
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr std::size_t kSize = kGroups * kLanes;
  // Values within this distance of a tie are close to it. The difference between multiplying by an inverse scale and
  // comparing at the scale is much smaller.
  static constexpr float kTie = 0x1p-14f;

  struct Fit {
    Floats xq, qq;
  };

  Words entry_of(Words point) const;
  template <bool kQuick>
  Words rounded(int group, Floats inverse, Floats& farthest) const;
  template <bool kQuick>
  void round_groups(Floats inverse, Floats scale, Words which);
  bool place(Floats inverse, Floats scale, Words which);
  bool take_as_reference(std::size_t at, const float* scales);
  Words placed(int group) const { return hn::Load(kWords, placed_.words + group * kStep); }
  Fit fit(const Words* points) const;
  Floats guess();
  void forget();
  bool search(Floats top);
  bool revisit(Words groups);

  LatticeView<Space> lattice_;
  const Input* input_ = nullptr;
  Mask zeros_;
  Floats scale_;
  Floats most_, weight_;  // greatest magnitude; greatest sum of roots of weights of a group
  Words points_[kGroups];
  alignas(64) std::uint32_t codes_[kSize];  // of the last try
  GroupPoints<kSize> placed_;               // `until` is 0 for a point in the book
  ChangedGroups<Space, kSize> changed_;
};

template <class Format>
Words LatticeScale<Format>::entry_of(Words point) const {
  Words code = words(0);
  for (int i = Space::kDims; i-- > 0;) {
    const Words level = hn::ShiftRightSame(point, 4 * i) & words(Book::kPadded - 1);
    code = (Space::kLevels == 8 ? hn::ShiftLeft<3>(code) : code + code + code) + level;
  }
  return hn::GatherIndex(kWords, lattice_.entries, as_ints(code));
}

// Returns the codes of the points with the levels nearest to a group. Sets `farthest` to the greatest distance between
// a value and its level; a tie is at 1. kQuick: no product with `inverse` has a magnitude of kRoundable or above.
template <class Format>
template <bool kQuick>
Words LatticeScale<Format>::rounded(int group, Floats inverse, Floats& farthest) const {
  constexpr int kTop = Space::kLevels - 1;
  if constexpr (kQuick) {
    // The sum with 3 * 2^23 rounds to a multiple of 2, ties to a multiple of 4. Sums of codes are exact.
    const Floats round = floats(25165824.0f);
    Floats code = floats(0);
    farthest = floats(0);
    float place = 0.5f;
    for (int i = 0; i < Space::kDims; ++i, place *= Space::kLevels) {
      const Floats twice = inverse * input_->x(group * Space::kDims + i) - floats(1);
      const Floats bounded = hn::Min(hn::Max(twice, floats(0)), floats(float{2 * kTop}));
      const Floats nearest = (bounded + round) - round;
      farthest = hn::Max(farthest, hn::Abs(bounded - nearest));
      code = hn::MulAdd(nearest, floats(place), code);
    }
    return as_words(round_to_ints(code));
  }
  farthest = floats(1);
  Words code = words(0);
  for (int i = Space::kDims; i-- > 0;) {
    const Floats exact = floats(0.5f) * (inverse * input_->x(group * Space::kDims + i) - floats(1));
    const Words level = as_words(clamp(nearest_ints(exact), 0, kTop));
    code = (Space::kLevels == 8 ? hn::ShiftLeft<3>(code) : code + code + code) + level;
  }
  return code;
}

// Rounds the groups whose bits are set in `which`, and lists those whose place in the book has to be looked up.
template <class Format>
template <bool kQuick>
void LatticeScale<Format>::round_groups(Floats inverse, Floats scale, Words which) {
  const Floats top = scale * floats(2 * Space::kLevels - 1) + most_;
  const Mask unusual = is_unusual(top * top * weight_);
  changed_.clear();
  for (int group = 0; group < kGroups; ++group) {
    const Mask chosen = hn::Not(mask_of((which & words(1u << group)) == words(0)));
    Floats farthest;
    const Words code = rounded<kQuick>(group, inverse, farthest);
    const Mask same = mask_of(code == hn::Load(kWords, codes_ + group * kStep));
    const Mask known = hn::And(same, scale >= hn::Load(kFloats, placed_.until + group * kStep));
    hn::Store(code, kWords, codes_ + group * kStep);
    const Mask special = hn::Or(unusual, farthest > floats(1 - kTie));
    changed_.add(group, code, hn::AndNot(special, hn::AndNot(known, chosen)), hn::And(special, chosen));
  }
}

// Maps the groups whose bits are set in `which` to the book: rounds with `inverse`, compares neighbours at `scale`. If
// nothing was forgotten since the last call, its scale was not lower, nor its groups fewer.
template <class Format>
bool LatticeScale<Format>::place(Floats inverse, Floats scale, Words which) {
  const Floats bounded = or_zero(hn::Not(mask_of(which == words(0))), inverse);
  if (HWY_LIKELY(all(most_ * hn::Abs(bounded) < floats(kRoundable))))
    round_groups<true>(bounded, scale, which);
  else
    round_groups<false>(inverse, scale, which);
  alignas(64) float scales[kLanes];
  hn::Store(scale, kFloats, scales);
  const auto rows_of = [&](std::size_t at) { return input_->group_x(at); };
  const auto as_reference = [&](std::size_t at) { return take_as_reference(at, scales); };
  return changed_.place(lattice_, scales, rows_of, as_reference, placed_);
}

// Moves a group to the best of all neighbours, for this try only.
template <class Format>
bool LatticeScale<Format>::take_as_reference(std::size_t at, const float* scales) {
  const auto& lattice = Format::lattice();
  const auto code = static_cast<int>(codes_[at]);
  int index = lattice.index[code];
  float until = 0;
  if (index < 0) {
    const auto scaled = reference::scaled_levels<Space>(scales[at % kLanes], reference::odd_values<Space>());
    index = reference::nearest_neighbour(lattice, code, scaled, input_->group_x(at), input_->group_root(at));
    until = std::numeric_limits<float>::infinity();
  }
  if (index < 0) return false;
  placed_.set(at, {Book::word_of(lattice.book[index]), until});
  return true;
}

// Makes the next call of place() look all groups up.
template <class Format>
void LatticeScale<Format>::forget() {
  for (std::size_t i = 0; i < kSize; i += kLanes) {
    hn::Store(words(~0u), kWords, codes_ + i);
    hn::Store(words(Book::kOrigin), kWords, placed_.words + i);
    hn::Store(floats(0), kFloats, placed_.until + i);
  }
}

// Computes the sums for the least-squares scale, which is sum(w x q) / sum(w q q).
template <class Format>
auto LatticeScale<Format>::fit(const Words* points) const -> Fit {
  Fit sums{floats(0), floats(0)};
  for (int i = 0; i < kCount; ++i) {
    const Floats q = odd_value<Space>(points[i / Space::kDims], i % Space::kDims);
    sums.xq = sums.xq + input_->weighted_x(i) * q;
    sums.qq = sums.qq + input_->weight(i) * q * q;
  }
  return sums;
}

template <class Format>
bool LatticeScale<Format>::search(Floats top) {
  constexpr reference::ScaleRule kRule = Format::kRule;
  constexpr int kTopValue = 2 * Space::kLevels - 1;
  const Words every = choose(zeros_, words(0), words(kAllGroups));
  Words beside = kRule.revisit == reference::Revisit::kBesideBook ? words(0) : every;
  Floats best = floats(0);
  forget();
  for (int attempt = -kRule.tries; attempt <= kRule.tries; ++attempt) {
    const Floats inverse = floats(kTopValue + static_cast<float>(attempt) * kRule.step) / top;
    if (!place(inverse, floats(1) / inverse, every)) return false;
    Words tried[kGroups];
    for (int group = 0; group < kGroups; ++group) tried[group] = placed(group);
    const Fit sums = fit(tried);
    const Mask better = hn::And(sums.qq > floats(0), sums.xq * sums.xq > best * sums.qq);
    scale_ = choose(better, sums.xq / sums.qq, scale_);
    best = choose(better, scale_ * sums.xq, best);
    if (!any(better)) continue;
    Words off = words(0);
    for (int group = 0; group < kGroups; ++group) {
      const Mask stray = hn::Load(kFloats, placed_.until + group * kStep) > floats(0);
      off = off | choose(stray, words(1u << group), words(0));
    }
    beside = choose(better, off, beside);
    for (int group = 0; group < kGroups; ++group) points_[group] = choose(better, tried[group], points_[group]);
  }
  const Mask none = mask_of(beside == words(0));
  if (kRule.revisit == reference::Revisit::kAllIfAnyBeside) beside = choose(none, words(0), every);
  if (kRule.revisit == reference::Revisit::kAll) beside = every;
  return revisit(choose(scale_ > floats(0), beside, words(0)));
}

// Maps groups to the book again, at the scale found by the search.
template <class Format>
bool LatticeScale<Format>::revisit(Words groups) {
  const Mask again = hn::Not(mask_of(groups == words(0)));
  if (!any(again)) return true;
  forget();
  if (!place(floats(1) / scale_, scale_, groups)) return false;
  for (int group = 0; group < kGroups; ++group) {
    const Mask chosen = hn::Not(mask_of((groups & words(1u << group)) == words(0)));
    points_[group] = choose(chosen, placed(group), points_[group]);
  }
  const Fit sums = fit(points_);
  scale_ = choose(hn::And(again, sums.qq > floats(0)), sums.xq / sums.qq, scale_);
  return true;
}

// Returns the magnitude that the first guess of the scale maps to the highest level.
template <class Format>
Floats LatticeScale<Format>::guess() {
  Floats top = input_->x(0);
  for (int i = 1; i < kCount; ++i) top = greater(top, input_->x(i));
  Words most = words(0);  // the bits of magnitudes order like integers, with NaNs above all numbers
  weight_ = floats(0);
  for (int group = 0; group < kGroups; ++group) {
    Floats sum = floats(0);
    for (int i = group * Space::kDims; i < (group + 1) * Space::kDims; ++i) {
      most = hn::Max(most, as_words(hn::Abs(input_->x(i))));
      sum = sum + input_->root(i);
    }
    weight_ = hn::Max(weight_, sum);
  }
  most_ = as_floats(most);
  zeros_ = top < floats(Format::kMin);
  scale_ = top / floats(2 * Space::kLevels - 1);
  if constexpr (Format::kFitsGuess) {
    Floats values[kCount], weights[kCount];
    Words levels[kCount];
    for (int i = 0; i < kCount; ++i) values[i] = input_->x(i), weights[i] = input_->weight(i);
    scale_ = PositiveFit<kCount, Space::kLevels + 1>(values, weights, levels).run();
    top = scale_ * floats(Space::kLevels);
    zeros_ = hn::Or(zeros_, top <= floats(0));
  }
  return top;
}

template <class Format>
bool LatticeScale<Format>::find(Input& input) {
  input_ = &input;
  const Floats top = guess();
  for (Words& point : points_) point = words(Book::kOrigin);
  if (!search(top)) return false;
  const Mask turned = hn::AndNot(zeros_, scale_ < floats(0));
  scale_ = hn::IfThenZeroElse(zeros_, choose(turned, hn::Neg(scale_), scale_));
  input.flip_signs(turned);
  return all(scale_ >= floats(0));
}

}  // namespace ggufmill::simd
