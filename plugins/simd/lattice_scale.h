#pragma once
// Search for the scales of a few sub-blocks of an IQ2 or IQ3 type (plugins/reference/iq_scale_search.h), with one
// super-block per lane. Points that are not in the book are processed outside the lanes, by the neighbour search.
// Consecutive tries often round a group to the same point, whose neighbour stays the same over a range of scales
// (lattice_reach.h). A try therefore needs few searches, and only those of several sub-blocks together fill vectors.

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
  static constexpr int kSubs = 128 / Input::kCount;

  explicit LatticeScale(const LatticeView<Space>& lattice) : lattice_(lattice) {}

  // Finds the scales and the points of kSubs sub-blocks. Inverts the signs in lanes where the values whose sign was
  // changed outweigh the others. Returns false if a lane has no point in the book (reference::kNoBookPoint).
  bool find(Input* inputs);

  // Results for each sub-block: the scale, which is 0 for a sub-block of zeros; the lanes with such sub-blocks; and the
  // index of each group.
  Floats scale(int sub) const { return subs_[sub].scale; }
  Mask zeros(int sub) const { return subs_[sub].zeros; }
  Words index(int sub, int group) const {
    const Words entry = entry_of(subs_[sub].points[group]);
    const Mask in_book = mask_of((entry & words(LatticeEntry::kChunks)) == words(0));
    return choose(in_book, hn::ShiftRight<8>(entry), words(~0u));
  }

 private:
  static constexpr int kCount = Input::kCount;
  static constexpr std::uint32_t kAllGroups = (1u << kGroups) - 1;
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr std::size_t kSubSize = kGroups * kLanes, kSize = kSubs * kSubSize;
  // Values within this distance of a tie are close to it. The difference between multiplying by an inverse scale and
  // comparing at the scale is much smaller.
  static constexpr float kTie = 0x1p-14f;

  struct Sub {
    const Input* input;
    Mask zeros;
    Floats top;                        // the magnitude that the guess maps to the highest level
    Floats most;                       // greatest magnitude
    Floats least_weight, most_weight;  // the least and the greatest sum of roots of weights of a group
    Floats scale;
    Floats best;   // score of the best try
    Words beside;  // groups to map to the book again
    Words points[kGroups];
  };
  struct Fit {
    Floats xq, qq;
  };

  Words entry_of(Words point) const;
  template <bool kQuick>
  Words rounded(const Input& input, int group, Floats inverse, Floats& farthest) const;
  template <bool kQuick>
  void round_groups(int sub, Floats inverse, Floats scale, Words which);
  void round(int sub, Floats inverse, Floats scale, Words which);
  bool place();
  bool take_as_reference(std::size_t at);
  Words placed(int sub, int group) const { return hn::Load(kWords, placed_.words + (sub * kGroups + group) * kStep); }
  Fit fit(const Input& input, const Words* points) const;
  void guess(Sub& sub);
  void forget();
  bool search();
  void keep_better(int sub);
  bool revisit();

  LatticeView<Space> lattice_;
  Sub subs_[kSubs];
  // Groups of all sub-blocks:
  alignas(64) float scales_[kSize];         // of the last try
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
Words LatticeScale<Format>::rounded(const Input& input, int group, Floats inverse, Floats& farthest) const {
  constexpr int kTop = Space::kLevels - 1;
  if constexpr (kQuick) {
    // The sum with 3 * 2^23 rounds to a multiple of 2, ties to a multiple of 4. Sums of codes are exact.
    const Floats round = floats(25165824.0f);
    Floats code = floats(0);
    farthest = floats(0);
    float place = 0.5f;
    for (int i = 0; i < Space::kDims; ++i, place *= Space::kLevels) {
      const Floats twice = inverse * input.x(group * Space::kDims + i) - floats(1);
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
    const Floats exact = floats(0.5f) * (inverse * input.x(group * Space::kDims + i) - floats(1));
    const Words level = as_words(clamp(nearest_ints(exact), 0, kTop));
    code = (Space::kLevels == 8 ? hn::ShiftLeft<3>(code) : code + code + code) + level;
  }
  return code;
}

template <class Format>
template <bool kQuick>
void LatticeScale<Format>::round_groups(int sub, Floats inverse, Floats scale, Words which) {
  const Floats top = scale * floats(2 * Space::kLevels - 1) + subs_[sub].most;
  const Mask unusual = is_unusual(top * top * subs_[sub].least_weight, top * top * subs_[sub].most_weight);
  for (int group = 0; group < kGroups; ++group) {
    const int at = (sub * kGroups + group) * kStep;
    const Mask chosen = hn::Not(mask_of((which & words(1u << group)) == words(0)));
    Floats farthest;
    const Words code = rounded<kQuick>(*subs_[sub].input, group, inverse, farthest);
    const Mask same = mask_of(code == hn::Load(kWords, codes_ + at));
    const Mask known = hn::And(same, scale >= hn::Load(kFloats, placed_.until + at));
    hn::Store(code, kWords, codes_ + at);
    hn::Store(scale, kFloats, scales_ + at);
    const Mask tie = farthest > floats(1 - kTie);
    const Mask special = kQuick && Book::kTies ? unusual : hn::Or(unusual, tie);
    const Mask settled = Book::kTies ? hn::AndNot(tie, known) : known;
    const Words entry = Book::kTies ? choose(tie, code + words(Space::kCodes), code) : code;
    changed_.add(sub * kGroups + group, entry, hn::AndNot(special, hn::AndNot(settled, chosen)),
                 hn::And(special, chosen));
  }
}

// Rounds the groups of a sub-block whose bits are set in `which`, with `inverse`, and lists those whose place in the
// book has to be looked up. place() then compares neighbours at `scale`. If nothing was forgotten since the last call
// for this sub-block, its scale was not lower, nor its groups fewer.
template <class Format>
void LatticeScale<Format>::round(int sub, Floats inverse, Floats scale, Words which) {
  const Floats bounded = or_zero(hn::Not(mask_of(which == words(0))), inverse);
  if (HWY_LIKELY(all(subs_[sub].most * hn::Abs(bounded) < floats(kRoundable))))
    round_groups<true>(sub, bounded, scale, which);
  else
    round_groups<false>(sub, inverse, scale, which);
}

// Maps all groups that round() has listed to the book.
template <class Format>
bool LatticeScale<Format>::place() {
  const auto rows_of = [&](std::size_t at) { return subs_[at / kSubSize].input->group_x(at % kSubSize); };
  const auto as_reference = [&](std::size_t at) { return take_as_reference(at); };
  return changed_.place(lattice_, scales_, rows_of, as_reference, placed_);
}

// Moves a group to the best of all neighbours, for this try only.
template <class Format>
bool LatticeScale<Format>::take_as_reference(std::size_t at) {
  const auto& lattice = Format::lattice();
  const auto code = static_cast<int>(codes_[at]);
  int index = lattice.index[code];
  float until = 0;
  if (index < 0) {
    const Input& input = *subs_[at / kSubSize].input;
    const auto scaled = reference::scaled_levels<Space>(scales_[at], reference::odd_values<Space>());
    index = reference::nearest_neighbour(lattice, code, scaled, input.group_x(at % kSubSize),
                                         input.group_root(at % kSubSize));
    until = std::numeric_limits<float>::infinity();
  }
  if (index < 0) return false;
  placed_.set(at, {Book::word_of(lattice.book[index]), until});
  return true;
}

// Makes the next calls of round() list all groups.
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
auto LatticeScale<Format>::fit(const Input& input, const Words* points) const -> Fit {
  Fit sums{floats(0), floats(0)};
  for (int i = 0; i < kCount; ++i) {
    const Floats q = odd_value<Space>(points[i / Space::kDims], i % Space::kDims);
    sums.xq = sums.xq + input.weighted_x(i) * q;
    sums.qq = sums.qq + input.weight(i) * q * q;
  }
  return sums;
}

template <class Format>
bool LatticeScale<Format>::search() {
  constexpr reference::ScaleRule kRule = Format::kRule;
  constexpr int kTopValue = 2 * Space::kLevels - 1;
  for (Sub& sub : subs_) {
    sub.best = floats(0);
    sub.beside = words(kRule.revisit == reference::Revisit::kBesideBook ? 0 : kAllGroups);
    for (Words& point : sub.points) point = words(Book::kOrigin);
  }
  forget();
  for (int attempt = -kRule.tries; attempt <= kRule.tries; ++attempt) {
    changed_.clear();
    for (int sub = 0; sub < kSubs; ++sub) {
      const Floats inverse = floats(kTopValue + static_cast<float>(attempt) * kRule.step) / subs_[sub].top;
      round(sub, inverse, floats(1) / inverse, choose(subs_[sub].zeros, words(0), words(kAllGroups)));
    }
    if (!place()) return false;
    for (int sub = 0; sub < kSubs; ++sub) keep_better(sub);
  }
  return true;
}

// Keeps the last try of a sub-block in lanes where it is better than the best one.
template <class Format>
void LatticeScale<Format>::keep_better(int at) {
  Sub& sub = subs_[at];
  Words tried[kGroups];
  for (int group = 0; group < kGroups; ++group) tried[group] = placed(at, group);
  const Fit sums = fit(*sub.input, tried);
  const Mask better = hn::And(sums.qq > floats(0), sums.xq * sums.xq > sub.best * sums.qq);
  sub.scale = choose(better, sums.xq / sums.qq, sub.scale);
  sub.best = choose(better, sub.scale * sums.xq, sub.best);
  if (!any(better)) return;
  Words off = words(0);
  for (int group = 0; group < kGroups; ++group) {
    const Mask stray = hn::Load(kFloats, placed_.until + (at * kGroups + group) * kStep) > floats(0);
    off = off | choose(stray, words(1u << group), words(0));
    sub.points[group] = choose(better, tried[group], sub.points[group]);
  }
  sub.beside = choose(better, off, sub.beside);
}

// Maps groups to the book again, at the scales found by the search.
template <class Format>
bool LatticeScale<Format>::revisit() {
  constexpr reference::Revisit kRevisit = Format::kRule.revisit;
  forget();
  changed_.clear();
  for (int at = 0; at < kSubs; ++at) {
    Sub& sub = subs_[at];
    const Mask none = hn::Or(sub.zeros, hn::Not(sub.scale > floats(0)));
    if (kRevisit == reference::Revisit::kAllIfAnyBeside)
      sub.beside = choose(mask_of(sub.beside == words(0)), words(0), words(kAllGroups));
    if (kRevisit == reference::Revisit::kAll) sub.beside = words(kAllGroups);
    sub.beside = choose(none, words(0), sub.beside);
    round(at, floats(1) / sub.scale, sub.scale, sub.beside);
  }
  if (!place()) return false;
  for (int at = 0; at < kSubs; ++at) {
    Sub& sub = subs_[at];
    for (int group = 0; group < kGroups; ++group) {
      const Mask chosen = hn::Not(mask_of((sub.beside & words(1u << group)) == words(0)));
      sub.points[group] = choose(chosen, placed(at, group), sub.points[group]);
    }
    const Fit sums = fit(*sub.input, sub.points);
    const Mask again = hn::AndNot(mask_of(sub.beside == words(0)), sums.qq > floats(0));
    sub.scale = choose(again, sums.xq / sums.qq, sub.scale);
  }
  return true;
}

// Guesses the scale.
template <class Format>
void LatticeScale<Format>::guess(Sub& sub) {
  const Input& input = *sub.input;
  sub.top = input.x(0);
  for (int i = 1; i < kCount; ++i) sub.top = greater(sub.top, input.x(i));
  Words most = words(0);  // the bits of magnitudes order like integers, with NaNs above all numbers
  sub.least_weight = floats(FLT_MAX);
  sub.most_weight = floats(0);
  for (int group = 0; group < kGroups; ++group) {
    Floats sum = floats(0);
    for (int i = group * Space::kDims; i < (group + 1) * Space::kDims; ++i) {
      most = hn::Max(most, as_words(hn::Abs(input.x(i))));
      sum = sum + input.root(i);
    }
    sub.least_weight = hn::Min(sub.least_weight, sum);
    sub.most_weight = hn::Max(sub.most_weight, sum);
  }
  sub.most = as_floats(most);
  sub.zeros = sub.top < floats(Format::kMin);
  sub.scale = sub.top / floats(2 * Space::kLevels - 1);
  if constexpr (Format::kFitsGuess) {
    Floats values[kCount], weights[kCount];
    Words levels[kCount];
    for (int i = 0; i < kCount; ++i) values[i] = input.x(i), weights[i] = input.weight(i);
    sub.scale = PositiveFit<kCount, Space::kLevels + 1>(values, weights, levels).run();
    sub.top = sub.scale * floats(Space::kLevels);
    sub.zeros = hn::Or(sub.zeros, sub.top <= floats(0));
  }
}

template <class Format>
bool LatticeScale<Format>::find(Input* inputs) {
  for (Sub& sub : subs_) {
    sub.input = inputs + (&sub - subs_);
    guess(sub);
  }
  if (!search() || !revisit()) return false;
  Mask found = mask_of(words(0) == words(0));
  for (Sub& sub : subs_) {
    const Mask turned = hn::AndNot(sub.zeros, sub.scale < floats(0));
    sub.scale = hn::IfThenZeroElse(sub.zeros, choose(turned, hn::Neg(sub.scale), sub.scale));
    inputs[&sub - subs_].flip_signs(turned);
    found = hn::And(found, sub.scale >= floats(0));
  }
  return all(found);
}

}  // namespace ggufmill::simd
