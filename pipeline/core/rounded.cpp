#include "pipeline/core/rounded.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ggufmill::rounded {
namespace {

// A number of about 106 bits: the sum of two, of which the lower one is at most half a unit in the last place of the
// higher one.
struct Wide {
  double high = 0, low = 0;
};

// The sum, if |x| is at least |y| or x is 0.
Wide ordered_sum(double x, double y) {
  const double high = x + y;
  return {high, y - (high - x)};
}

Wide exact_sum(double x, double y) {
  const double high = x + y, part = high - x;
  return {high, (x - (high - part)) + (y - part)};
}

Wide operator+(Wide x, Wide y) {
  const Wide high = exact_sum(x.high, y.high), low = exact_sum(x.low, y.low);
  const Wide sum = ordered_sum(high.high, high.low + low.high);
  return ordered_sum(sum.high, sum.low + low.low);
}

Wide operator-(Wide x) { return {-x.high, -x.low}; }

Wide operator*(Wide x, Wide y) {
  const double high = x.high * y.high, rest = std::fma(x.high, y.high, -high);
  return ordered_sum(high, rest + (x.high * y.low + x.low * y.high));
}

Wide operator/(Wide x, double y) {
  const double high = x.high / y;
  return ordered_sum(high, (std::fma(-high, y, x.high) + x.low) / y);
}

constexpr Wide kOne{1, 0};
constexpr Wide kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Wide kHalfRootOfPi{0x1.c5bf891b4ef6bp-1, -0x1.618f13eb7ca89p-55};
// Half of pi in three parts.
constexpr double kQuarterTurn[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};

// Rounds to the nearest float, also to one below the normal ones. `exponent`: the number is multiplied by 2 to it.
float nearest(Wide x, int exponent = 0) {
  // Rounding to odd first keeps what the second rounding has to know of the lower part.
  auto bits = std::bit_cast<std::uint64_t>(x.high);
  if (x.low != 0 && (bits & 1) == 0) bits += (x.low > 0) == (x.high > 0) ? 1 : std::uint64_t(-1);
  return static_cast<float>(std::ldexp(std::bit_cast<double>(bits), exponent));
}

// exp(x) is the result times 2 to `exponent`.
Wide exponential(Wide x, int& exponent) {
  exponent = static_cast<int>(std::nearbyint(x.high / kLn2.high));
  const Wide rest = x + -(kLn2 * Wide{static_cast<double>(exponent), 0});
  Wide sum = kOne;
  for (int i = 27; i > 0; --i) sum = kOne + rest * sum / i;  // rest is at most 0.35
  return sum;
}

// exp(x), if it is in the range of double.
Wide exponential(Wide x) {
  int exponent = 0;
  const Wide result = exponential(x, exponent);
  return {std::ldexp(result.high, exponent), std::ldexp(result.low, exponent)};
}

// The sum of x^i/i! for every second i, with alternating signs; `first` is 0 or 1. x is at most 0.8.
Wide alternating_series(Wide x, int first) {
  const Wide square = x * x;
  Wide sum = kOne;
  for (int i = 30 + first; i > first; i -= 2) sum = kOne + -(square * sum / (i * (i - 1)));
  return first == 0 ? sum : x * sum;
}

// The sine of x plus `turns` quarter turns.
float sine(float x, int turns) {
  constexpr float kLargest = 65536;
  if (!(std::abs(x) <= kLargest)) return std::numeric_limits<float>::quiet_NaN();
  const double count = std::nearbyint(static_cast<double>(x) / kQuarterTurn[0]);
  Wide rest{x, 0};
  for (const double part : kQuarterTurn) {
    const double high = -count * part;
    rest = rest + Wide{high, std::fma(-count, part, -high)};
  }
  const int quarter = (static_cast<int>(count) + turns) & 3;
  if (rest.high == 0 && quarter % 2 == 0) return x;  // keeps the sign of 0
  const Wide result = alternating_series(rest, quarter % 2 == 0 ? 1 : 0);
  return nearest(quarter < 2 ? result : -result);
}

}  // namespace

float exp(float x) {
  if (std::isnan(x)) return x;
  if (x > 89) return std::numeric_limits<float>::infinity();
  if (x < -104) return 0;
  int exponent = 0;
  const Wide result = exponential({x, 0}, exponent);
  return nearest(result, exponent);
}

float sin(float x) { return sine(x, 0); }
float cos(float x) { return sine(x, 1); }

float softplus(float x) {
  if (std::isnan(x) || x > 100) return x;
  if (x < -104) return 0;
  const Wide power = exponential(Wide{x, 0});
  if (x < -17) {  // the first terms of the series
    const Wide square = power * power;
    return nearest(power + -(square / 2) + square * power / 3);
  }
  // A step of Newton's method.
  const Wide sum = kOne + power, first{std::log1p(power.high), 0};
  return nearest(first + sum * exponential(-first) + -kOne);
}

// Newton's method. erf(x) is its own slope times the sum of (2x^2)^i * x / (1 * 3 * ... * (2i + 1)), so that a step
// subtracts that sum and adds y divided by the slope.
float inverse_erf(float y) {
  const double size = std::abs(static_cast<double>(y));
  if (!(size <= 1)) return std::numeric_limits<float>::quiet_NaN();
  if (size == 1) return std::copysign(std::numeric_limits<float>::infinity(), y);
  if (size == 0) return y;
  // An approximation of Winitzki's, with an error below 0.005.
  constexpr double kFit = 0.147, kPi = 3.141592653589793;
  const double logarithm = std::log1p(-size * size), half = 2 / (kPi * kFit) + logarithm / 2;
  Wide x{std::sqrt(std::sqrt(half * half - logarithm / kFit) - half), 0};
  for (int step = 0; step < 7; ++step) {
    const Wide square = x * x;
    const int terms = 50 + static_cast<int>(12 * square.high);
    Wide sum = kOne;
    for (int i = terms; i > 0; --i) sum = kOne + square * sum * Wide{2, 0} / (2 * i + 1);
    const Wide by_slope = exponential(square) * Wide{size, 0} * kHalfRootOfPi;
    x = x + -(x * sum) + by_slope;
  }
  return std::copysign(nearest(x), y);
}

}  // namespace ggufmill::rounded
