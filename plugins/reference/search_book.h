#pragma once
// The search for types with a code book of magnitudes and free signs (iq_format.h): x ~ d * factor(scale) * sign *
// magnitude, where the magnitudes of a group are a point of the book; and for those with a book of values that are
// shifted up or down (search_iq1.h): x ~ d * factor(scale) * (value + shift).
//
// The sums of w |x| m and w m m of a group with all points are computed once. The error of a group at any scale s is
// that of zeros plus s (s * sum(w m m) - 2 sum(w |x| m)), so the best point is found by looking at all of them. First
// the best scale of any size is found for each sub-block; then codes near what d, from several starts, makes of it are
// tried, with the points chosen again for each; for the codes and points found, d is that of least squared error, and
// so on for some rounds or until nothing improves. Where the eighth sign follows from seven others, each eight values
// with an odd number of negative ones have one sign inverted: that of the value for which it costs least, with the
// points chosen for this cost. The least effort guesses the scales without the book, and chooses points for a single d,
// which is then that of least squared error for them. Sums are in element order, without fused operations. All
// arithmetic is in F32, but for the sums over the sub-blocks.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "plugins/reference/fit.h"
#include "plugins/reference/iq_codec.h"
#include "plugins/reference/search_parts.h"

namespace ggufmill::reference {

// The range of tops: the points that the greatest value is first given.
struct PartRange {
  float first, across;
};

struct BookEffort {
  int scales;  // first scales tried for a sub-block
  int starts;  // of d
  int rounds;  // of codes and points, then d
};
inline constexpr BookEffort kBookEfforts[] = {{4, 1, 1}, {5, 2, 2}, {16, 6, 4}};
inline constexpr std::uint32_t kQuickEffort = 1;

// Numbers of a code book. A format whose scales have other than four bits has a `kMaxCode`, one with another range of
// first scales a `kParts`.
template <class Format>
struct BookShape {
  static constexpr int kDims = static_cast<int>(std::tuple_size_v<std::remove_cvref_t<decltype(Format::kBook[0])>>);
  static constexpr int kPoints = static_cast<int>(std::tuple_size_v<std::remove_cvref_t<decltype(Format::kBook)>>);
  static constexpr int kSuper = 256;
  static constexpr int kSubs = kSuper / Format::kSubBlock;
  static constexpr int kGroups = Format::kSubBlock / kDims;  // of a sub-block
  static constexpr int kAllGroups = kSuper / kDims;
  static constexpr int kMaxCode = [] {
    if constexpr (requires { Format::kMaxCode; }) return Format::kMaxCode;
    return 15;
  }();
  static constexpr PartRange kParts = [] {
    if constexpr (requires { Format::kParts; }) return Format::kParts;
    return PartRange{0.6f, 0.6f};
  }();

  static constexpr int kLevels = std::remove_cvref_t<decltype(Format::lattice())>::SpaceType::kLevels;

  static float magnitude(int point, int i) { return Format::kMagnitudes[Format::kBook[point][i]]; }
  static float top() { return Format::kMagnitudes[kLevels - 1]; }
  static float most_in(const float* x) {
    float most = 0;
    for (int i = 0; i < Format::kSubBlock; ++i) most = std::fabs(x[i]) > most ? std::fabs(x[i]) : most;
    return most;
  }
};

// The point chosen for a group, and its sums; `error` is relative to zeros.
struct PointChoice {
  float error, xm, mm;
  int point;
};

// Chooses the best points of the groups of a super-block by looking at all of them.
template <class Format>
class AllPoints {
 public:
  AllPoints(const float* x, const float* w) {
    for (int group = 0; group < Shape::kAllGroups; ++group)
      for (int point = 0; point < kPoints; ++point) {
        float xm = 0, mm = 0;
        for (int i = 0; i < Shape::kDims; ++i) {
          const float m = Shape::magnitude(point, i), wm = w[group * Shape::kDims + i] * m;
          xm += wm * std::fabs(x[group * Shape::kDims + i]);
          mm += wm * m;
        }
        xm_[group][point] = xm;
        mm_[group][point] = mm;
      }
  }

  // Chooses the points of the groups of a sub-block.
  void choose(int sub, float scale, PointChoice* choices) const {
    for (int i = 0; i < Shape::kGroups; ++i) {
      const int group = sub * Shape::kGroups + i;
      choices[i] = choose(xm_[group], mm_[group], scale);
    }
  }

  // Chooses the point with the least error for the sums of all points; of equal ones, the first.

  static PointChoice choose(const float* xm, const float* mm, float scale) {
    float errors[kPoints];
    for (int point = 0; point < kPoints; ++point) errors[point] = scale * (scale * mm[point] - 2 * xm[point]);
    const int best = least_of(errors);
    return {errors[best], xm[best], mm[best], best};
  }

 private:
  using Shape = BookShape<Format>;
  static constexpr int kPoints = Shape::kPoints;

  // Returns the first of the least.
  static int least_of(const float* errors) {
    constexpr int kLanes = 16;
    float least[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) least[lane] = errors[lane];
    for (int at = kLanes; at < kPoints; at += kLanes)
      for (int lane = 0; lane < kLanes; ++lane)
        least[lane] = errors[at + lane] < least[lane] ? errors[at + lane] : least[lane];
    float all = least[0];
    for (int lane = 1; lane < kLanes; ++lane) all = least[lane] < all ? least[lane] : all;
    int first = kPoints - 1;
    for (int point = 0; point < kPoints; ++point) {
      const int found = errors[point] == all ? point : kPoints - 1;
      first = found < first ? found : first;
    }
    return first;
  }

  float xm_[Shape::kAllGroups][kPoints], mm_[Shape::kAllGroups][kPoints];
};

// Chooses the points of the groups of eight values: `as_given(i)` returns the choice for group i, `inverted(i)` that
// with one sign inverted, which one of the groups must have if the number of negative values is odd.
template <int kGroupsOfEight, class AsGiven, class Inverted>
inline void choose_even(bool is_odd, PointChoice* choices, const AsGiven& as_given, const Inverted& inverted) {
  if (kGroupsOfEight == 1 && is_odd) {
    choices[0] = inverted(0);
    return;
  }
  for (int i = 0; i < kGroupsOfEight; ++i) choices[i] = as_given(i);
  if (!is_odd) return;
  PointChoice best{};
  float least = FLT_MAX;
  int chosen = 0;
  for (int i = 0; i < kGroupsOfEight; ++i) {
    const PointChoice choice = inverted(i);
    const float more = choice.error - choices[i].error;
    if (i != 0 && !(more < least)) continue;
    least = more;
    best = choice;
    chosen = i;
  }
  choices[chosen] = best;
}

// Chooses the best points of the groups of a super-block where only an even number of eight values can be negative.
template <class Format>
class EvenPoints {
 public:
  static constexpr int kGroupsOfEight = 8 / BookShape<Format>::kDims;

  EvenPoints(const float* x, const float* w) {
    for (int eight = 0; eight < Shape::kSuper / 8; ++eight) is_odd_[eight] = has_odd_signs(x + eight * 8);
    for (int group = 0; group < Shape::kAllGroups; ++group)
      for (int point = 0; point < Shape::kPoints; ++point) {
        float xm = 0, mm = 0, least = FLT_MAX;
        for (int i = 0; i < Shape::kDims; ++i) {
          const int at = group * Shape::kDims + i;
          const float m = Shape::magnitude(point, i), wm = w[at] * m, wxm = wm * std::fabs(x[at]);
          xm += wxm;
          mm += wm * m;
          least = wxm < least ? wxm : least;
        }
        xm_[group][point] = xm;
        mm_[group][point] = mm;
        inverted_[group][point] = xm - 2 * least;
      }
  }

  // Chooses the points of the groups of a sub-block.
  void choose(int sub, float scale, PointChoice* choices) const {
    const auto of = [&](const auto& sums, int group) {
      return AllPoints<Format>::choose(sums[group], mm_[group], scale);
    };
    for (int i = 0; i < Shape::kGroups; i += kGroupsOfEight) {
      const int first = sub * Shape::kGroups + i;
      choose_even<kGroupsOfEight>(
          is_odd_[first / kGroupsOfEight], choices + i, [&](int at) { return of(xm_, first + at); },
          [&](int at) { return of(inverted_, first + at); });
    }
  }

  static bool has_odd_signs(const float* x) {
    bool is_odd = false;
    for (int i = 0; i < 8; ++i) is_odd ^= x[i] < 0;
    return is_odd;
  }

 private:
  using Shape = BookShape<Format>;

  bool is_odd_[Shape::kSuper / 8];
  float xm_[Shape::kAllGroups][Shape::kPoints], mm_[Shape::kAllGroups][Shape::kPoints];
  float inverted_[Shape::kAllGroups][Shape::kPoints];  // xm with the least of its terms negative
};

// `Points` chooses as AllPoints does, as EvenPoints, or as ShiftedPoints. If it has turn_to(sub, low, high), this is
// called before points of another sub-block are chosen, with the least and the greatest of their scales. `kIsQuick` is
// for kQuickEffort.
template <class Format, class Points, bool kIsQuick>
class BookSearch {
 public:
  using Block = typename Format::Block;

  // Returns false if nothing is better than zeros.
  static bool search(const float* x, const float* weights, std::uint32_t effort, Block& block) {
    const double zeros = weighted_square(x, weights, Shape::kSuper);
    if (zeros == 0 || !(zeros <= DBL_MAX)) return false;
    BookSearch found(x, weights, kBookEfforts[effort - 1]);
    if (found.best_d_ == 0) return false;
    found.put(x, weights, block);
    return true;
  }

 private:
  using Shape = BookShape<Format>;
  static constexpr int kSubs = Shape::kSubs, kGroups = Shape::kGroups;
  static constexpr int kMaxCode = Shape::kMaxCode;
  static constexpr float kMaxHalf = 65504;

  // Sums over a sub-block, for the points chosen; `error` is relative to zeros.
  struct Sums {
    float error = 0, xm = 0, mm = 0;
    int points[kGroups] = {};
  };

  BookSearch(const float* x, const float* w, const BookEffort& effort) : points_of_(x, w) {
    float greatest = 0;
    for (int sub = 0; sub < kSubs; ++sub) {
      scales_[sub] = best_scale(sub, x + sub * Format::kSubBlock, w + sub * Format::kSubBlock, effort);
      greatest = scales_[sub] > greatest ? scales_[sub] : greatest;
    }
    if (greatest == 0) return;
    const float top = Format::scale(1, kMaxCode), step = Format::scale(1, 1) - Format::scale(1, 0);
    if constexpr (kIsQuick) {
      descend(as_half(greatest / top), effort.rounds);
      return;
    }
    for (int i = 0; i < effort.starts; ++i)
      descend(as_half(greatest / (top + 0.5f * step * static_cast<float>(1 - i))), effort.rounds);
  }

  // Chooses the points of a sub-block at a scale.
  Sums choose(int sub, float scale) const {
    PointChoice choices[kGroups];
    points_of_.choose(sub, scale, choices);
    Sums sums;
    for (int i = 0; i < kGroups; ++i) {
      sums.error += choices[i].error;
      sums.xm += choices[i].xm;
      sums.mm += choices[i].mm;
      sums.points[i] = choices[i].point;
    }
    return sums;
  }

  float best_scale(int sub, const float* x, [[maybe_unused]] const float* w, const BookEffort& effort) const {
    const float most = Shape::most_in(x), top = Shape::top();
    if (!(most >= kZeroGroup)) return 0;
    float best = 0, least = 0;
    for (int k = 0; k < effort.scales; ++k) {
      const float part =
          Shape::kParts.first + Shape::kParts.across * static_cast<float>(k) / static_cast<float>(effort.scales - 1);
      Sums sums;
      if constexpr (kIsQuick) {
        sums = choose_freely(x, w, most / (top * part));
      } else {
        sums = choose(sub, most / (top * part));
        if (sums.mm > 0 && sums.xm > 0) sums = choose(sub, sums.xm / sums.mm);
      }
      if (!(sums.mm > 0) || !(sums.xm > 0)) continue;
      const float scale = sums.xm / sums.mm, error = -sums.xm * scale;
      if (error < least) least = error, best = scale;
    }
    return best;
  }

  // Computes the sums for the nearest magnitudes, or unshifted values, whether or not the book has such points.
  static Sums choose_freely(const float* x, const float* w, float scale) {
    constexpr int kCount = Format::kSubBlock;
    constexpr bool kHasSigns = requires { Format::kEvenSigns; };
    const float inverse = inverse_of(scale);
    float sizes[kCount], nearest[kCount];
    for (int i = 0; i < kCount; ++i) sizes[i] = kHasSigns ? std::fabs(x[i]) : x[i];
    for (int i = 0; i < kCount; ++i) nearest[i] = static_cast<float>(Format::kMagnitudes[0]);
    for (int level = 1; level < Shape::kLevels; ++level) {
      const auto below = static_cast<float>(Format::kMagnitudes[level - 1]);
      const auto above = static_cast<float>(Format::kMagnitudes[level]);
      for (int i = 0; i < kCount; ++i) nearest[i] = sizes[i] * inverse >= 0.5f * (below + above) ? above : nearest[i];
    }
    Sums sums;
    for (int i = 0; i < kCount; ++i) {
      const float wm = w[i] * nearest[i];
      sums.xm += wm * sizes[i];
      sums.mm += wm * nearest[i];
    }
    return sums;
  }

  // The codes and points of the sub-blocks at a d, and sums for them.
  struct Round {
    int codes[kSubs], points[kSubs][kGroups];
    double total = 0, xm = 0, mm = 0;
  };

  // Chooses codes and points at a d; false if there are none.
  bool choose_codes(float d, Round& round) {
    const auto scale_of = [&](int code) { return Format::scale(d, static_cast<unsigned>(code)); };
    for (int sub = 0; sub < kSubs; ++sub) {
      const float step = Format::scale(1, 1) - Format::scale(1, 0);
      const int middle = nearest_code((scales_[sub] / d - Format::scale(1, 0)) / step, 0, kMaxCode);
      if constexpr (requires { points_of_.turn_to(sub, 1.0f, 1.0f); })
        points_of_.turn_to(sub, scale_of(middle > 0 ? middle - 1 : 0),
                           scale_of(middle < kMaxCode ? middle + 1 : middle));
      Sums best;
      best.error = FLT_MAX;
      round.codes[sub] = 0;
      for (int code = middle - 1; code <= middle + 1; ++code) {
        if (code < 0 || code > kMaxCode) continue;
        const Sums sums = choose(sub, scale_of(code));
        if (!(sums.error < best.error)) continue;
        best = sums;
        round.codes[sub] = code;
      }
      if (!(best.error < FLT_MAX)) return false;
      const double factor = Format::scale(1, static_cast<unsigned>(round.codes[sub]));
      round.total += double{best.error};
      round.xm += factor * double{best.xm};
      round.mm += factor * factor * double{best.mm};
      for (int i = 0; i < kGroups; ++i) round.points[sub][i] = best.points[i];
    }
    return true;
  }

  void keep(float d, double error, const Round& round) {
    error_ = error;
    best_d_ = d;
    for (int sub = 0; sub < kSubs; ++sub) {
      codes_[sub] = round.codes[sub];
      for (int i = 0; i < kGroups; ++i) points_[sub][i] = round.points[sub][i];
    }
  }

  static bool is_usable(float d) { return d > 0 && d <= kMaxHalf; }

  void descend(float d, int rounds) {
    double before = DBL_MAX;
    for (int turn = 0; turn < rounds; ++turn) {
      Round round;
      if (!is_usable(d) || !choose_codes(d, round)) return;
      if (round.total < error_) keep(d, round.total, round);
      if (!(round.total < before) || !(round.mm > 0)) return;
      before = round.total;
      const float next = as_half(static_cast<float>(round.xm / round.mm));
      const double error = double{next} * (double{next} * round.mm - 2 * round.xm);
      if (is_usable(next) && error < error_) keep(next, error, round);
      if (next == d) return;
      d = next;
    }
  }

  // Returns the signs of eight values as they are stored.
  unsigned signs_of(int eight, const float* x, const float* w) const {
    unsigned signs = 0;
    for (int i = 0; i < 8; ++i) signs |= (x[i] < 0 ? 1u : 0u) << i;
    if constexpr (Format::kEvenSigns) {
      if (Points::has_odd_signs(x)) {
        int inverted = 0;
        float least = FLT_MAX;
        for (int i = 0; i < 8; ++i) {
          const int at = eight * 8 + i, group = at / Shape::kDims;
          const float cost =
              w[i] * Shape::magnitude(points_[group / kGroups][group % kGroups], at % Shape::kDims) * std::fabs(x[i]);
          if (cost < least) least = cost, inverted = i;
        }
        signs ^= 1u << inverted;
      }
      signs &= 127;
    }
    return signs;
  }

  void put(const float* x, const float* w, Block& block) const {
    block = {};
    if constexpr (requires { Format::put_d(block, best_d_); })
      Format::put_d(block, best_d_);
    else
      block.d.store(best_d_);
    for (int sub = 0; sub < kSubs; ++sub) {
      Format::put_scale(block, sub, static_cast<unsigned>(codes_[sub]));
      for (int i = 0; i < kGroups; ++i)
        Format::put_index(block, sub * kGroups + i, static_cast<unsigned>(points_[sub][i]));
    }
    if constexpr (requires { Format::kEvenSigns; })
      for (int eight = 0; eight < Shape::kSuper / 8; ++eight)
        Format::put_signs(block, eight, signs_of(eight, x + eight * 8, w + eight * 8));
  }

  Points points_of_;
  float scales_[kSubs];
  double error_ = 0;  // relative to zeros
  float best_d_ = 0;
  int codes_[kSubs] = {}, points_[kSubs][kGroups] = {};
};

}  // namespace ggufmill::reference
