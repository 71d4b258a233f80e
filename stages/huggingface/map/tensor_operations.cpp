#include "stages/huggingface/map/tensor_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/operation_arguments.h"

namespace ggufmill::huggingface {

std::span<const TensorOperation> tensor_operations() {
  static const std::vector<TensorOperation> kOperations = [] {
    std::vector<TensorOperation> all;
    for (const auto& kind : {shape_operations(), value_operations(), codec_operations()})
      all.insert(all.end(), kind.begin(), kind.end());
    std::ranges::sort(all, {}, &TensorOperation::name);
    return all;
  }();
  return kOperations;
}

Result<std::uint64_t> whole_argument(const boost::json::value& value) {
  const auto number = whole_number(value);
  if (!number || *number < 0) return input_error({}, shown(value) + " is not an integer from 0 to 2^63 - 1");
  return static_cast<std::uint64_t>(*number);
}

Result<float> float_argument(const boost::json::value& value) {
  const auto number = number_value(value);
  if (!number) return input_error({}, "expected a number");
  if (!std::isfinite(static_cast<float>(*number)))
    return input_error({}, fmt::format("{} is too large for F32", *number));
  return static_cast<float>(*number);
}

}  // namespace ggufmill::huggingface
