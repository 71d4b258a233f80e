#pragma once
// What a map does to the values of tensors, by name: operations on one tensor, and functions that compute one.
// Dimensions are counted as in GGUF: 0 are the columns of a row.

#include <boost/json/value.hpp>
#include <span>
#include <string_view>
#include <vector>

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

// The bytes of a tensor of the file, of 1 MiB at most: scales, biases. The error has no tensor.
Result<std::vector<std::byte>> read_small_tensor(const Expression& tensor);

// The values of a tensor of the file of F32, F16 or BF16, as small. The error has no tensor.
Result<std::vector<float>> read_small_values(const Expression& tensor);

// `cast` that also takes what is of that type already.
Result<ExpressionRef> to_type(ExpressionRef input, std::string_view type);

}  // namespace ggufmill::huggingface
