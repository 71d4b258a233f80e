// Named functions of value rules: numbers.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "pipeline/core/rounded.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/value_functions.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Returns a number whose infinity or NaN the result would not show.
Result<double> finite_of(const json::value& value) {
  BOOST_OUTCOME_TRY(const double number, number_of(value));
  if (!std::isfinite(number)) return input_error({}, fmt::format("{} is not a finite number", number));
  return number;
}

// Integer operands give an integer, as in Python; otherwise double precision. Evaluates from left to right.
template <class Whole, class Float>
Result<json::value> combine(Arguments arguments, Whole whole_step, Float float_step) {
  if (any_missing(arguments)) return json::value();
  json::value result = arguments[0];
  for (const json::value& next : arguments.subspan(1)) {
    const auto a = whole_number(result), b = whole_number(next);
    if (a && b) {
      std::int64_t into = 0;
      if (whole_step(*a, *b, &into))
        return input_error({}, fmt::format("the result of {} and {} is too large", *a, *b));
      result = into;
      continue;
    }
    BOOST_OUTCOME_TRY(const double x, number_of(result));
    BOOST_OUTCOME_TRY(const double y, number_of(next));
    result = float_step(x, y);
  }
  if (!number_value(result)) return input_error({}, fmt::format("{} is not a number", shown(result)));
  return result;
}

Result<json::value> sum(Arguments a, const Facts&) {
  return combine(
      a, [](auto x, auto y, auto* into) { return __builtin_add_overflow(x, y, into); },
      [](double x, double y) { return x + y; });
}

Result<json::value> difference(Arguments a, const Facts&) {
  return combine(
      a, [](auto x, auto y, auto* into) { return __builtin_sub_overflow(x, y, into); },
      [](double x, double y) { return x - y; });
}

Result<json::value> product(Arguments a, const Facts&) {
  return combine(
      a, [](auto x, auto y, auto* into) { return __builtin_mul_overflow(x, y, into); },
      [](double x, double y) { return x * y; });
}

Result<json::value> quotient(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const std::int64_t x, whole_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t y, whole_of(a[1]));
  if (x < 0 || y <= 0) return input_error({}, fmt::format("{} cannot be divided by {}", x, y));
  return json::value(x / y);
}

Result<json::value> ratio(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, finite_of(a[0]));
  BOOST_OUTCOME_TRY(const double y, finite_of(a[1]));
  if (y == 0) return input_error({}, fmt::format("{} cannot be divided by 0", x));
  return json::value(x / y);
}

Result<json::value> power(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, finite_of(a[0]));
  BOOST_OUTCOME_TRY(const double y, finite_of(a[1]));
  return json::value(std::pow(x, y));
}

Result<json::value> logarithm(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  if (x <= 0) return input_error({}, fmt::format("{} has no logarithm", x));
  return json::value(std::log(x));
}

Result<json::value> truncated(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  if (!(std::abs(x) < 9e15)) return input_error({}, fmt::format("{} is too large for an integer", x));
  return json::value(static_cast<std::int64_t>(x));
}

Result<json::value> largest(Arguments a, const Facts&) {
  json::value result;
  double most = -INFINITY;
  for (const json::value& each : a) {
    if (each.is_null()) continue;
    BOOST_OUTCOME_TRY(const double x, finite_of(each));
    if (x > most) most = x, result = each;
  }
  return result;
}

Result<json::value> smallest(Arguments a, const Facts&) {
  json::value result;
  double least = INFINITY;
  for (const json::value& each : a) {
    if (each.is_null()) continue;
    BOOST_OUTCOME_TRY(const double x, finite_of(each));
    if (x < least) least = x, result = each;
  }
  return result;
}

Result<json::value> exponential(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, finite_of(a[0]));
  return json::value(std::exp(x));
}

Result<json::value> largest_in(Arguments a, const Facts& facts) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::array* list, array_of(a[0]));
  return largest({list->data(), list->size()}, facts);
}

// Rounds layer sizes like Apple's CoreNet: to the nearest multiple, or to the next one if that would lose more than a
// tenth.
Result<json::value> divisible(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const double x, number_of(a[0]));
  BOOST_OUTCOME_TRY(const std::int64_t divisor, whole_of(a[1]));
  if (!(x >= 0 && x < 9e15 && divisor > 0 && divisor < 1'000'000'000))
    return input_error({}, fmt::format("{} cannot be rounded to a multiple of {}", x, divisor));
  const auto near = static_cast<std::int64_t>(x + static_cast<double>(divisor) / 2) / divisor * divisor;
  const std::int64_t made = std::max(divisor, near);
  return json::value(static_cast<double>(made) < 0.9 * x ? made + divisor : made);
}

Result<json::value> real(Arguments a, const Facts&) { return json::value(a[0].is_double()); }

// Returns the value below which a standard normal variable lies with this probability, in single precision with the
// steps of torch.distributions.Normal.icdf; infinite for 0 and 1.
float normal_quantile(float probability) {
  return rounded::inverse_erf(2.0f * probability - 1.0f) * static_cast<float>(std::numbers::sqrt2);
}

// Returns the quantile of the standard normal distribution for every probability of a list.
Result<json::value> each_normal_quantile(Arguments a, const Facts&) {
  const json::array* list = a[0].if_array();
  if (!list) return json::value();
  json::array result;
  for (const json::value& each : *list) {
    const auto number = number_value(each);
    if (!number || !(*number >= 0 && *number <= 1))
      return input_error({}, fmt::format("{} is not a probability", shown(each)));
    result.emplace_back(static_cast<double>(normal_quantile(static_cast<float>(*number))));
  }
  return json::value(std::move(result));
}

constexpr ValueFunction kNumberFunctions[] = {
    {"difference", 2, kManyArguments, "The first minus the others; for lists by element.", difference, true},
    {"divisible", 2, 2,
     "The first rounded to a multiple of the second: the nearest that loses at most a tenth; for lists by element.",
     divisible, true},
    {"each_normal_quantile", 1, 1, "For every probability in a list: the quantile of the standard normal distribution.",
     each_normal_quantile},
    {"exp", 1, 1, "e to the power of a number; for lists by element.", exponential, true},
    {"int", 1, 1, "The integer part; for lists by element.", truncated, true},
    {"largest", 1, kManyArguments, "The largest of those that exist; for lists by element.", largest, true},
    {"largest_in", 1, 1, "The largest number in a list.", largest_in},
    {"log", 1, 1, "The natural logarithm.", logarithm},
    {"power", 2, 2, "The first to the power of the second.", power},
    {"product", 2, kManyArguments, "The product; for lists by element.", product, true},
    {"quotient", 2, 2, "The integer quotient of two integers; for lists by element.", quotient, true},
    {"ratio", 2, 2, "The quotient of two numbers; for lists by element.", ratio, true},
    {"real", 1, 1, "Whether it is a number written with a decimal point or an exponent.", real},
    {"smallest", 1, kManyArguments, "The smallest of those that exist; for lists by element.", smallest, true},
    {"sum", 2, kManyArguments, "The sum; for lists by element.", sum, true},
};

}  // namespace

std::span<const ValueFunction> number_functions() { return kNumberFunctions; }

}  // namespace ggufmill::huggingface
