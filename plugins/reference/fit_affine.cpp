// Scales with a minimum. Source: ggml, src/ggml-quants.c (make_qkx2_quants, make_qkx3_quants).

#include <algorithm>
#include <cmath>

#include "plugins/reference/fit.h"
#include "plugins/reference/floats.h"

namespace ggufmill::reference {
namespace {

// A group of weights and the sums over it, computed once.
struct Group {
  int count;
  int limit;
  const float* x;
  const float* weights;
  float low, high;  // low <= 0
  float sum_w, sum_wx;

  Group(int count_in, int limit_in, const float* x_in, const float* weights_in)
      : count(count_in), limit(limit_in), x(x_in), weights(weights_in), low(x[0]), high(x[0]) {
    sum_w = weights[0];
    sum_wx = sum_w * x[0];
    for (int i = 1; i < count; ++i) {
      if (x[i] < low) low = x[i];
      if (x[i] > high) high = x[i];
      sum_w += weights[i];
      sum_wx += weights[i] * x[i];
    }
    if (low > 0) low = 0;
  }

  std::uint8_t level(int i, float inverse, float minimum) const {
    return static_cast<std::uint8_t>(clamp_level(nearest_int(inverse * (x[i] - minimum)), 0, limit));
  }
  // The same, but bounded before it is rounded; 0 for NaN.
  std::uint8_t bounded_level(int i, float inverse, float minimum) const {
    const float value = inverse * (x[i] - minimum);
    const auto most = static_cast<float>(limit);
    return value > 0 ? static_cast<std::uint8_t>(nearest_int(value < most ? value : most)) : std::uint8_t{0};
  }
  // Returns true if both give the same levels, because nearest_int() rounds whatever becomes one: usually.
  bool can_round_first(float inverse, float minimum) const {
    constexpr float kMax = 4194303;  // nearest_int() rounds magnitudes up to this
    return std::fabs(inverse * (low - minimum)) <= kMax && std::fabs(inverse * (high - minimum)) <= kMax;
  }
};

float error_of(const Group& group, const AffineFit& fit, ErrorMeasure measure, const std::uint8_t* levels) {
  float error = 0;
  for (int i = 0; i < group.count; ++i) {
    const float difference = fit.scale * static_cast<float>(levels[i]) + fit.minimum - group.x[i];
    const float term = measure == ErrorMeasure::kAbsolute ? std::fabs(difference) : difference * difference;
    error += group.weights[i] * term;
  }
  return error;
}

// Computes the levels for `inverse` and `minimum`, and the weighted least-squares line through them. Returns false if
// the levels do not determine a line.
template <bool kBoundsFirst>
bool fit_line(const Group& group, float inverse, float minimum, std::uint8_t* levels, AffineFit& fit) {
  float sum_l = 0, sum_l2 = 0, sum_xl = 0;
  for (int i = 0; i < group.count; ++i) {
    levels[i] = kBoundsFirst ? group.bounded_level(i, inverse, minimum) : group.level(i, inverse, minimum);
    const auto l = static_cast<float>(levels[i]);
    const float w = group.weights[i];
    sum_l += w * l;
    sum_l2 += w * l * l;
    sum_xl += w * l * group.x[i];
  }
  const float determinant = group.sum_w * sum_l2 - sum_l * sum_l;
  if (!(determinant > 0)) return false;
  fit.scale = (group.sum_w * sum_xl - group.sum_wx * sum_l) / determinant;
  fit.minimum = (sum_l2 * group.sum_wx - sum_l * sum_xl) / determinant;
  if (fit.minimum > 0) fit = {sum_xl / sum_l2, 0};
  return true;
}

}  // namespace

AffineFit fit_affine(int count, int limit, const float* x, const float* weights, const AffineSearch& search,
                     std::uint8_t* levels) {
  const Group group(count, limit, x, weights);
  std::fill_n(levels, count, std::uint8_t{0});
  if (group.high <= group.low || group.high - group.low < search.least_range) return {0, group.low};

  const float first_inverse = static_cast<float>(limit) / (group.high - group.low);
  AffineFit best = {1 / first_inverse, group.low};
  for (int i = 0; i < count; ++i) levels[i] = group.level(i, first_inverse, group.low);
  float least = error_of(group, best, search.measure, levels);

  std::uint8_t tried[kMaxInGroup];
  AffineFit fit;
  for (int i = 0; i <= search.last; ++i) {
    // A better fit changes best.minimum, which later attempts start from.
    const float inverse =
        (search.first + search.step * static_cast<float>(i) + static_cast<float>(limit)) / (group.high - best.minimum);
    const bool bounds_first = search.bounds_first && !group.can_round_first(inverse, best.minimum);
    const bool fits = bounds_first ? fit_line<true>(group, inverse, best.minimum, tried, fit)
                                   : fit_line<false>(group, inverse, best.minimum, tried, fit);
    if (!fits) continue;
    const float error = error_of(group, fit, search.measure, tried);
    if (!(error < least)) continue;
    std::copy_n(tried, count, levels);
    least = error;
    best = fit;
  }
  return best;
}

}  // namespace ggufmill::reference
