#pragma once
// The arguments of operations and functions on tensors, and the operations by kind.

#include <boost/json/value.hpp>
#include <cstdint>
#include <span>

#include "pipeline/core/error.h"
#include "stages/huggingface/map/tensor_operations.h"

namespace ggufmill::huggingface {

std::span<const TensorOperation> shape_operations();
std::span<const TensorOperation> value_operations();
std::span<const TensorOperation> codec_operations();

using Arguments = std::span<const boost::json::value>;

// Return an argument as an integer from 0 to 2^63 - 1, or as a number that F32 can represent. Errors carry no place.
Result<std::uint64_t> whole_argument(const boost::json::value& value);
Result<float> float_argument(const boost::json::value& value);

}  // namespace ggufmill::huggingface
