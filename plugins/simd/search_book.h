#pragma once
// Chooses the points of a code book as reference::AllPoints, EvenPoints and ShiftedPoints do, but looks only at those
// that can be the best at a usual scale.
//
// At a scale s, the error of a point is s (s mm - 2 xm): in the parentheses, a line in s. So a point that is worse than
// another one at both ends of an interval of scales is worse within it. The usual scales of a sub-block are cut into
// intervals; in each, points are compared with the best ones at its ends, and one that is worse in all intervals is
// left out. "Worse" leaves a margin that is far above the errors of rounding, so that a point left out also has the
// greater error as a float, and the same point is chosen.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugins/reference/search_book.h"
#include "plugins/reference/search_iq1.h"
#include "plugins/simd/search_lanes.h"

namespace ggufmill::simd {

// The sums of the points of a group.
enum class Sums {
  kAsGiven,   // of the magnitudes
  kInverted,  // the same with the least of the terms of xm negative; see reference::EvenPoints
  kUp,        // of the values, shifted up or down; see reference::ShiftedPoints
  kDown,
};

// Sums of all points of a group, and what their terms amount to at most.
template <class Format, Sums kSums>
struct PointSums {
  using Shape = reference::BookShape<Format>;
  static constexpr int kPoints = Shape::kPoints;
  static constexpr bool kIsShifted = kSums == Sums::kUp || kSums == Sums::kDown;

  alignas(64) float xm[kPoints], mm[kPoints];
  float greatest_xm, greatest_mm;

  // `x` and `w`: those of the group.
  HWY_INLINE void set(const float* x, const float* w) {
    const Magnitudes& all = magnitudes();
    Floats most_xm = floats(0), most_mm = floats(0);
    for (int at = 0; at < kPoints; at += kLaneStep) {
      Floats sum_xm = floats(0), sum_mm = floats(0), least = floats(FLT_MAX);
      GGUFMILL_UNROLL
      for (int i = 0; i < Shape::kDims; ++i) {
        const Floats m = hn::Load(kFloats, all.at[i] + at), wm = floats(w[i]) * m;
        const Floats term = wm * floats(kIsShifted ? x[i] : std::fabs(x[i]));
        sum_xm = sum_xm + term;
        sum_mm = sum_mm + wm * m;
        if constexpr (kSums == Sums::kInverted) least = lesser(term, least);
      }
      if constexpr (!kIsShifted) {
        most_xm = greater(sum_xm, most_xm);
        most_mm = greater(sum_mm, most_mm);
      }
      if constexpr (kSums == Sums::kInverted) sum_xm = sum_xm - floats(2) * least;
      hn::Store(sum_xm, kFloats, xm + at);
      hn::Store(sum_mm, kFloats, mm + at);
    }
    if constexpr (kIsShifted) {
      constexpr float kMost = 1 + reference::kIq1Shift;
      greatest_xm = greatest_mm = 0;
      for (int i = 0; i < Shape::kDims; ++i) {
        greatest_xm += kMost * w[i] * std::fabs(x[i]);
        greatest_mm += kMost * kMost * w[i];
      }
    } else {
      greatest_xm = hn::GetLane(hn::MaxOfLanes(kFloats, most_xm));
      greatest_mm = hn::GetLane(hn::MaxOfLanes(kFloats, most_mm));
    }
  }

 private:
  static constexpr float kShift = kSums == Sums::kUp     ? reference::kIq1Shift
                                  : kSums == Sums::kDown ? -reference::kIq1Shift
                                                         : 0.0f;

  // The magnitudes or shifted values of all points, one dimension after the other.
  struct Magnitudes {
    alignas(64) float at[Shape::kDims][kPoints];
    Magnitudes() {
      for (int i = 0; i < Shape::kDims; ++i)
        for (int point = 0; point < kPoints; ++point) at[i][point] = Shape::magnitude(point, i) + kShift;
    }
  };
  static const Magnitudes& magnitudes() {
    static const Magnitudes all;
    return all;
  }
};

// Chooses the point with the least error, the first of equal ones; none of the errors is NaN. The number of the point
// is its place. `count` is rounded up to whole vectors.
HWY_INLINE reference::PointChoice least_of(const float* xms, const float* mms, int count, float scale) {
  const Floats s = floats(scale);
  Floats least = floats(HUGE_VALF);
  Ints at = ints(0), now = hn::Iota(kInts, 0);
  for (int i = 0; i < count; i += kLaneStep) {
    const Floats xm = hn::LoadU(kFloats, xms + i), mm = hn::LoadU(kFloats, mms + i);
    const Floats error = s * (s * mm - floats(2) * xm);
    const Mask less = error < least;
    least = simd::choose(less, error, least);
    at = simd::choose(less, now, at);
    now = now + ints(kLaneStep);
  }
  const Floats all = hn::MinOfLanes(kFloats, least);
  const Ints first = hn::MinOfLanes(kInts, simd::choose(least == all, at, ints(INT32_MAX)));
  const int best = hn::GetLane(first);
  return {hn::GetLane(all), xms[best], mms[best], best};
}

// The likely points of the groups of a super-block.
template <class Format, Sums kSums>
class LikelyLines {
 public:
  // Keeps the pointers. `is_needed(group)` says for which groups points are to be found.
  template <class IsNeeded>
  LikelyLines(const float* x, const float* w, const IsNeeded& is_needed) : x_(x), w_(w) {
    AllSums sums;
    for (int sub = 0; sub < Shape::kSubs; ++sub) {
      const float most = Shape::most_in(x + sub * Format::kSubBlock);
      low_[sub] = most / (Shape::top() * kHighest);
      high_[sub] = most / (Shape::top() * kLowest);
      for (int group = sub * Shape::kGroups; group < (sub + 1) * Shape::kGroups; ++group) {
        if (!is_needed(group)) continue;
        sums.set(x_ + group * Shape::kDims, w_ + group * Shape::kDims);
        find_likely(group, sums, low_[sub], high_[sub]);
      }
    }
  }

  // Chooses the best of all points.
  reference::PointChoice choose(int group, float scale) const {
    const int sub = group / Shape::kGroups;
    if (counts_[group] == 0 || !(scale >= low_[sub]) || !(scale <= high_[sub])) return choose_of_all(group, scale);
    reference::PointChoice choice = least_of(xm_ + firsts_[group], mm_ + firsts_[group], counts_[group], scale);
    choice.point = points_[firsts_[group] + choice.point];
    return choice;
  }

 private:
  using Shape = reference::BookShape<Format>;
  using AllSums = PointSums<Format, kSums>;
  static constexpr int kPoints = Shape::kPoints, kStep = kLaneStep;
  static constexpr int kNodes = 6;                            // the ends of the intervals
  static constexpr int kMostLikely = std::min(kPoints, 256);  // of a group, on average
  // The usual scales give the greatest value these parts of the top.
  static constexpr float kLowest = 0.45f, kHighest = AllSums::kIsShifted ? 5.0f : 3.5f;
  // Part of the greatest terms; each of the sums and products that are compared is rounded by at most 2^-24 of them.
  static constexpr float kMargin = 0x1p-18f;
  // Beyond these, products of a margin or a term may underflow or overflow.
  static constexpr float kTiny = 0x1p-100f, kHuge = 0x1p100f;

  // A point's line at a node.
  static Floats line_at(float scale, Floats xm, Floats mm) { return floats(scale) * mm - floats(2) * xm; }

  HWY_NOINLINE reference::PointChoice choose_of_all(int group, float scale) const {
    AllSums sums;
    sums.set(x_ + group * Shape::kDims, w_ + group * Shape::kDims);
    return reference::AllPoints<Format>::choose(sums.xm, sums.mm, scale);
  }

  // The scales at the ends of the intervals, the points that are best there, and how far above them a point is worse.
  struct Nodes {
    float scales[kNodes], xm[kNodes], mm[kNodes], margins[kNodes];
  };

  // Returns false if the numbers are too small or too large to compare.
  static bool find_nodes(const AllSums& sums, float low, float high, Nodes& nodes) {
    const float factor = std::pow(high / low, 1.0f / static_cast<float>(kNodes - 1));
    nodes.scales[0] = low;
    for (int k = 1; k + 1 < kNodes; ++k) nodes.scales[k] = nodes.scales[k - 1] * factor;
    nodes.scales[kNodes - 1] = high;
    Floats least[kNodes];
    Ints at[kNodes], now = hn::Iota(kInts, 0);
    for (int k = 0; k < kNodes; ++k) least[k] = floats(HUGE_VALF), at[k] = ints(0);
    for (int i = 0; i < kPoints; i += kStep) {
      const Floats xm = hn::Load(kFloats, sums.xm + i), mm = hn::Load(kFloats, sums.mm + i);
      GGUFMILL_UNROLL
      for (int k = 0; k < kNodes; ++k) {
        const Floats line = line_at(nodes.scales[k], xm, mm);
        const Mask less = line < least[k];
        least[k] = simd::choose(less, line, least[k]);
        at[k] = simd::choose(less, now, at[k]);
      }
      now = now + ints(kStep);
    }
    for (int k = 0; k < kNodes; ++k) {
      const Mask is_least = least[k] == hn::MinOfLanes(kFloats, least[k]);
      const Ints first = simd::choose(is_least, at[k], ints(INT32_MAX));
      const int best = std::min(hn::GetLane(hn::MinOfLanes(kInts, first)), kPoints - 1);
      nodes.xm[k] = sums.xm[best];
      nodes.mm[k] = sums.mm[best];
      nodes.margins[k] = kMargin * (nodes.scales[k] * sums.greatest_mm + 2 * sums.greatest_xm);
    }
    const float smallest = nodes.margins[0];
    const float largest = nodes.scales[kNodes - 1] * sums.greatest_mm + 2 * sums.greatest_xm;
    return smallest > kTiny && low * smallest > kTiny && largest < kHuge && high * largest < kHuge;
  }

  void find_likely(int group, const AllSums& sums, float low, float high) {
    counts_[group] = 0;
    firsts_[group] = end_;
    Nodes nodes;
    if (!(low > 0) || !find_nodes(sums, low, high, nodes)) return;
    // The value that a point's line must exceed at node k to be worse than the best point of node j there.
    const auto bound = [&](int j, int k) {
      return floats(nodes.scales[k] * nodes.mm[j] - 2 * nodes.xm[j] + nodes.margins[k]);
    };
    Floats own[kNodes], of_next[kNodes], of_last[kNodes];
    for (int k = 0; k < kNodes; ++k) {
      own[k] = bound(k, k);
      if (k + 1 < kNodes) of_next[k] = bound(k + 1, k);
      if (k > 0) of_last[k] = bound(k - 1, k);
    }
    int end = end_;
    for (int i = 0; i < kPoints; i += kStep) {
      const Floats xm = hn::Load(kFloats, sums.xm + i), mm = hn::Load(kFloats, sums.mm + i);
      Floats lines[kNodes];
      GGUFMILL_UNROLL
      for (int k = 0; k < kNodes; ++k) lines[k] = line_at(nodes.scales[k], xm, mm);
      Mask worse = all_lanes();
      GGUFMILL_UNROLL
      for (int k = 0; k + 1 < kNodes; ++k) {
        const Mask than_first = and_greater(lines[k] > own[k], lines[k + 1], of_last[k + 1]);
        const Mask than_second = and_greater(lines[k] > of_next[k], lines[k + 1], own[k + 1]);
        worse = hn::And(worse, hn::Or(than_first, than_second));
      }
      if (all(worse)) continue;
      if (end + 2 * kStep > kMost) return;  // too many: the group has none
      const Mask kept = hn::Not(worse);
      hn::StoreU(hn::Compress(xm, kept), kFloats, xm_ + end);
      hn::StoreU(hn::Compress(mm, kept), kFloats, mm_ + end);
      hn::StoreU(hn::Compress(hn::Iota(kInts, i), hn::RebindMask(kInts, kept)), kInts, points_ + end);
      end += static_cast<int>(hn::CountTrue(kFloats, kept));
    }
    hn::StoreU(floats(0), kFloats, xm_ + end);
    hn::StoreU(floats(HUGE_VALF), kFloats, mm_ + end);
    counts_[group] = end - firsts_[group];
    end_ = end + kStep;  // the last vector of a group is full: it ends with infinite errors
  }

  static constexpr int kMost = Shape::kAllGroups * (kMostLikely + kStep);

  const float* x_;
  const float* w_;
  // The likely points of all groups, in order.
  float xm_[kMost], mm_[kMost];
  std::int32_t points_[kMost];
  int end_ = 0;
  int firsts_[Shape::kAllGroups], counts_[Shape::kAllGroups];  // a count of 0: any point may be the best
  float low_[Shape::kSubs], high_[Shape::kSubs];
};

// All points of the groups of one sub-block, for searches that look at each sub-block once.
template <class Format, Sums kSums>
class AllLines {
 public:
  // Keeps the pointers.
  template <class IsNeeded>
  AllLines(const float* x, const float* w, const IsNeeded&) : x_(x), w_(w) {}

  // Must be called before points of a sub-block are chosen.
  template <class IsNeeded>
  void turn_to(int sub, const IsNeeded& is_needed) {
    for (int i = 0; i < Shape::kGroups; ++i) {
      const int group = sub * Shape::kGroups + i;
      if (is_needed(group)) sums_[i].set(x_ + group * Shape::kDims, w_ + group * Shape::kDims);
    }
  }

  // Chooses the best of all points.
  reference::PointChoice choose(int group, float scale) const {
    const AllSums& sums = sums_[group % Shape::kGroups];
    const bool is_small = scale * (scale * sums.greatest_mm + 2 * sums.greatest_xm) < kHuge;  // false for NaN
    return is_small ? least_of(sums.xm, sums.mm, Shape::kPoints, scale)
                    : reference::AllPoints<Format>::choose(sums.xm, sums.mm, scale);
  }

 private:
  using Shape = reference::BookShape<Format>;
  using AllSums = PointSums<Format, kSums>;
  static constexpr float kHuge = 0x1p100f;

  const float* x_;
  const float* w_;
  AllSums sums_[Shape::kGroups];
};

// The classes that choose are made of LikelyLines, or of AllLines.

inline constexpr auto kEveryGroup = [](int) { return true; };

// Chooses as reference::AllPoints does.
template <class Format, template <class, Sums> class Lines>
class PlainPoints {
 public:
  // Keeps the pointers.
  PlainPoints(const float* x, const float* w) : lines_(x, w, kEveryGroup) {}

  void turn_to(int sub) requires requires(Lines<Format, Sums::kAsGiven>& lines) { lines.turn_to(0, kEveryGroup); }
  { lines_.turn_to(sub, kEveryGroup); }

  void choose(int sub, float scale, reference::PointChoice* choices) const {
    for (int i = 0; i < kGroups; ++i) choices[i] = lines_.choose(sub * kGroups + i, scale);
  }

 private:
  static constexpr int kGroups = reference::BookShape<Format>::kGroups;
  Lines<Format, Sums::kAsGiven> lines_;
};

// The set of groups of eight values that have an odd number of negative ones.
template <class Format>
struct OddEights {
  static constexpr int kGroupsOfEight = reference::EvenPoints<Format>::kGroupsOfEight;
  bool is_odd[reference::BookShape<Format>::kSuper / 8];

  explicit OddEights(const float* x) {
    int eight = 0;
    for (bool& each : is_odd) each = reference::EvenPoints<Format>::has_odd_signs(x + 8 * eight++);
  }
  bool has(int group) const { return is_odd[group / kGroupsOfEight]; }
  // True if the sums without an inverted sign of a group are candidates.
  bool leaves(int group) const { return kGroupsOfEight > 1 || !has(group); }
};

// Chooses as reference::EvenPoints does.
template <class Format, template <class, Sums> class Lines>
class PairedPoints {
 public:
  static constexpr int kGroupsOfEight = OddEights<Format>::kGroupsOfEight;
  static bool has_odd_signs(const float* x) { return reference::EvenPoints<Format>::has_odd_signs(x); }

  // Keeps the pointers.
  PairedPoints(const float* x, const float* w)
      : odd_(x),
        as_given_(x, w, [this](int group) { return odd_.leaves(group); }),
        inverted_(x, w, [this](int group) { return odd_.has(group); }) {}

  void turn_to(int sub) requires requires(Lines<Format, Sums::kAsGiven>& lines) { lines.turn_to(0, kEveryGroup); }
  {
    as_given_.turn_to(sub, [this](int group) { return odd_.leaves(group); });
    inverted_.turn_to(sub, [this](int group) { return odd_.has(group); });
  }

  void choose(int sub, float scale, reference::PointChoice* choices) const {
    for (int i = 0; i < kGroups; i += kGroupsOfEight) {
      const int first = sub * kGroups + i;
      reference::choose_even<kGroupsOfEight>(
          odd_.has(first), choices + i, [&](int at) { return as_given_.choose(first + at, scale); },
          [&](int at) { return inverted_.choose(first + at, scale); });
    }
  }

 private:
  static constexpr int kGroups = reference::BookShape<Format>::kGroups;
  OddEights<Format> odd_;
  Lines<Format, Sums::kAsGiven> as_given_;
  Lines<Format, Sums::kInverted> inverted_;
};

// Chooses as reference::ShiftedPoints does.
template <class Format, template <class, Sums> class Lines>
class MovedPoints {
 public:
  // Keeps the pointers.
  MovedPoints(const float* x, const float* w) : up_(x, w, kEveryGroup), down_(x, w, kEveryGroup) {}

  void turn_to(int sub) requires requires(Lines<Format, Sums::kUp>& lines) { lines.turn_to(0, kEveryGroup); }
  {
    up_.turn_to(sub, kEveryGroup);
    down_.turn_to(sub, kEveryGroup);
  }

  void choose(int sub, float scale, reference::PointChoice* choices) const {
    reference::choose_shifted<Format>(sub, choices, [&](int group, int shift) {
      return shift == 0 ? up_.choose(group, scale) : down_.choose(group, scale);
    });
  }

 private:
  Lines<Format, Sums::kUp> up_;
  Lines<Format, Sums::kDown> down_;
};

}  // namespace ggufmill::simd
