// Scales for non-negative values. Source: ggml, src/ggml-quants.c (make_qp_quants).

#include <algorithm>

#include "plugins/reference/fit.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {
namespace {

float greatest(int count, const float* x) {
  float value = 0;
  for (int i = 0; i < count; ++i) value = value > x[i] ? value : x[i];
  return value;
}

float squared_error(float weight, float x, float scale, int level) {
  const float difference = x - scale * static_cast<float>(level);
  return weight * difference * difference;
}

// Returns the inverse scale with the least error. The error of the first one is computed from its levels as bytes,
// without clamping to the limit.
float best_inverse(int count, int limit, const float* x, const float* weights, float peak) {
  float best = static_cast<float>(limit) / peak;
  float least = 0;
  const float first_scale = 1 / best;
  for (int i = 0; i < count; ++i)
    least += squared_error(weights[i], x[i], first_scale, static_cast<std::uint8_t>(nearest_int(best * x[i])));
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const float inverse = (0.1f * static_cast<float>(step) + static_cast<float>(limit)) / peak;
    const float scale = 1 / inverse;
    float error = 0;
    for (int i = 0; i < count; ++i)
      error += squared_error(weights[i], x[i], scale, std::min(limit, nearest_int(inverse * x[i])));
    if (error < least) {
      least = error;
      best = inverse;
    }
  }
  return best;
}

struct Sums {
  float xl = 0;
  float l2 = 0;
};

// Sets one level to its optimum with all others fixed, if this reduces the error. Returns true if the level changed.
bool improve_level(float weight, float x, int limit, std::uint8_t& level, Sums& sums) {
  const auto old = static_cast<float>(level);
  Sums other{sums.xl - weight * x * old, sums.l2 - weight * old * old};
  if (!(other.xl > 0 && other.l2 > 0)) return false;
  const int better = std::min(limit, nearest_int(x * other.l2 / other.xl));
  if (better == level) return false;
  other.xl += weight * x * static_cast<float>(better);
  other.l2 += weight * static_cast<float>(better) * static_cast<float>(better);
  if (!(other.xl * other.xl * sums.l2 > sums.xl * sums.xl * other.l2)) return false;
  level = static_cast<std::uint8_t>(better);
  sums = other;
  return true;
}

}  // namespace

float fit_positive(int count, int limit, const float* x, const float* weights, std::uint8_t* levels, float zero) {
  const float peak = greatest(count, x);
  std::fill_n(levels, count, std::uint8_t{0});
  if (peak < zero) return 0;
  const float inverse = best_inverse(count, limit, x, weights, peak);
  Sums sums;
  for (int i = 0; i < count; ++i) {
    const int level = std::min(limit, nearest_int(inverse * x[i]));
    levels[i] = static_cast<std::uint8_t>(level);
    sums.xl += weights[i] * x[i] * static_cast<float>(level);
    sums.l2 += weights[i] * static_cast<float>(level) * static_cast<float>(level);
  }
  for (int round = 0; round < 5; ++round) {
    int moved = 0;
    for (int i = 0; i < count; ++i) moved += improve_level(weights[i], x[i], limit, levels[i], sums);
    if (moved == 0) break;
  }
  return sums.l2 > 0 ? sums.xl / sums.l2 : 0.0f;
}

}  // namespace ggufmill::reference
