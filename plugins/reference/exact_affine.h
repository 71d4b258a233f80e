#pragma once
// Exact blocks of types with a scale and a minimum: x = d * level + m for 32 values, and the super-blocks of Q4_K and
// Q5_K, x = d * scale * level - dmin * minimum. Differences of values are computed in doubles, where they are exact on
// a lattice; a result is verified with the arithmetic of decoding.

#include <cmath>
#include <cstdint>
#include <limits>

#include "plugins/abi/ggufmill_lattice.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/search_affine.h"
#include "plugins/reference/search_parts.h"
#include "plugins/reference/simple_types.h"

namespace ggufmill::reference {

struct ValueRange {
  double least, most;
  static ValueRange of(const float* x, int count) {
    float least = x[0], most = x[0];
    for (int i = 1; i < count; ++i) {
      least = x[i] < least ? x[i] : least;
      most = x[i] > most ? x[i] : most;
    }
    return {double{least}, double{most}};
  }
  double width() const { return most - least; }
};

// Returns `value` as a half, or NaN if it is not exactly one.
inline float exact_half(double value) {
  const auto narrow = static_cast<float>(value);
  const float half = as_half(narrow);
  return double{half} == value && std::isfinite(half) ? half : std::numeric_limits<float>::quiet_NaN();
}

// Types with 32 values: `kLimit` is the greatest level.
template <class CodecType, int kLimit>
class ExactLine {
 public:
  using Codec = CodecType;

  static std::int32_t find(const float* x, typename Codec::Block& block) {
    const ValueRange range = ValueRange::of(x, kInLine);
    LineCodes codes;
    if (range.width() == 0) {
      codes.m = exact_half(range.least);
      if (std::isnan(codes.m)) return GGUFMILL_LATTICE_NONE;
      Codec::pack(0, codes.m, codes.levels, block);
      return GGUFMILL_LATTICE_EXACT;
    }
    // The values take `levels` + 1 levels, the lowest of which is `first`.
    for (int levels = kLimit; levels > 0; --levels) {
      codes.d = exact_half(range.width() / levels);
      if (std::isnan(codes.d) || double{codes.d} * levels != range.width()) continue;
      for (int first = 0; first <= kLimit - levels; ++first) {
        codes.m = exact_half(range.least - double{codes.d} * first);
        if (std::isnan(codes.m) || !is_exact(x, codes)) continue;
        Codec::pack(codes.d, codes.m, codes.levels, block);
        return GGUFMILL_LATTICE_EXACT;
      }
    }
    return GGUFMILL_LATTICE_NONE;
  }

 private:
  static bool is_exact(const float* x, LineCodes& codes) {
    for (int i = 0; i < kInLine; ++i) {
      const int level = nearest_code((x[i] - codes.m) / codes.d, 0, kLimit);
      if (static_cast<float>(level) * codes.d + codes.m != x[i]) return false;
      codes.levels[i] = static_cast<std::uint8_t>(level);
    }
    return true;
  }
};

// Types with super-blocks of eight groups: `kLimit` is the greatest level.
template <class CodecType, int kLimit>
class ExactSuperBlock {
 public:
  using Codec = CodecType;

  static std::int32_t find(const float* x, typename Codec::Block& block) {
    ExactSuperBlock found(x);
    if (!found.find_steps() || !found.find_d()) return GGUFMILL_LATTICE_NONE;
    const AffineCodes& codes = found.codes_;
    Codec::pack(codes.d, codes.dmin, codes.scales, codes.minimums, codes.levels, block);
    return GGUFMILL_LATTICE_EXACT;
  }

 private:
  static constexpr int kGroups = 8, kGroup = 32, kMaxCode = 63;

  // A group's values are least + step * level for levels up to `levels`, all of which are whole; 0 levels if the values
  // are all the same.
  struct Step {
    double step;
    int levels;
  };
  struct Group {
    ValueRange range;
    Step steps[kLimit];
    int count = 0;
  };

  explicit ExactSuperBlock(const float* x) : x_(x) {}

  // Finds all steps of every group. Returns false if a group has none.
  bool find_steps() {
    for (int g = 0; g < kGroups; ++g) {
      Group& group = groups_[g];
      const float* x = x_ + g * kGroup;
      group.range = ValueRange::of(x, kGroup);
      const double width = group.range.width();
      if (width == 0) {
        group.steps[group.count++] = {0, 0};
        continue;
      }
      for (int levels = kLimit; levels > 0; --levels)
        if (is_step(x, group.range, width / levels)) group.steps[group.count++] = {width / levels, levels};
      if (group.count == 0) return false;
    }
    return true;
  }

  static bool is_step(const float* x, const ValueRange& range, double step) {
    for (int i = 0; i < kGroup; ++i) {
      const double level = std::nearbyint((double{x[i]} - range.least) / step);
      if (range.least + step * level != double{x[i]}) return false;
    }
    return true;
  }

  // Returns the code with which `unit` gives `value`, or -1. Codes are at most `kMaxCode`.
  static int code_of(double value, double unit) {
    if (value == 0) return 0;
    const double code = value / unit;
    if (!(code >= 1) || !(code <= kMaxCode) || code != std::nearbyint(code)) return -1;
    return unit * code == value ? static_cast<int>(code) : -1;
  }

  // Tries every scale that makes a step of the group with the widest one.
  bool find_d() {
    int widest = 0;
    for (int g = 1; g < kGroups; ++g)
      if (groups_[g].steps[0].step > groups_[widest].steps[0].step) widest = g;
    for (int i = 0; i < groups_[widest].count; ++i) {
      const double step = groups_[widest].steps[i].step;
      if (step == 0) {
        codes_.d = 0;
        return find_dmin();
      }
      for (int code = kMaxCode; code > 0; --code) {
        codes_.d = exact_half(step / code);
        if (std::isnan(codes_.d) || double{codes_.d} * code != step || !all_have_scales()) continue;
        if (find_dmin()) return true;
      }
    }
    return false;
  }

  bool all_have_scales() const {
    for (const Group& group : groups_) {
      bool has = false;
      for (int i = 0; i < group.count; ++i) has |= code_of(group.steps[i].step, double{codes_.d}) >= 0;
      if (!has) return false;
    }
    return true;
  }

  // Calls f(minimum, scale, levels below the least value) for all ways to make a group with d, until it returns true.
  template <class F>
  bool any_minimum(const Group& group, const F& f) const {
    for (int i = 0; i < group.count; ++i) {
      const auto [step, levels] = group.steps[i];
      const int scale = codes_.d == 0 ? 0 : code_of(step, double{codes_.d});
      if (scale < 0) continue;
      for (int first = 0; first <= (scale == 0 ? 0 : kLimit - levels); ++first)
        if (f(step * first - group.range.least, scale)) return true;
    }
    return false;
  }

  // Tries every dmin that makes a minimum of the group with the least value.
  bool find_dmin() {
    int lowest = 0;
    for (int g = 1; g < kGroups; ++g)
      if (std::fabs(groups_[g].range.least) > std::fabs(groups_[lowest].range.least)) lowest = g;
    return any_minimum(groups_[lowest], [&](double minimum, int) {
      if (minimum == 0) {
        codes_.dmin = 0;
        return put_all();
      }
      for (int code = kMaxCode; code > 0; --code) {
        codes_.dmin = exact_half(minimum / code);
        if (!std::isnan(codes_.dmin) && double{codes_.dmin} * code == minimum && put_all()) return true;
      }
      return false;
    });
  }

  bool put_all() {
    for (int g = 0; g < kGroups; ++g) {
      const bool fits = any_minimum(groups_[g], [&](double minimum, int scale) {
        const int code = codes_.dmin == 0 ? (minimum == 0 ? 0 : -1) : code_of(minimum, double{codes_.dmin});
        return code >= 0 && put(g, scale, code);
      });
      if (!fits) return false;
    }
    return true;
  }

  // Computes the levels of a group; returns false if decoding does not give its values.
  bool put(int g, int scale, int minimum) {
    codes_.scales[g] = static_cast<std::uint8_t>(scale);
    codes_.minimums[g] = static_cast<std::uint8_t>(minimum);
    const float d = codes_.d * static_cast<float>(scale), m = codes_.dmin * static_cast<float>(minimum);
    for (int i = g * kGroup; i < (g + 1) * kGroup; ++i) {
      const int level = scale == 0 ? 0 : nearest_code((x_[i] + m) / d, 0, kLimit);
      if (d * static_cast<float>(level) - m != x_[i]) return false;
      codes_.levels[i] = static_cast<std::uint8_t>(level);
    }
    return true;
  }

  const float* x_;
  Group groups_[kGroups];
  AffineCodes codes_;
};

}  // namespace ggufmill::reference
