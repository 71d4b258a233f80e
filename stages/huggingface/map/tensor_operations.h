#pragma once
// Named operations that a map applies to the values of tensors, and named functions that compute a tensor. Dimensions
// are numbered as in GGUF: 0 is the columns of a row.

#include <boost/json/value.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

struct TensorOperation {
  std::string_view name;
  std::size_t least;  // minimum number of arguments
  std::size_t most;
  std::string_view doc;
  // Errors carry neither a place nor a tensor name.
  Result<ExpressionRef> (*apply)(ExpressionRef input, std::span<const boost::json::value> arguments);
};
std::span<const TensorOperation> tensor_operations();  // sorted by name

struct TensorFunction {
  std::string_view name;
  std::size_t least;
  std::size_t most;
  std::string_view doc;
  Result<ExpressionRef> (*make)(std::span<const boost::json::value> arguments);
};
std::span<const TensorFunction> tensor_functions();  // sorted by name

}  // namespace ggufmill::huggingface
