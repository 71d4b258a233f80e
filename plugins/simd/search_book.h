#pragma once
// Chooses the points of a code book as reference::AllPoints, EvenPoints and ShiftedPoints do, but looks only at those
// that can be the best at a usual scale.
//
// At a scale s, the error of a point is s (s mm - 2 xm): in the parentheses, a line in s. So a point that is worse than
// another one at both ends of an interval of scales is worse within it. The usual scales of a sub-block are cut into
// intervals; in each, points are compared with good ones at its ends, and one that is worse in all intervals is
// skipped. Lower bounds of their lines in bytes exclude most points before their sums are computed. "Worse" leaves a
// margin that is far above the errors of rounding, so that a skipped point also has the greater error as a float, and
// the same point is chosen.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "plugins/reference/search_book.h"
#include "plugins/reference/search_iq1.h"
#include "plugins/simd/search_lanes.h"

namespace ggufmill::simd {

// The sums of the points of a group.
enum class BookSums {
  kAsGiven,   // of the magnitudes
  kInverted,  // the same with the least of the terms of xm negative; see reference::EvenPoints
  kUp,        // of the values, shifted up or down; see reference::ShiftedPoints
  kDown,
};
inline constexpr bool is_shifted(BookSums sums) { return sums == BookSums::kUp || sums == BookSums::kDown; }

// A code book in two forms: the values of each point, shifted if the sums are, in rows and by coordinate; and its place
// in the table, which has an entry for all levels of two coordinates of three levels, or of one of eight.
template <class Format, BookSums kSums>
struct BookTables {
  using Shape = reference::BookShape<Format>;
  static constexpr int kPoints = Shape::kPoints, kDims = Shape::kDims, kLevels = Shape::kLevels;
  static constexpr int kInTable = kLevels <= 4 ? 2 : 1;  // coordinates
  static constexpr int kTables = kDims / kInTable, kEntries = 16;
  static constexpr float kShift = kSums == BookSums::kUp     ? reference::kIq1Shift
                                  : kSums == BookSums::kDown ? -reference::kIq1Shift
                                                             : 0.0f;
  static constexpr float kMax = is_shifted(kSums) ? 1 + reference::kIq1Shift : Format::kMagnitudes[kLevels - 1];

  alignas(64) float values[kPoints][kDims], by_dims[kDims][kPoints];
  alignas(64) std::uint8_t places[kTables][kPoints];
  alignas(64) float of_entries[kInTable][kEntries];  // the values of the coordinates

  static const BookTables& get() {
    static const BookTables tables;
    return tables;
  }

 private:
  static float value_of(int level) { return static_cast<float>(Format::kMagnitudes[level]) + kShift; }

  // Runs once. In every function that needs the tables, it took most of the time to compile them.
  [[gnu::cold]] HWY_NOINLINE BookTables() {
    for (int entry = 0; entry < kEntries; ++entry)
      for (int i = 0, levels = entry; i < kInTable; ++i, levels /= kLevels)
        of_entries[i][entry] = value_of(levels % kLevels);
    for (int point = 0; point < kPoints; ++point) {
      const auto& levels = Format::kBook[static_cast<std::size_t>(point)];
      for (int i = 0; i < kDims; ++i)
        by_dims[i][point] = values[point][i] = value_of(levels[static_cast<std::size_t>(i)]);
      for (int table = 0; table < kTables; ++table) {
        int place = 0;
        for (int i = kInTable; i-- > 0;)
          place = place * kLevels + levels[static_cast<std::size_t>(table * kInTable + i)];
        places[table][point] = static_cast<std::uint8_t>(place);
      }
    }
  }
};

// The sums of some points of a group.
template <class Format, BookSums kSums>
struct PointSums {
  using Tables = BookTables<Format, kSums>;
  static constexpr int kPoints = Tables::kPoints, kDims = Tables::kDims;

  alignas(64) float xm[kPoints + kLaneStep], mm[kPoints + kLaneStep];

  // Computes them for `count` points; `x` and `w` are those of the group. The last vector is padded with sums that are
  // never the best. `points` is readable up to a full vector.
  HWY_NOINLINE void set(const float* x, const float* w, const std::uint16_t* points, int count) {
    const Tables& tables = Tables::get();
    const Factors factors(x, w);
    for (int at = 0; at < count; at += kLaneStep) {
      const float* rows[kLanes];
      for (int lane = 0; lane < kLaneStep; ++lane) rows[lane] = tables.values[points[at + lane]];
      alignas(64) float values[kDims * kLanes];
      rows_to_lanes(rows, kDims, values);
      add_up(factors, values, kLaneStep, at);
    }
    hn::StoreU(floats(0), kFloats, xm + count);
    hn::StoreU(floats(HUGE_VALF), kFloats, mm + count);
  }

  // Computes them for all points.
  HWY_NOINLINE void set_all(const float* x, const float* w) {
    const Tables& tables = Tables::get();
    const Factors factors(x, w);
    for (int at = 0; at < kPoints; at += kLaneStep) add_up(factors, tables.by_dims[0] + at, kPoints, at);
  }

 private:
  struct Factors {
    Floats sizes[kDims], weights[kDims];
    HWY_INLINE Factors(const float* x, const float* w) {
      for (int i = 0; i < kDims; ++i) {
        sizes[i] = floats(is_shifted(kSums) ? x[i] : std::fabs(x[i]));
        weights[i] = floats(w[i]);
      }
    }
  };

  // Computes the sums from number `at` on. The values of the coordinates are `stride` apart.
  HWY_INLINE void add_up(const Factors& factors, const float* values, int stride, int at) {
    Floats sum_xm = floats(0), sum_mm = floats(0), least = floats(FLT_MAX);
    GGUFMILL_UNROLL
    for (int i = 0; i < kDims; ++i) {
      const Floats m = hn::Load(kFloats, values + i * stride), wm = factors.weights[i] * m;
      const Floats term = wm * factors.sizes[i];
      sum_xm = sum_xm + term;
      sum_mm = sum_mm + wm * m;
      if constexpr (kSums == BookSums::kInverted) least = lesser(term, least);
    }
    if constexpr (kSums == BookSums::kInverted) sum_xm = sum_xm - floats(2) * least;
    hn::Store(sum_xm, kFloats, xm + at);
    hn::Store(sum_mm, kFloats, mm + at);
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

// Finds the points of a group that can be the best at some scales, without the sums of all of them. At a scale, a
// point's line is a sum of terms, one for each table. The difference between a term and the least of its table, in
// units and rounded down, is a byte, so that sums of bytes are lower bounds of the lines of all points.
template <class Format, BookSums kSums>
class CoarseGroup {
 public:
  using Tables = BookTables<Format, kSums>;
  static constexpr int kPoints = Tables::kPoints;

  // Scales in ascending order; the lines of the points that are good there; and how far above them a point is worse.
  template <int kNodes>
  struct Nodes {
    float scales[kNodes], xm[kNodes], mm[kNodes], margins[kNodes];

    // The value that a point's line must exceed at node k to be worse than the good point of node j there.
    float bound(int j, int k) const { return scales[k] * mm[j] - 2 * xm[j] + margins[k]; }
  };

  // `x` and `w`: those of the group.
  HWY_INLINE void set(const float* x, const float* w) {
    const Tables& tables = Tables::get();
    greatest_xm_ = greatest_mm_ = 0;
    float least = FLT_MAX;
    for (int i = 0; i < Tables::kDims; ++i) {
      const float wx = w[i] * std::fabs(x[i]);
      greatest_xm_ += Tables::kMax * wx;
      greatest_mm_ += Tables::kMax * Tables::kMax * w[i];
      least = wx < least ? wx : least;
    }
    // Inverting a sign adds four times the least term.
    least_inverted_ = kSums == BookSums::kInverted ? 3.99f * least * static_cast<float>(Format::kMagnitudes[0]) : 0.0f;
    for (int table = 0; table < Tables::kTables; ++table)
      for (int at = 0; at < Tables::kEntries; at += kLaneStep) {
        Floats xm = floats(0), mm = floats(0);
        GGUFMILL_UNROLL
        for (int i = 0; i < Tables::kInTable; ++i) {
          const int element = table * Tables::kInTable + i;
          const Floats m = hn::Load(kFloats, tables.of_entries[i] + at), wm = floats(w[element]) * m;
          xm = xm + wm * floats(is_shifted(kSums) ? x[element] : std::fabs(x[element]));
          mm = mm + wm * m;
        }
        hn::Store(floats(2) * xm, kFloats, two_xm_[table] + at);
        hn::Store(mm, kFloats, mm_[table] + at);
      }
    x_ = x;
    w_ = w;
  }

  // Returns false if the numbers are too small or too large to compare at scales from `low` to `high`.
  bool is_usual(float low, float high) const {
    const float smallest = kMargin * greatest_at(low), largest = greatest_at(high);
    return low > 0 && smallest > kTiny && low * smallest > kTiny && largest < kHuge && high * largest < kHuge;
  }

  // Writes the points that no good point is better than in all of the intervals between nodes, or at a single node, and
  // returns their number. `points` has room for all of them and a vector more.
  template <int kNodes>
  HWY_NOINLINE int find(Nodes<kNodes>& nodes, std::uint16_t* points) const {
    alignas(64) std::uint8_t sums[kNodes][kPoints];
    Unit units[kNodes];
    for (int k = 0; k < kNodes; ++k) {
      nodes.margins[k] = kMargin * greatest_at(nodes.scales[k]);
      const int good = add_up(nodes.scales[k], units[k], sums[k]);
      set_sums(good, nodes.xm[k], nodes.mm[k]);
    }
    const auto threshold = [&](int j, int k) { return units[k].threshold(nodes.bound(j, k) + nodes.margins[k]); };
    Bytes own[kNodes], of_next[kNodes], of_last[kNodes];
    for (int k = 0; k < kNodes; ++k) {
      own[k] = threshold(k, k);
      if (k + 1 < kNodes) of_next[k] = threshold(k + 1, k);
      if (k > 0) of_last[k] = threshold(k - 1, k);
    }
    int count = 0;
    for (int at = 0; at < kPoints; at += kBytesStep) {
      // Not zero where a point is worse.
      Bytes worse;
      if constexpr (kNodes == 1) {
        worse = hn::SaturatedSub(hn::Load(kBytes, sums[0] + at), own[0]);
      } else {
        worse = hn::Set(kBytes, 255);
        GGUFMILL_UNROLL
        for (int k = 0; k + 1 < kNodes; ++k) {
          const Bytes here = hn::Load(kBytes, sums[k] + at), next = hn::Load(kBytes, sums[k + 1] + at);
          const Bytes than_first = hn::Min(hn::SaturatedSub(here, own[k]), hn::SaturatedSub(next, of_last[k + 1]));
          const Bytes than_second = hn::Min(hn::SaturatedSub(here, of_next[k]), hn::SaturatedSub(next, own[k + 1]));
          worse = hn::Min(worse, hn::Max(than_first, than_second));
        }
      }
      for (std::uint64_t kept = mask_bits(kBytes, worse == hn::Zero(kBytes)); kept != 0; kept &= kept - 1)
        points[count++] = static_cast<std::uint16_t>(at + std::countr_zero(kept));
    }
    for (int i = 0; i < kLaneStep; ++i) points[count + i] = 0;
    return count;
  }

  // Chooses the best of all points at a scale.
  HWY_NOINLINE reference::PointChoice choose(float scale) const {
    PointSums<Format, kSums> sums;
    if (!is_usual(scale, scale)) {
      sums.set_all(x_, w_);
      return reference::AllPoints<Format>::choose(sums.xm, sums.mm, scale);
    }
    Nodes<1> node{{scale}, {}, {}, {}};
    std::uint16_t points[kPoints + kLaneStep];
    const int count = find(node, points);
    sums.set(x_, w_, points, count);
    reference::PointChoice choice = least_of(sums.xm, sums.mm, count, scale);
    choice.point = points[choice.point];
    return choice;
  }

 private:
  static constexpr hn::ScalableTag<std::uint8_t> kBytes{};
  using Bytes = hn::Vec<decltype(kBytes)>;
  static constexpr int kBytesStep = 4 * kLaneStep;
  // Part of the greatest terms; each of the sums and products that are compared is rounded by at most 2^-24 of them.
  static constexpr float kMargin = 0x1p-18f;
  // Beyond these, products of a margin or a term may underflow or overflow.
  static constexpr float kTiny = 0x1p-100f, kHuge = 0x1p100f;
  // Units in the mean of the terms of an entry of each table, so that the sums of good points are some tens of units.
  static constexpr float kUnits = Tables::kInTable == 1 ? 450 : 400;

  // The unit of bytes, and the sum of the least terms.
  struct Unit {
    float inverse, base;

    // Returns the greatest sum that a line with the given value can have.
    Bytes threshold(float line) const {
      const float most = (line - base) * inverse * (1 + 0x1p-12f) + 1;
      return hn::Set(kBytes, most < 255 ? static_cast<std::uint8_t>(most > 0 ? most : 0) : std::uint8_t{255});
    }
  };

  float greatest_at(float scale) const { return scale * greatest_mm_ + 2 * greatest_xm_; }

  // Adds up the bytes of all points at a scale; returns the first point with the least sum.
  HWY_NOINLINE int add_up(float scale, Unit& unit, std::uint8_t* sums) const {
    const Tables& tables = Tables::get();
    alignas(16) std::uint8_t bytes[Tables::kTables][Tables::kEntries];
    make_bytes(scale, unit, bytes);
    Bytes lookups[Tables::kTables];
    for (int table = 0; table < Tables::kTables; ++table) lookups[table] = hn::LoadDup128(kBytes, bytes[table]);
    Bytes least = hn::Set(kBytes, 255);
    for (int at = 0; at < kPoints; at += kBytesStep) {
      const auto of = [&](int table) {
        return hn::TableLookupBytes(lookups[table], hn::Load(kBytes, tables.places[table] + at));
      };
      static_assert(Tables::kTables == 4);
      const Bytes sum = hn::SaturatedAdd(hn::SaturatedAdd(of(0), of(1)), hn::SaturatedAdd(of(2), of(3)));
      hn::Store(sum, kBytes, sums + at);
      least = hn::Min(least, sum);
    }
    alignas(64) std::uint8_t all[kBytesStep];
    hn::Store(least, kBytes, all);
    for (int half = kBytesStep / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) all[i] = std::min(all[i], all[i + half]);
    const Bytes least_of_all = hn::Set(kBytes, all[0]);
    for (int at = 0;; at += kBytesStep) {
      const std::intptr_t found = hn::FindFirstTrue(kBytes, hn::Load(kBytes, sums + at) == least_of_all);
      if (found >= 0) return at + static_cast<int>(found);
    }
  }

  HWY_INLINE void make_bytes(float scale, Unit& unit, std::uint8_t (*bytes)[Tables::kEntries]) const {
    constexpr int kVectors = Tables::kEntries / kLaneStep;
    Floats above[Tables::kTables][kVectors];
    Floats total = floats(0);
    unit.base = least_inverted_;
    for (int table = 0; table < Tables::kTables; ++table) {
      Floats least = floats(HUGE_VALF);
      for (int v = 0; v < kVectors; ++v) {
        const Floats mm = hn::Load(kFloats, mm_[table] + v * kLaneStep);
        above[table][v] = floats(scale) * mm - hn::Load(kFloats, two_xm_[table] + v * kLaneStep);
        least = lesser(above[table][v], least);
      }
      least = hn::MinOfLanes(kFloats, least);
      for (int v = 0; v < kVectors; ++v) {
        above[table][v] = above[table][v] - least;
        total = total + above[table][v];
      }
      unit.base += hn::GetLane(least);
    }
    const float sum = hn::GetLane(hn::SumOfLanes(kFloats, total));
    unit.inverse = sum > kTiny ? kUnits * float{Tables::kEntries} / sum : 0.0f;
    const Floats inverse = floats(unit.inverse * (1 - 0x1p-12f));
    const hn::Rebind<std::uint8_t, decltype(kInts)> narrow{};
    for (int table = 0; table < Tables::kTables; ++table)
      for (int v = 0; v < kVectors; ++v) {
        const Ints rounded = to_ints(lesser(above[table][v] * inverse, floats(255)));
        hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, bytes[table] + v * kLaneStep);
      }
  }

  // The sums of a point, in any order.
  void set_sums(int point, float& xm, float& mm) const {
    const float* values = Tables::get().values[point];
    float least = FLT_MAX;
    xm = mm = 0;
    for (int i = 0; i < Tables::kDims; ++i) {
      const float wm = w_[i] * values[i], term = wm * (is_shifted(kSums) ? x_[i] : std::fabs(x_[i]));
      xm += term;
      mm += wm * values[i];
      least = term < least ? term : least;
    }
    if (kSums == BookSums::kInverted) xm -= 2 * least;
  }

  const float* x_;
  const float* w_;
  float greatest_xm_, greatest_mm_, least_inverted_;
  alignas(64) float two_xm_[Tables::kTables][Tables::kEntries], mm_[Tables::kTables][Tables::kEntries];
};

// The likely points of the groups of a super-block.
template <class Format, BookSums kSums>
class LikelyLines {
 public:
  // Keeps the pointers. `is_needed(group)` says for which groups points are to be found.
  template <class IsNeeded>
  LikelyLines(const float* x, const float* w, const IsNeeded& is_needed) : x_(x), w_(w) {
    for (int sub = 0; sub < Shape::kSubs; ++sub) {
      const float most = Shape::most_in(x + sub * Format::kSubBlock);
      low_[sub] = most / (Shape::top() * kHighest);
      high_[sub] = most / (Shape::top() * kLowest);
      Nodes nodes;
      if (low_[sub] > 0) set_scales(low_[sub], high_[sub], nodes);
      for (int group = sub * Shape::kGroups; group < (sub + 1) * Shape::kGroups; ++group)
        if (is_needed(group)) find_likely(group, low_[sub], high_[sub], nodes);
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
  using Coarse = CoarseGroup<Format, kSums>;
  using Some = PointSums<Format, kSums>;
  static constexpr int kPoints = Shape::kPoints, kStep = kLaneStep;
  static constexpr int kNodes = 4;                            // the ends of the intervals
  static constexpr int kMostLikely = std::min(kPoints, 256);  // of a group, on average
  // The usual scales give the greatest value these parts of the top.
  static constexpr float kLowest = is_shifted(kSums) ? 0.5f : 0.55f, kHighest = is_shifted(kSums) ? 2.6f : 1.4f;
  using Nodes = typename Coarse::template Nodes<kNodes>;

  // A point's line at a node.
  static Floats line_at(float scale, Floats xm, Floats mm) { return floats(scale) * mm - floats(2) * xm; }

  reference::PointChoice choose_of_all(int group, float scale) const {
    Coarse coarse;
    coarse.set(x_ + group * Shape::kDims, w_ + group * Shape::kDims);
    return coarse.choose(scale);
  }

  static void set_scales(float low, float high, Nodes& nodes) {
    const float factor = std::pow(high / low, 1.0f / static_cast<float>(kNodes - 1));
    nodes.scales[0] = low;
    for (int k = 1; k + 1 < kNodes; ++k) nodes.scales[k] = nodes.scales[k - 1] * factor;
    nodes.scales[kNodes - 1] = high;
  }

  void find_likely(int group, float low, float high, Nodes& nodes) {
    counts_[group] = 0;
    firsts_[group] = end_;
    const float* const x = x_ + group * Shape::kDims;
    const float* const w = w_ + group * Shape::kDims;
    Coarse coarse;
    coarse.set(x, w);
    if (!coarse.is_usual(low, high)) return;
    std::uint16_t points[kPoints + kStep];
    const int count = coarse.find(nodes, points);
    Some sums;
    sums.set(x, w, points, count);
    Floats own[kNodes], of_next[kNodes], of_last[kNodes];
    for (int k = 0; k < kNodes; ++k) {
      own[k] = floats(nodes.bound(k, k));
      if (k + 1 < kNodes) of_next[k] = floats(nodes.bound(k + 1, k));
      if (k > 0) of_last[k] = floats(nodes.bound(k - 1, k));
    }
    int end = end_;
    for (int i = 0; i < count; i += kStep) {
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
      if (end + 2 * kStep > kMax) return;  // too many: the group has none
      const Mask kept = hn::Not(worse);
      hn::StoreU(hn::Compress(xm, kept), kFloats, xm_ + end);
      hn::StoreU(hn::Compress(mm, kept), kFloats, mm_ + end);
      const Ints numbers = hn::PromoteTo(kInts, hn::LoadU(hn::Rebind<std::uint16_t, decltype(kInts)>(), points + i));
      hn::StoreU(hn::Compress(numbers, hn::RebindMask(kInts, kept)), kInts, points_ + end);
      end += static_cast<int>(hn::CountTrue(kFloats, kept));
    }
    hn::StoreU(floats(0), kFloats, xm_ + end);
    hn::StoreU(floats(HUGE_VALF), kFloats, mm_ + end);
    counts_[group] = end - firsts_[group];
    end_ = end + kStep;  // the last vector of a group is full: it ends with infinite errors
  }

  static constexpr int kMax = Shape::kAllGroups * (kMostLikely + kStep);

  const float* x_;
  const float* w_;
  // The likely points of all groups, in order.
  float xm_[kMax], mm_[kMax];
  std::int32_t points_[kMax];
  int end_ = 0;
  int firsts_[Shape::kAllGroups], counts_[Shape::kAllGroups];  // a count of 0: any point may be the best
  float low_[Shape::kSubs], high_[Shape::kSubs];
};

// The points of the groups of one sub-block, for searches that look at each sub-block once, at a few scales. The sums
// of small books are computed for all points.
template <class Format, BookSums kSums>
class AllLines {
 public:
  // Keeps the pointers.
  template <class IsNeeded>
  AllLines(const float* x, const float* w, const IsNeeded&) : x_(x), w_(w) {}

  // Must be called before points of a sub-block are chosen at scales from `low` to `high`.
  template <class IsNeeded>
  void turn_to(int sub, float low, float high, const IsNeeded& is_needed) {
    for (int i = 0; i < Shape::kGroups; ++i)
      if (is_needed(sub * Shape::kGroups + i)) groups_[i].set(sub * Shape::kGroups + i, low, high, x_, w_);
  }

  // Chooses the best of all points.
  reference::PointChoice choose(int group, float scale) const { return groups_[group % Shape::kGroups].choose(scale); }

 private:
  using Shape = reference::BookShape<Format>;
  static constexpr bool kIsSmall = Shape::kPoints * Shape::kDims <= 2048;

  // The points that can be the best at the scales, or all of them.
  struct Group {
    CoarseGroup<Format, kSums> coarse;
    PointSums<Format, kSums> sums;
    int count;  // 0: the sums are not computed
    std::uint16_t points[kIsSmall ? 1 : Shape::kPoints + kLaneStep];

    void set(int group, float low, float high, const float* all_x, const float* all_w) {
      const float* const x = all_x + group * Shape::kDims;
      const float* const w = all_w + group * Shape::kDims;
      coarse.set(x, w);
      count = 0;
      if (!coarse.is_usual(low, high)) return;
      if constexpr (kIsSmall) {
        sums.set_all(x, w);
        count = Shape::kPoints;
      } else {
        typename CoarseGroup<Format, kSums>::template Nodes<2> nodes{{low, high}, {}, {}, {}};
        count = coarse.find(nodes, points);
        sums.set(x, w, points, count);
      }
    }

    reference::PointChoice choose(float scale) const {
      if (count == 0) return coarse.choose(scale);
      reference::PointChoice choice = least_of(sums.xm, sums.mm, count, scale);
      if constexpr (!kIsSmall) choice.point = points[choice.point];
      return choice;
    }
  };

  const float* x_;
  const float* w_;
  Group groups_[Shape::kGroups];
};

// The classes that choose are made of LikelyLines, or of AllLines.

inline constexpr auto kEveryGroup = [](int) { return true; };

// Chooses as reference::AllPoints does.
template <class Format, template <class, BookSums> class Lines>
class PlainPoints {
 public:
  // Keeps the pointers.
  PlainPoints(const float* x, const float* w) : lines_(x, w, kEveryGroup) {}

  void turn_to(int sub, float low, float high) requires requires(Lines<Format, BookSums::kAsGiven>& lines) {
    lines.turn_to(0, low, high, kEveryGroup);
  }
  { lines_.turn_to(sub, low, high, kEveryGroup); }

  void choose(int sub, float scale, reference::PointChoice* choices) const {
    for (int i = 0; i < kGroups; ++i) choices[i] = lines_.choose(sub * kGroups + i, scale);
  }

 private:
  static constexpr int kGroups = reference::BookShape<Format>::kGroups;
  Lines<Format, BookSums::kAsGiven> lines_;
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
template <class Format, template <class, BookSums> class Lines>
class PairedPoints {
 public:
  static constexpr int kGroupsOfEight = OddEights<Format>::kGroupsOfEight;
  static bool has_odd_signs(const float* x) { return reference::EvenPoints<Format>::has_odd_signs(x); }

  // Keeps the pointers.
  PairedPoints(const float* x, const float* w)
      : odd_(x),
        as_given_(x, w, [this](int group) { return odd_.leaves(group); }),
        inverted_(x, w, [this](int group) { return odd_.has(group); }) {}

  void turn_to(int sub, float low, float high) requires requires(Lines<Format, BookSums::kAsGiven>& lines) {
    lines.turn_to(0, low, high, kEveryGroup);
  }
  {
    as_given_.turn_to(sub, low, high, [this](int group) { return odd_.leaves(group); });
    inverted_.turn_to(sub, low, high, [this](int group) { return odd_.has(group); });
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
  Lines<Format, BookSums::kAsGiven> as_given_;
  Lines<Format, BookSums::kInverted> inverted_;
};

// Chooses as reference::ShiftedPoints does.
template <class Format, template <class, BookSums> class Lines>
class MovedPoints {
 public:
  // Keeps the pointers.
  MovedPoints(const float* x, const float* w) : up_(x, w, kEveryGroup), down_(x, w, kEveryGroup) {}

  void turn_to(int sub, float low, float high) requires requires(Lines<Format, BookSums::kUp>& lines) {
    lines.turn_to(0, low, high, kEveryGroup);
  }
  {
    up_.turn_to(sub, low, high, kEveryGroup);
    down_.turn_to(sub, low, high, kEveryGroup);
  }

  void choose(int sub, float scale, reference::PointChoice* choices) const {
    reference::choose_shifted<Format>(sub, choices, [&](int group, int shift) {
      return shift == 0 ? up_.choose(group, scale) : down_.choose(group, scale);
    });
  }

 private:
  Lines<Format, BookSums::kUp> up_;
  Lines<Format, BookSums::kDown> down_;
};

}  // namespace ggufmill::simd
