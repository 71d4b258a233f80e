#include "stages/huggingface/map/normal_quantile.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace ggufmill::huggingface {
namespace {

// Inverse of the error function: a rational approximation, refined by two steps of Newton's method. Source: the
// coefficients in calc_erfinv of PyTorch (BSD), aten/src/ATen/native/Math.h.
float inverse_erf(float y) {
  constexpr float kCentral = 0.7f;
  const float size = std::abs(y);
  if (!(size <= 1)) return std::numeric_limits<float>::quiet_NaN();
  if (size == 1) return std::copysign(std::numeric_limits<float>::infinity(), y);
  float x = 0;
  if (size <= kCentral) {
    const float z = y * y;
    const float above = ((-0.140543331f * z + 0.914624893f) * z - 1.645349621f) * z + 0.886226899f;
    const float below = (((0.012229801f * z - 0.329097515f) * z + 1.442710462f) * z - 2.118377725f) * z + 1.0f;
    x = y * above / below;
  } else {
    const float z = std::sqrt(-std::log((1.0f - size) / 2.0f));
    const float above = ((1.641345311f * z + 3.429567803f) * z - 1.624906493f) * z - 1.970840454f;
    const float below = (1.637067800f * z + 3.543889200f) * z + 1.0f;
    x = std::copysign(above, y) / below;
  }
  const float slope = 2.0f / static_cast<float>(std::sqrt(std::numbers::pi));
  for (int step = 0; step < 2; ++step) x -= (std::erf(x) - y) / (slope * std::exp(-x * x));
  return x;
}

}  // namespace

float normal_quantile(float probability) {
  return inverse_erf(2.0f * probability - 1.0f) * static_cast<float>(std::numbers::sqrt2);
}

}  // namespace ggufmill::huggingface
