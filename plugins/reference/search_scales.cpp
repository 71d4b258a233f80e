#include "plugins/reference/search_scales.h"

#include <cfloat>
#include <cmath>

#include "plugins/reference/codebooks.h"
#include "plugins/reference/fit.h"
#include "plugins/reference/search_parts.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {
namespace {

// Sums over a group, for values v: of the squared error, and of w v x and w v v.
struct ScaleSums {
  float error = 0, vx = 0, vv = 0;
};

template <int kGroup>
void nearest_levels(const ScaleFormat& format, const float* x, float inverse, float* levels) {
  const auto least = static_cast<float>(format.least), most = static_cast<float>(format.most);
  if (!format.is_table) {
    for (int i = 0; i < kGroup; ++i) levels[i] = nearest_within(x[i] * inverse, least, most) - least;
    return;
  }
  // The number of middles between neighbouring values that are not above x.
  for (int i = 0; i < kGroup; ++i) levels[i] = 0;
  for (int k = 0; k < 15; ++k) {
    const float middle = 0.5f * (static_cast<float>(kIq4Values[k]) + static_cast<float>(kIq4Values[k + 1]));
    for (int i = 0; i < kGroup; ++i) levels[i] += x[i] * inverse >= middle ? 1.0f : 0.0f;
  }
}

template <int kGroup>
ScaleSums sums_at_scale(const ScaleFormat& format, const float* x, const float* w, float scale) {
  float v[kGroup], wee[kGroup], wvx[kGroup], wvv[kGroup];
  nearest_levels<kGroup>(format, x, inverse_of(scale), v);
  if (format.is_table)
    for (int i = 0; i < kGroup; ++i) v[i] = static_cast<float>(kIq4Values[static_cast<int>(v[i])]);
  else
    for (int i = 0; i < kGroup; ++i) v[i] += static_cast<float>(format.least);
  for (int i = 0; i < kGroup; ++i) {
    const float e = x[i] - scale * v[i];
    wee[i] = w[i] * e * e;
    wvx[i] = w[i] * v[i] * x[i];
    wvv[i] = w[i] * v[i] * v[i];
  }
  ScaleSums sums;
  for (int i = 0; i < kGroup; ++i) {
    sums.error += wee[i];
    sums.vx += wvx[i];
    sums.vv += wvv[i];
  }
  return sums;
}

ScaleSums sums_at(const ScaleFormat& format, const float* x, const float* w, float scale) {
  return format.group == 16 ? sums_at_scale<16>(format, x, w, scale) : sums_at_scale<32>(format, x, w, scale);
}

struct ScaleCandidate {
  float scale = 0, error = 0;
  bool is_like(const ScaleCandidate& other) const { return std::fabs(scale - other.scale) < 1e-4f * std::fabs(scale); }
};
using BestScales = Best<ScaleCandidate, 2>;

BestScales scales_of(const ScaleFormat& format, const float* x, const float* w, const ScaleEffort& effort, int tries,
                     int kept) {
  BestScales scales(kept);
  float magnitude = 0;
  for (int i = 0; i < format.group; ++i) magnitude = std::fabs(x[i]) > magnitude ? std::fabs(x[i]) : magnitude;
  if (magnitude < kZeroGroup) {
    scales.offer({0, 0});
    return scales;
  }
  for (const float sign : {1.0f, -1.0f})
    for (int k = 0; k < tries; ++k) {
      const float part = effort.first + effort.across * static_cast<float>(k) / static_cast<float>(tries - 1);
      ScaleCandidate found{sign * magnitude / (format.extreme * part), 0};
      bool is_usable = false;
      for (int i = 0; i < effort.improvements; ++i) {
        const ScaleSums sums = sums_at(format, x, w, found.scale);
        if (!(sums.vv > 0)) break;
        const float scale = sums.vx / sums.vv;
        found = {scale, -sums.vx * scale};
        is_usable = true;
      }
      if (is_usable) scales.offer(found);
    }
  if (scales.is_empty()) scales.offer({magnitude / format.extreme, 0});
  return scales;
}

struct ScaleGroup {
  int code = 0;
  ScaleSums sums{};
};

// A super-block.
class ScaleProblem {
 public:
  ScaleProblem(const ScaleFormat& format, const float* x, const float* w) : format_(format), x_(x), w_(w) {}

  void search(const ScaleEffort& effort, ScaleCodes& codes, double& error) {
    float greatest = 0;
    for (int group = 0; group < groups(); ++group) {
      const int at = group * format_.group;
      scales_[group] = scales_of(format_, x_ + at, w_ + at, effort, effort.scales, effort.kept);
      const float scale = scales_[group].begin()->scale;
      if (std::fabs(scale) > std::fabs(greatest)) greatest = scale;
    }
    const float code = 0.5f - static_cast<float>(format_.least_code);
    if (effort.starts == 0) descend(as_half(-greatest / code), effort.rounds, codes, error);
    for (int i = 0; i < effort.starts; ++i)
      for (const float sign : {1.0f, -1.0f})
        descend(as_half(sign * std::fabs(greatest) / (code - format_.apart * static_cast<float>(i))), effort.rounds,
                codes, error);
  }

 private:
  int groups() const { return 256 / format_.group; }

  ScaleGroup best_code(int group, float d) const {
    const int at = group * format_.group;
    ScaleGroup best;
    best.sums.error = FLT_MAX;
    int tried[6], count = 0;
    for (const ScaleCandidate& scale : scales_[group]) {
      const int middle = nearest_code(scale.scale / d, format_.least_code, format_.most_code);
      for (int code = middle - 1; code <= middle + 1; ++code) {
        bool is_known = code < format_.least_code || code > format_.most_code;
        for (int i = 0; i < count; ++i) is_known |= tried[i] == code;
        if (is_known) continue;
        tried[count++] = code;
        const ScaleSums sums = sums_at(format_, x_ + at, w_ + at, d * static_cast<float>(code));
        if (sums.error < best.sums.error) best = {code, sums};
      }
    }
    return best;
  }

  void descend(float d, int rounds, ScaleCodes& codes, double& error) const {
    ScaleGroup found[ScaleCodes::kMaxGroups];
    double before = DBL_MAX;
    for (int round = 0; round < rounds; ++round) {
      if (d == 0 || !std::isfinite(d)) return;
      double total = 0, vx = 0, vv = 0;
      for (int group = 0; group < groups(); ++group) {
        found[group] = best_code(group, d);
        const double code = found[group].code;
        total += double{found[group].sums.error};
        vx += code * double{found[group].sums.vx};
        vv += code * code * double{found[group].sums.vv};
      }
      if (total < error) {
        error = total;
        codes.d = d;
        for (int group = 0; group < groups(); ++group)
          codes.scales[group] = static_cast<std::int8_t>(found[group].code);
      }
      if (!(total < before) || !(vv > 0)) return;
      before = total;
      const float next = as_half(static_cast<float>(vx / vv));
      if (next == d) return;
      d = next;
    }
  }

  const ScaleFormat& format_;
  const float* x_;
  const float* w_;
  BestScales scales_[ScaleCodes::kMaxGroups];
};

// Sets the nearest levels of a group.
void put_levels_at(const ScaleFormat& format, const float* x, float scale, std::uint8_t* levels) {
  for (int at = 0; at < format.group; at += 16) {
    float nearest[16];
    nearest_levels<16>(format, x + at, inverse_of(scale), nearest);
    for (int i = 0; i < 16; ++i) levels[at + i] = static_cast<std::uint8_t>(static_cast<int>(nearest[i]));
  }
}

// Sets the levels that are nearest with the scales of `codes`.
void put_levels(const ScaleFormat& format, const float* x, ScaleCodes& codes) {
  for (int group = 0; group < 256 / format.group; ++group)
    put_levels_at(format, x + group * format.group, codes.d * static_cast<float>(codes.scales[group]),
                  codes.levels + group * format.group);
}

// The same for a block that is one group and has no scale but d.
void put_levels_alone(const ScaleFormat& format, const float* x, ScaleCodes& codes) {
  put_levels_at(format, x, codes.d, codes.levels);
}

}  // namespace

bool search_scales(const ScaleFormat& format, const float* x, const float* weights, std::uint32_t effort,
                   ScaleCodes& codes) {
  codes = {};
  double error = weighted_square(x, weights, 256);
  if (error == 0) return false;
  ScaleProblem(format, x, weights).search(kScaleEfforts[effort - 1], codes, error);
  put_levels(format, x, codes);
  return codes.d != 0;
}

bool search_one_scale(const ScaleFormat& format, const float* x, const float* weights, std::uint32_t effort,
                      ScaleCodes& codes) {
  codes = {};
  if (weighted_square(x, weights, format.group) == 0) return false;
  float least = FLT_MAX;
  const ScaleEffort& tried = kScaleEfforts[effort - 1];
  for (const ScaleCandidate& scale : scales_of(format, x, weights, tried, tried.scales_alone, kScalesKeptAlone)) {
    const float d = as_half(scale.scale);
    if (d == 0 || !std::isfinite(d)) continue;
    const ScaleSums sums = sums_at(format, x, weights, d);
    if (!(sums.error < least)) continue;
    least = sums.error;
    codes.d = d;
  }
  put_levels_alone(format, x, codes);
  return codes.d != 0;
}

}  // namespace ggufmill::reference
