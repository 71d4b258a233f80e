#pragma once
// Search for the scale of a sub-block of an IQ2 or IQ3 type (plugins/reference/iq_scale_search.h), with one sub-block
// per lane. Points that are not in the book are processed outside the lanes, by the neighbour search.

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
    const Mask in_book = mask_of((entry & words(LatticeEntry::kVectors)) == words(0));
    return choose(in_book, hn::ShiftRight<8>(entry), words(~0u));
  }

 private:
  static constexpr int kCount = Input::kCount;
  static constexpr std::uint32_t kAllGroups = (1u << kGroups) - 1;

  struct Fit {
    Floats xq, qq;
  };

  Words entry_of(Words point) const;
  Words rounded(int group, Floats inverse) const;
  bool place(Floats inverse, Floats scale, Words which, Words* points, Words& beside);
  bool take_to_book(int group, Mask stray, Words entry, const float* scales, Words* points) const;
  Fit fit(const Words* points) const;
  Floats guess();
  bool search(Floats top);
  bool revisit(Words groups);

  LatticeView<Space> lattice_;
  const Input* input_ = nullptr;
  Mask zeros_;
  Floats scale_;
  Words points_[kGroups];
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

// Returns the point with the levels nearest to a group.
template <class Format>
Words LatticeScale<Format>::rounded(int group, Floats inverse) const {
  Words point = words(Book::kOrigin);
  for (int i = 0; i < Space::kDims; ++i) {
    const Floats exact = floats(0.5f) * (inverse * input_->x(group * Space::kDims + i) - floats(1));
    const Ints level = clamp(nearest_ints(exact), 0, Space::kLevels - 1);
    point = point | hn::ShiftLeftSame(as_words(level), 4 * i);
  }
  return point;
}

// Maps the groups whose bits are set in `which` to the book: rounds with `inverse`, compares neighbours at `scale`.
// Sets `beside` to the bits of the groups that were moved to a neighbour.
template <class Format>
bool LatticeScale<Format>::place(Floats inverse, Floats scale, Words which, Words* points, Words& beside) {
  alignas(64) float scales[kLanes];
  hn::Store(scale, kFloats, scales);
  beside = words(0);
  for (int group = 0; group < kGroups; ++group) {
    const Words bit = which & words(1u << group);
    const Mask chosen = hn::Not(mask_of(bit == words(0)));
    const Words point = rounded(group, inverse);
    const Words entry = entry_of(point);
    points[group] = choose(chosen, point, points[group]);
    const Mask stray = hn::AndNot(mask_of((entry & words(LatticeEntry::kVectors)) == words(0)), chosen);
    beside = beside | choose(stray, bit, words(0));
    if (any(stray) && !take_to_book(group, stray, entry, scales, points)) return false;
  }
  return true;
}

template <class Format>
bool LatticeScale<Format>::take_to_book(int group, Mask stray, Words entry, const float* scales, Words* points) const {
  alignas(64) std::uint32_t entries[kLanes], found[kLanes];
  hn::Store(entry, kWords, entries);
  hn::Store(points[group], kWords, found);
  const int at = group * Space::kDims;
  const auto point_of = [&](std::size_t lane) {
    return StrayPoint{input_->row_x(lane, at), input_->row_root(lane, at), kOddValues<Space>, scales[lane],
                      LatticeEntry(entries[lane])};
  };
  if (!find_neighbours(lattice_, stray, entry, point_of, found)) return false;
  points[group] = hn::Load(kWords, found);
  return true;
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
  for (int attempt = -kRule.tries; attempt <= kRule.tries; ++attempt) {
    const Floats inverse = floats(kTopValue + static_cast<float>(attempt) * kRule.step) / top;
    Words tried[kGroups], off;
    for (Words& point : tried) point = words(Book::kOrigin);
    if (!place(inverse, floats(1) / inverse, every, tried, off)) return false;
    const Fit sums = fit(tried);
    const Mask better = hn::And(sums.qq > floats(0), sums.xq * sums.xq > best * sums.qq);
    scale_ = choose(better, sums.xq / sums.qq, scale_);
    best = choose(better, scale_ * sums.xq, best);
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
  Words beside;
  if (!place(floats(1) / scale_, scale_, groups, points_, beside)) return false;
  const Fit sums = fit(points_);
  scale_ = choose(hn::And(again, sums.qq > floats(0)), sums.xq / sums.qq, scale_);
  return true;
}

// Returns the magnitude that the first guess of the scale maps to the highest level.
template <class Format>
Floats LatticeScale<Format>::guess() {
  Floats top = input_->x(0);
  for (int i = 1; i < kCount; ++i) top = greater(top, input_->x(i));
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
