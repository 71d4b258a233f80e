#pragma once
// Code shared by the encoders of IQ1_S and IQ1_M after the cut (plugins/reference/iq1_thirds.cpp): computes the levels
// of a cut and maps each group to the code book, with one sub-block per lane.

#include "plugins/reference/iq1_thirds.h"
#include "plugins/reference/iq_match.h"
#include "plugins/simd/iq1_cuts.h"
#include "plugins/simd/lattice_neighbours.h"
#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

using Iq1Points = Points<reference::Ternary>;

// Views of the book's tables, which are built on the first call. The latter has only the neighbours that can be nearest
// to values which round to the point.
LatticeView<reference::Ternary> iq1_view();
LatticeView<reference::Ternary> iq1_rounded_view();

// Values of the levels, with the shift up [0] and down [1].
inline constexpr LevelValues kIq1LevelValues[2] = {
    [] {
      LevelValues values{};
      for (int i = 0; i < 12; ++i) values.at[i / 3 * 4 + i % 3] = reference::kShiftedValues[0][i % 3];
      return values;
    }(),
    [] {
      LevelValues values{};
      for (int i = 0; i < 12; ++i) values.at[i / 3 * 4 + i % 3] = reference::kShiftedValues[1][i % 3];
      return values;
    }()};

// Returns coordinate i of points as a number, including the shift. All these sums are exact.
inline Floats iq1_value(Words points, int i, Floats shift) {
  const Ints level = as_ints(hn::ShiftRightSame(points, 4 * i) & words(3));
  return to_floats(level - ints(1)) + shift;
}

// kCount values of each lane, converted back to rows for searches that read a single lane.
template <int kCount>
class LaneRows {
 public:
  // Reads from lanes: element i is at lanes[i * kLanes].
  void set(const float* lanes) {
    std::uint8_t* rows[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) rows[lane] = reinterpret_cast<std::uint8_t*>(rows_[lane]);
    lanes_to_rows(reinterpret_cast<const std::uint32_t*>(lanes), kCount, rows);
  }

  // Returns the values from element i on. A full vector can be read, although some of its values may be meaningless.
  const float* at(std::size_t lane, int i) const { return rows_[lane] + i; }

 private:
  alignas(64) float rows_[kLanes][kCount + 16] = {};
};

// A sub-block of kCount weights in each lane.
template <int kCount>
class Iq1Sub {
 public:
  static constexpr int kGroups = kCount / 8;

  // x and weight are in lanes and must outlive this object.
  Iq1Sub(const float* x, const float* weight) : x_(x), weight_(weight) {}

  // Computes the levels of a cut and maps the groups to the book. `down(group)` returns the lanes with a downward
  // shift. Lanes without a cut get scale 0 and the first point of the book. Returns false on reference::kNoBookPoint.
  template <class Down>
  bool take(const SortedLanes<kCount>& sorted, const LaneCut& cut, const Down& down) {
    const Mask found = cut.found();
    scale_ = or_zero(found, hn::Abs(cut.scale));
    for (int group = 0; group < kGroups; ++group)
      shifts_[group] = choose(down(group), floats(-reference::kIq1Shift), floats(reference::kIq1Shift));
    set_levels(sorted, cut, found);
    Mask moved = is_nan(floats(0));
    if (!take_to_book(found, moved)) return false;
    if (any(moved)) fit(moved);
    return all(scale_ >= floats(0));
  }

  Floats scale() const { return scale_; }
  Words point(int group) const { return points_[group]; }
  Words index(int group) const { return hn::ShiftRight<8>(entry(group, lattice_)); }
  // Returns the value of element i, before scaling.
  Floats value(int i) const { return iq1_value(points_[i / 8], i % 8, shifts_[i / 8]); }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);

  Floats x(int i) const { return hn::Load(kFloats, x_ + i * kStep); }
  Floats weight(int i) const { return hn::Load(kFloats, weight_ + i * kStep); }

  void set_levels(const SortedLanes<kCount>& sorted, const LaneCut& cut, Mask found) {
    const auto low = sorted.at(hn::Max(cut.low, ints(0))), high = sorted.at(hn::Max(cut.high, ints(0)));
    const Mask turned = cut.scale < floats(0);
    const Words first = words(Iq1Points::word_of(reference::kIq1Book[0]));
    const Floats inverse = floats(1) / scale_;
    const Mask usual = hn::And(scale_ > floats(1e-30f), scale_ < floats(1e30f));
    for (int group = 0; group < kGroups; ++group) {
      Words point = words(Iq1Points::kOrigin);
      Floats farthest = floats(0);  // greatest distance between a value and its level; a tie is at one half
      for (int i = 0; i < 8; ++i) {
        const Floats value = x(8 * group + i);
        const Words one = choose(low.not_after(value, 8 * group + i), words(1), words(0));
        const Words two = choose(high.not_after(value, 8 * group + i), words(1), words(0));
        const Words level = choose(turned, words(2) - one - two, one + two);
        point = point | hn::ShiftLeftSame(level, 4 * i);
        const Floats exact = hn::Min(hn::Max(hn::MulSub(value, inverse, shifts_[group]), floats(-1)), floats(1));
        farthest = hn::Max(farthest, hn::Abs(exact - to_floats(as_ints(level) - ints(1))));
      }
      rounded_[group] = hn::And(usual, farthest < floats(0.5f - 0x1p-12f));
      points_[group] = choose(found, point, first);
    }
  }

  Words entry(int group, const LatticeView<reference::Ternary>& lattice) const {
    Words code = words(0);
    for (int i = 8; i-- > 0;) code = code + code + code + (hn::ShiftRightSame(points_[group], 4 * i) & words(3));
    return hn::GatherIndex(kWords, lattice.entries, as_ints(code));
  }

  static Mask in_book(Words entry) { return mask_of((entry & words(LatticeEntry::kChunks)) == words(0)); }

  // Sets `moved` in the lanes where a group was not in the book.
  bool take_to_book(Mask found, Mask& moved) {
    LaneRows<kCount> x_rows, weight_rows;
    x_rows.set(x_);
    weight_rows.set(weight_);
    alignas(64) float scales[kLanes], shifts[kLanes];
    alignas(64) std::uint32_t points[kLanes];
    hn::Store(scale_, kFloats, scales);
    for (int group = 0; group < kGroups; ++group) {
      const Mask stray = hn::AndNot(in_book(entry(group, lattice_)), found);
      if (!any(stray)) continue;
      moved = hn::Or(moved, stray);
      hn::Store(points_[group], kWords, points);
      hn::Store(shifts_[group], kFloats, shifts);
      const auto find = [&](const LatticeView<reference::Ternary>& lattice, Mask lanes) {
        alignas(64) std::uint32_t entries[kLanes];
        hn::Store(entry(group, lattice), kWords, entries);
        const auto point_of = [&](std::size_t lane) {
          return StrayPoint{x_rows.at(lane, 8 * group), weight_rows.at(lane, 8 * group),
                            kIq1LevelValues[shifts[lane] < 0], scales[lane], LatticeEntry(entries[lane])};
        };
        return find_neighbours(lattice, lanes, point_of, points);
      };
      if (!find(rounded_lattice_, hn::And(stray, rounded_[group]))) return false;
      if (!find(lattice_, hn::AndNot(rounded_[group], stray))) return false;
      points_[group] = hn::Load(kWords, points);
    }
    return true;
  }

  // Computes the least-squares scale of the current book points.
  void fit(Mask moved) {
    Floats xq = floats(0), qq = floats(0);
    for (int i = 0; i < kCount; ++i) {
      const Floats q = value(i);
      const Floats wq = weight(i) * q;
      xq = xq + wq * x(i);
      qq = qq + wq * q;
    }
    const Mask positive = hn::And(xq > floats(0), qq > floats(0));
    scale_ = choose(hn::And(moved, positive), xq / qq, scale_);
  }

  LatticeView<reference::Ternary> lattice_ = iq1_view(), rounded_lattice_ = iq1_rounded_view();
  const float* x_;
  const float* weight_;
  Floats scale_;
  Floats shifts_[kGroups];
  Mask rounded_[kGroups];  // no other level is nearer to a value, nor close to it
  Words points_[kGroups];
};

// Returns the 3-bit level of a sub-block's scale. The scale is 2 * level + 1, in units of the super-block's scale.
inline Words iq1_scale_level(Floats inverse, Floats scale) {
  return as_words(clamp(nearest_ints(floats(0.5f) * (inverse * scale - floats(1))), 0, 7));
}

template <int kCount>
Floats largest_magnitude(const float* x) {
  Floats most = hn::Abs(hn::Load(kFloats, x));
  for (int i = 1; i < kCount; ++i) most = greater(most, hn::Abs(hn::Load(kFloats, x + i * static_cast<int>(kLanes))));
  return most;
}

}  // namespace ggufmill::simd
