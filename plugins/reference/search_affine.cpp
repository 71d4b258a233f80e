#include "plugins/reference/search_affine.h"

#include <cfloat>
#include <cmath>

#include "plugins/reference/fit.h"
#include "plugins/reference/search_parts.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {
namespace {

constexpr int kSuper = 256;
// Sums over a group, for levels q: of the squared error, and of w q, w q q and w q x.
struct LineSums {
  float error = 0, q = 0, qq = 0, qx = 0;
};

// Levels of x ~ scale * q - minimum, and their sums.
template <int kGroup>
LineSums sums_of_line(const float* x, const float* w, float scale, float minimum, float limit) {
  const float inverse = inverse_of(scale);
  float q[kGroup], e[kGroup];
  for (int i = 0; i < kGroup; ++i) {
    const float above = x[i] + minimum;
    q[i] = nearest_within(above * inverse, 0, limit);
    e[i] = above - scale * q[i];
  }
  float wee[kGroup], wq[kGroup], wqq[kGroup], wqx[kGroup];
  for (int i = 0; i < kGroup; ++i) {
    wee[i] = w[i] * e[i] * e[i];
    wq[i] = w[i] * q[i];
    wqq[i] = wq[i] * q[i];
    wqx[i] = wq[i] * x[i];
  }
  LineSums sums;
  for (int i = 0; i < kGroup; ++i) {
    sums.error += wee[i];
    sums.q += wq[i];
    sums.qq += wqq[i];
    sums.qx += wqx[i];
  }
  return sums;
}

LineSums sums_of(int group, const float* x, const float* w, float scale, float minimum, float limit) {
  return group == 16 ? sums_of_line<16>(x, w, scale, minimum, limit) : sums_of_line<32>(x, w, scale, minimum, limit);
}

struct LineCandidate {
  float scale = 0, minimum = 0, mean_level = 0, error = 0;
  bool is_like(const LineCandidate& other) const {
    const float close = 1e-4f * scale;
    return std::fabs(scale - other.scale) < close && std::fabs(minimum - other.minimum) < close;
  }
};
using BestLines = Best<LineCandidate, 2>;

// A group of values, with what depends only on them.
struct LineGroup {
  const float* x;
  const float* w;
  int count;
  float low, high;
  float w_sum = 0, wx_sum = 0;

  LineGroup(const float* values, const float* weights, int elements, bool is_below_zero)
      : x(values), w(weights), count(elements), low(is_below_zero ? 0 : values[0]), high(values[0]) {
    for (int i = 0; i < count; ++i) {
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
      w_sum += w[i];
      wx_sum += w[i] * x[i];
    }
  }
  bool is_flat() const { return !(high - low >= kZeroGroup) || !(w_sum > 0); }

  // Improves a line; false if there is none of positive scale. A minimum below zero becomes zero if `clamps`.
  bool improve(LineCandidate& line, float limit, int rounds, bool clamps) const {
    bool is_usable = false;
    for (int round = 0; round < rounds; ++round) {
      const LineSums sums = sums_of(count, x, w, line.scale, line.minimum, limit);
      const float determinant = w_sum * sums.qq - sums.q * sums.q;
      if (!(determinant > 0)) break;
      float scale = (w_sum * sums.qx - wx_sum * sums.q) / determinant;
      float minimum = (sums.q * sums.qx - sums.qq * wx_sum) / determinant;
      if (clamps && minimum < 0) {
        minimum = 0;
        scale = sums.qx / sums.qq;
      }
      if (!(scale > 0)) break;
      is_usable = true;
      const float square = scale * scale * sums.qq + minimum * minimum * w_sum;
      const float cross = scale * sums.qx - minimum * wx_sum + scale * minimum * sums.q;
      line = {scale, minimum, sums.q / w_sum, square - 2 * cross};
    }
    return is_usable;
  }
};

BestLines lines_of(const LineGroup& group, int limit, float first, float across, int tries, int refinements, int kept,
                   bool clamps) {
  BestLines lines(kept);
  const auto most = static_cast<float>(limit);
  for (int k = 0; k < tries; ++k) {
    const float steps = first + across * static_cast<float>(k) / static_cast<float>(tries - 1);
    LineCandidate line;
    line.scale = (group.high - group.low) / steps;
    line.minimum = -group.low;
    if (group.improve(line, most, refinements + 1, clamps)) lines.offer(line);
  }
  if (lines.is_empty()) lines.offer({(group.high - group.low) / most, -group.low, most / 2, 0});
  return lines;
}

// Codes of a group, and the sums for them.
struct GroupCodes {
  int scale = 0, minimum = 0;
  LineSums sums{FLT_MAX};
};

// A super-block.
class AffineProblem {
 public:
  AffineProblem(const AffineFormat& format, const AffineEffort& effort, const float* x, const float* w)
      : format_(format), effort_(effort), x_(x), w_(w), limit_(static_cast<float>(format.limit)) {}

  // Improves `codes`, whose error is `error`. `is_reflected`: x is negated.
  void search(AffineCodes& codes, double& error, bool is_reflected) {
    float most_scale = 0, most_minimum = 0;
    for (int group = 0; group < groups(); ++group) {
      const LineGroup values(x_ + group * format_.group, w_ + group * format_.group, format_.group, true);
      BestLines lines(1);
      if (values.is_flat())
        lines.offer({0, -values.low, 0, 0});
      else
        lines = lines_of(values, format_.limit, format_.first, format_.across, effort_.lines, effort_.refinements,
                         effort_.kept, true);
      w_sums_[group] = values.w_sum;
      wx_sums_[group] = values.wx_sum;
      lines_[group] = lines;
      const LineCandidate& best = *lines.begin();
      most_scale = best.scale > most_scale ? best.scale : most_scale;
      most_minimum = best.minimum > most_minimum ? best.minimum : most_minimum;
    }
    const float code = static_cast<float>(format_.most_code) + 0.4f;
    if (most_scale == 0) most_scale = 1e-12f;  // only minimums
    for (int i = 0; i < effort_.d_starts; ++i)
      for (int j = 0; j < effort_.m_starts; ++j)
        descend(as_half(most_scale / (code - format_.apart * static_cast<float>(i))),
                as_half(most_minimum / (code - format_.apart * static_cast<float>(j))), codes, error, is_reflected);
  }

 private:
  int groups() const { return kSuper / format_.group; }

  LineSums sums(int group, float d, float dmin, int scale, int minimum) const {
    const int at = group * format_.group;
    return sums_of(format_.group, x_ + at, w_ + at, d * static_cast<float>(scale), dmin * static_cast<float>(minimum),
                   limit_);
  }

  int code_of_minimum(float minimum, float dmin) const {
    return dmin > 0 ? nearest_code(minimum / dmin, 0, format_.most_code) : 0;
  }

  // Tries a scale with the minimums that follow from the levels by turns.
  void try_scale(int group, float d, float dmin, int scale, float minimum, GroupCodes& best) const {
    int code = code_of_minimum(minimum, dmin);
    std::uint64_t tried = 0;
    const auto try_code = [&](int each) {
      const LineSums found = sums(group, d, dmin, scale, each);
      tried |= std::uint64_t{1} << each;
      if (found.error < best.sums.error) best = {scale, each, found};
      return found;
    };
    for (int turn = 0; turn < kMinimumTurns && !(tried >> code & 1); ++turn) {
      const LineSums found = try_code(code);
      code = code_of_minimum((d * static_cast<float>(scale) * found.q - wx_sums_[group]) / w_sums_[group], dmin);
    }
    if (!effort_.near_minimums || best.scale != scale) return;
    const int middle = best.minimum;
    for (int each = middle - 1; each <= middle + 1; ++each)
      if (each >= 0 && each <= format_.most_code && !(tried >> each & 1)) try_code(each);
  }

  GroupCodes codes_of(int group, float d, float dmin, const GroupCodes* before) const {
    GroupCodes best;
    if (before) best = {before->scale, before->minimum, sums(group, d, dmin, before->scale, before->minimum)};
    std::uint64_t tried = 0;
    for (const LineCandidate& line : lines_[group]) {
      const int middle = nearest_code(line.scale / d, 0, format_.most_code);
      for (int scale = middle - 1; scale <= middle + 1; ++scale) {
        if (scale < 0 || scale > format_.most_code || (tried >> scale & 1)) continue;
        tried |= std::uint64_t{1} << scale;
        const float minimum = line.minimum + (d * static_cast<float>(scale) - line.scale) * line.mean_level;
        try_scale(group, d, dmin, scale, minimum, best);
      }
    }
    return best;
  }

  void descend(float d, float dmin, AffineCodes& codes, double& error, bool is_reflected) const {
    GroupCodes found[AffineCodes::kMaxGroups];
    double before = DBL_MAX;
    for (int round = 0; round < kAffineRounds; ++round) {
      if (!(d > 0) || !(d <= kMaxHalf) || !(dmin <= kMaxHalf)) return;
      double total = 0;
      for (int group = 0; group < groups(); ++group) {
        found[group] = codes_of(group, d, dmin, round > 0 ? &found[group] : nullptr);
        total += double{found[group].sums.error};
      }
      if (total < error) {
        error = total;
        keep(found, d, dmin, codes, is_reflected);
      }
      if (!(total < before)) return;
      before = total;
      const float d_before = d, dmin_before = dmin;
      if (!fit_scales(found, d, dmin) || (d == d_before && dmin == dmin_before)) return;
    }
  }

  // Computes d and dmin of least squared error for the codes and their levels.
  bool fit_scales(const GroupCodes* found, float& d, float& dmin) const {
    double ss = 0, sm = 0, mm = 0, s = 0, m = 0;
    for (int group = 0; group < groups(); ++group) {
      const GroupCodes& each = found[group];
      const double scale = each.scale, minimum = each.minimum;
      ss += scale * scale * double{each.sums.qq};
      sm += scale * minimum * double{each.sums.q};
      mm += minimum * minimum * double{w_sums_[group]};
      s += scale * double{each.sums.qx};
      m += minimum * double{wx_sums_[group]};
    }
    const double determinant = ss * mm - sm * sm;
    if (mm > 0 && determinant > 1e-12 * ss * mm) {
      d = static_cast<float>((s * mm - sm * m) / determinant);
      dmin = static_cast<float>((sm * s - ss * m) / determinant);
    } else if (ss > 0) {
      d = static_cast<float>((s + double{dmin} * sm) / ss);
    } else {
      return false;
    }
    d = as_half(d);
    dmin = as_half(dmin > 0 ? dmin : 0);
    return true;
  }

  void keep(const GroupCodes* found, float d, float dmin, AffineCodes& codes, bool is_reflected) const {
    codes.d = is_reflected ? -d : d;
    codes.dmin = is_reflected ? -dmin : dmin;
    for (int group = 0; group < groups(); ++group) {
      codes.scales[group] = static_cast<std::uint8_t>(found[group].scale);
      codes.minimums[group] = static_cast<std::uint8_t>(found[group].minimum);
    }
  }

  static constexpr float kMaxHalf = 65504;

  const AffineFormat& format_;
  const AffineEffort& effort_;
  const float* x_;
  const float* w_;
  const float limit_;
  BestLines lines_[AffineCodes::kMaxGroups];
  float w_sums_[AffineCodes::kMaxGroups], wx_sums_[AffineCodes::kMaxGroups];
};

// Sets the levels that are nearest with the scales and minimums of `codes`.
void put_levels(const AffineFormat& format, const float* x, AffineCodes& codes) {
  for (int group = 0; group < kSuper / format.group; ++group) {
    const float inverse = inverse_of(codes.d * static_cast<float>(codes.scales[group]));
    const float minimum = codes.dmin * static_cast<float>(codes.minimums[group]);
    for (int i = group * format.group; i < (group + 1) * format.group; ++i)
      codes.levels[i] = static_cast<std::uint8_t>(nearest_code((x[i] + minimum) * inverse, 0, format.limit));
  }
}

// Sets the levels, up to `limit`, that are nearest with the scale and minimum of `codes`.
void put_levels(int limit, const float* x, LineCodes& codes) {
  const float inverse = inverse_of(codes.d);
  for (int i = 0; i < kInLine; ++i)
    codes.levels[i] = static_cast<std::uint8_t>(nearest_code((x[i] - codes.m) * inverse, 0, limit));
}

}  // namespace

bool search_affine(const AffineFormat& format, const float* x, const float* weights, std::uint32_t effort,
                   AffineCodes& codes) {
  const AffineEffort& tried = kAffineEfforts[effort - 1];
  codes = {};
  double error = weighted_square(x, weights, kSuper);
  if (error == 0) return sum_of_squares(x, kSuper) == 0;
  AffineProblem(format, tried, x, weights).search(codes, error, false);
  if (tried.reflects) {
    float negated[kSuper];
    for (int i = 0; i < kSuper; ++i) negated[i] = -x[i];
    AffineProblem(format, tried, negated, weights).search(codes, error, true);
  }
  put_levels(format, x, codes);
  return codes.d != 0 || codes.dmin != 0;
}

bool search_line(int limit, const float* x, const float* weights, std::uint32_t effort, LineCodes& codes) {
  const AffineEffort& tried = kAffineEfforts[effort - 1];
  const auto most = static_cast<float>(limit);
  codes = {};
  const LineGroup group(x, weights, kInLine, false);
  if (group.is_flat()) {
    codes.m = as_half(x[0]);
    return group.high - group.low < kZeroGroup && std::isfinite(codes.m);
  }
  float least = FLT_MAX;
  for (const LineCandidate& line : lines_of(group, limit, most - 1.0f, kLineAcross, tried.lines_alone,
                                            tried.refinements_alone, kLinesKept, false)) {
    const float d = as_half(line.scale), m = as_half(line.minimum);
    const LineSums sums = sums_of(kInLine, x, weights, d, m, most);
    if (!std::isfinite(d) || !std::isfinite(m) || !(sums.error < least)) continue;
    least = sums.error;
    codes.d = d;
    codes.m = -m;
  }
  put_levels(limit, x, codes);
  return least < FLT_MAX;
}

}  // namespace ggufmill::reference
