// Scales without a minimum. Source: ggml, src/ggml-quants.c (make_qx_quants, make_q3_quants).

#include <algorithm>
#include <cmath>

#include "plugins/reference/fit.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {
namespace {

int signed_level(float value, int limit) { return clamp_level(nearest_int(value), -limit, limit - 1); }

void store_levels(int count, int limit, const float* x, float inverse, std::uint8_t* levels) {
  for (int i = 0; i < count; ++i) levels[i] = static_cast<std::uint8_t>(limit + signed_level(inverse * x[i], limit));
}

// Weighted sums of x * level and level * level. Their quotient is the best scale for the levels.
struct Sums {
  float xl = 0;
  float l2 = 0;

  void add(float weight, float x, int level) {
    const auto l = static_cast<float>(level);
    xl += weight * x * l;
    l2 += weight * l * l;
  }
};

Sums sums_for(int count, int limit, const float* x, const float* weights, float inverse) {
  Sums sums;
  for (int i = 0; i < count; ++i)
    sums.add(weights ? weights[i] : x[i] * x[i], x[i], signed_level(inverse * x[i], limit));
  return sums;
}

// Sets one level to its optimum with all others fixed, if this reduces the error. Returns true if the level changed.
bool improve_level(float x, int limit, int& level, Sums& sums) {
  const float weight = x * x;
  Sums other{sums.xl - weight * x * static_cast<float>(level), 0};
  if (!(other.xl > 0)) return false;
  other.l2 = sums.l2 - weight * static_cast<float>(level) * static_cast<float>(level);
  const int better = signed_level(x * other.l2 / other.xl, limit);
  if (better == level) return false;
  other.add(weight, x, better);
  if (!(other.l2 > 0 && other.xl * other.xl * sums.l2 > sums.xl * sums.xl * other.l2)) return false;
  level = better;
  sums = other;
  return true;
}

}  // namespace

float fit_symmetric(int count, int limit, const float* x, const float* weights, std::uint8_t* levels) {
  const float peak = extreme_or_zero({x, static_cast<std::size_t>(count)});
  std::fill_n(levels, count, std::uint8_t{0});
  if (peak == 0) return 0;
  float inverse = static_cast<float>(-limit) / peak;
  Sums sums = sums_for(count, limit, x, weights, inverse);
  store_levels(count, limit, x, inverse, levels);
  float scale = sums.l2 != 0 ? sums.xl / sums.l2 : 0.0f;
  float best = scale * sums.xl;
  for (int i = -9; i <= 9; ++i) {
    if (i == 0) continue;
    inverse = -(static_cast<float>(limit) + 0.1f * static_cast<float>(i)) / peak;
    sums = sums_for(count, limit, x, weights, inverse);
    if (!(sums.l2 > 0 && sums.xl * sums.xl > best * sums.l2)) continue;
    store_levels(count, limit, x, inverse, levels);
    scale = sums.xl / sums.l2;
    best = scale * sums.xl;
  }
  return scale;
}

float fit_symmetric_by_steps(int count, int limit, const float* x, std::uint8_t* levels) {
  const float peak = extreme_or_zero({x, static_cast<std::size_t>(count)});
  std::fill_n(levels, count, std::uint8_t{0});
  if (peak == 0) return 0;
  const float inverse = static_cast<float>(-limit) / peak;
  int moving[kMaxInGroup];
  for (int i = 0; i < count; ++i) moving[i] = signed_level(inverse * x[i], limit);
  Sums sums = sums_for(count, limit, x, nullptr, inverse);
  for (int round = 0; round < 5; ++round) {
    int moved = 0;
    for (int i = 0; i < count; ++i) moved += improve_level(x[i], limit, moving[i], sums);
    if (moved == 0) break;
  }
  for (int i = 0; i < count; ++i) levels[i] = static_cast<std::uint8_t>(moving[i] + limit);
  return sums.l2 > 0 ? sums.xl / sums.l2 : 0.0f;
}

}  // namespace ggufmill::reference
