// Named functions that compute a tensor.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/computed_tensors.h"
#include "stages/huggingface/map/operation_arguments.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMaxRotary = 65536;

struct RopeScaling {
  std::uint64_t dimension = 0;
  double base = 0, factor = 0, low = 0, high = 0, context = 0;
  float frequency(std::uint64_t i) const {
    const float exponent = static_cast<float>(i) / static_cast<float>(dimension);
    return 1.0f / std::pow(static_cast<float>(base), exponent);
  }
};

Result<RopeScaling> rope_scaling(Arguments a) {
  RopeScaling scaling;
  BOOST_OUTCOME_TRY(scaling.dimension, whole_argument(a[0]));
  if (scaling.dimension == 0 || scaling.dimension > kMaxRotary)
    return input_error({}, fmt::format("a head has {} dimensions", scaling.dimension));
  double* const numbers[] = {&scaling.base, &scaling.factor, &scaling.low, &scaling.high, &scaling.context};
  for (std::size_t i = 0; i < 5; ++i) {
    const auto number = a[i + 1].is_bool() ? std::nullopt : number_value(a[i + 1]);
    if (!number) return input_error({}, "llama3_rope_factors takes numbers");
    *numbers[i] = *number;
  }
  return scaling;
}

Result<ExpressionRef> factors_of(const RopeScaling& from, std::vector<float> values) {
  for (const float value : values)
    if (!(value > 0 && std::isfinite(value)))
      return input_error({}, fmt::format("base {}, factor {}, low {}, high {}, and context {} give the factor {}",
                                         from.base, from.factor, from.low, from.high, from.context, value));
  Shape shape;
  shape.rank = 1;
  shape.dims[0] = values.size();
  return expressions::constant(shape, std::move(values));
}

// Returns the factors by which llama.cpp divides the rotary frequencies, as in Llama 3.1: low frequencies are divided
// by `factor`, and those in the middle are blended smoothly. Every step is in single precision, as torch computes it.
// Source: conversion/llama.py of llama.cpp (MIT).
Result<ExpressionRef> llama3_rope_factors(Arguments a) {
  BOOST_OUTCOME_TRY(const RopeScaling scaling, rope_scaling(a));
  const double longest = scaling.context / scaling.low, shortest = scaling.context / scaling.high;
  std::vector<float> values;
  for (std::uint64_t i = 0; i < scaling.dimension; i += 2) {
    // torch divides a scalar by a tensor as reciprocal, then product.
    const float length = (1.0f / scaling.frequency(i)) * static_cast<float>(2 * std::numbers::pi);
    if (length < static_cast<float>(shortest)) {
      values.push_back(1);
    } else if (length > static_cast<float>(longest)) {
      values.push_back(static_cast<float>(scaling.factor));
    } else {
      float smooth = (1.0f / length) * static_cast<float>(scaling.context);
      smooth = (smooth - static_cast<float>(scaling.low)) / static_cast<float>(scaling.high - scaling.low);
      const float mixed = (1.0f - smooth) / static_cast<float>(scaling.factor) + smooth;
      values.push_back(1.0f / mixed);
    }
  }
  return factors_of(scaling, std::move(values));
}

// The same for rotary embedding that covers only the first dimensions of a head, and only in some layers: the factor
// is 1 for the other dimensions. In double precision, from single-precision frequencies. Source: conversion/step3.py
// of llama.cpp (MIT).
Result<ExpressionRef> llama3_rope_factors_padded(Arguments a) {
  BOOST_OUTCOME_TRY(const RopeScaling scaling, rope_scaling(a.first(6)));
  BOOST_OUTCOME_TRY(const std::uint64_t head, whole_argument(a[6]));
  if (head < scaling.dimension || head > kMaxRotary)
    return input_error({}, fmt::format("{} dimensions in a head of {}", scaling.dimension, head));
  std::vector<float> values;
  for (std::uint64_t i = 0; i < scaling.dimension; i += 2) {
    const double length = 2 * std::numbers::pi / static_cast<double>(scaling.frequency(i));
    double value = 1;
    if (length > scaling.context / scaling.low) {
      value = scaling.factor;
    } else if (length >= scaling.context / scaling.high) {
      const double smooth = (scaling.context / length - scaling.low) / (scaling.high - scaling.low);
      value = 1 / ((1 - smooth) / scaling.factor + smooth);
    }
    values.push_back(static_cast<float>(value));
  }
  values.resize(std::max<std::size_t>(values.size(), head / 2), 1);
  return factors_of(scaling, std::move(values));
}

Result<ExpressionRef> numbers(Arguments a) {
  const json::array* list = a[0].if_array();
  if (!list || list->empty()) return input_error({}, "expected a list of numbers");
  std::vector<float> values;
  for (const json::value& each : *list) {
    BOOST_OUTCOME_TRY(values.emplace_back(), float_argument(each));
  }
  if (a.size() > 1) {
    BOOST_OUTCOME_TRY(const std::uint64_t needed, whole_argument(a[1]));
    if (values.size() != needed) return input_error({}, fmt::format("{} numbers, expected {}", values.size(), needed));
  }
  Shape shape;
  shape.rank = 1;
  shape.dims[0] = values.size();
  return expressions::constant(shape, std::move(values));
}

constexpr TensorFunction kTensorFunctions[] = {
    {"llama3_rope_factors", 6, 6,
     "Rotary embedding of Llama 3.1: dimensions of a head, base, factor, low, high, context.", llama3_rope_factors},
    {"llama3_rope_factors_padded", 7, 7,
     "The same for the first dimensions of a head: their number, base, factor, low, high, context, all dimensions of a "
     "head.",
     llama3_rope_factors_padded},
    {"numbers", 1, 2, "Numbers of a list; the second argument is their required count.", numbers},
    {"sinusoids", 2, 2, "Sines and cosines of positions: their number, and values of each position.", sinusoids},
};

}  // namespace

std::span<const TensorFunction> tensor_functions() { return kTensorFunctions; }

}  // namespace ggufmill::huggingface
