#pragma once
// What a map does to the values of tensors, by name: operations on one tensor, and functions that compute one.
// Dimensions are counted as in GGUF: 0 are the columns of a row.

#include <boost/json/value.hpp>
#include <span>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

struct TensorOperation {
  std::string_view name;
  std::size_t least;  // arguments
  std::size_t most;
  std::string_view doc;
  // The error has no place and no tensor.
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

// `cast` that also takes what is of that type already.
Result<ExpressionRef> to_type(ExpressionRef input, std::string_view type);

}  // namespace ggufmill::huggingface
