#include "pipeline/core/sleef.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace ggufmill::sleef {
namespace {

float polynomial(float x, std::initializer_list<float> coefficients) {
  float result = 0;
  bool is_first = true;
  for (const float each : coefficients) {
    result = is_first ? each : std::fmaf(result, x, each);
    is_first = false;
  }
  return result;
}

// A number with twice the precision, as the sum of two.
struct Pair {
  float high = 0, low = 0;
};

// The product, with the error of the rounded one as the lower part.
Pair product(Pair x, float y) {
  const float high = x.high * y;
  return {high, std::fmaf(x.low, y, std::fmaf(x.high, y, -high))};
}

Pair quotient(float x, Pair y) {
  const float inverse = 1.0f / y.high, high = x * inverse;
  const float error = std::fmaf(inverse, x, -high);
  const float rest = std::fmaf(-y.low, inverse, std::fmaf(-y.high, inverse, 1.0f));
  return {high, std::fmaf(high, rest, std::fmaf(0.0f, inverse, error))};
}

// The sum, if |x| is at least |y|.
Pair sum(Pair x, Pair y) {
  const float high = x.high + y.high;
  return {high, x.high - high + y.high + x.low + y.low};
}

}  // namespace

float exp(float x) {
  if (x < -104) return 0;
  if (x > 104) return INFINITY;
  const float q = std::nearbyintf(x * 1.442695040888963407359924681001892137426645954152985934135449406931f);
  float s = std::fmaf(q, -0.693145751953125f, x);
  s = std::fmaf(q, -1.428606765330187045e-06f, s);
  float u = polynomial(s, {0.000198527617612853646278381f, 0.00139304355252534151077271f, 0.00833336077630519866943359f,
                           0.0416664853692054748535156f, 0.166666671633720397949219f, 0.5f});
  u = 1.0f + std::fmaf(s * s, u, s);
  // Scales by two factors, so that neither exceeds the exponent range.
  const int power = static_cast<int>(q), half = power >> 1;
  return u * std::ldexp(1.0f, half) * std::ldexp(1.0f, power - half);
}

float log1p(float x) {
  if (!(x >= 0 && x <= 1e38f)) return NAN;
  const auto bits = std::bit_cast<std::uint32_t>((x + 1) * (1.0f / 0.75f));
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
  const float scale = std::ldexp(1.0f, -exponent);
  const float mantissa = std::fmaf(x, scale, scale - 1.0f);
  const Pair whole = product({0.69314718246459960938f, -1.904654323148236017e-09f}, static_cast<float>(exponent));
  const float divisor = 2.0f + mantissa;
  const Pair ratio = quotient(mantissa, {divisor, 2.0f - divisor + mantissa});
  const float square = ratio.high * ratio.high;
  const float t = polynomial(square, {0.3027294874e+0f, 0.3996108174e+0f, 0.6666694880e+0f});
  Pair result = sum(whole, {2 * ratio.high, 2 * ratio.low});
  result = sum(result, {square * ratio.high * t, 0});
  return result.high + result.low;
}

}  // namespace ggufmill::sleef
