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

// Reads the bytes of a tensor in the file, at most 1 MiB: scales, biases. Errors carry no tensor name.
Result<std::vector<std::byte>> read_small_tensor(const Expression& tensor);

// Reads the values of an F32, F16 or BF16 tensor in the file, with the same limit: all, or `count` of them from the one
// with the index `first`, which must exist. Errors carry no tensor name.
Result<std::vector<float>> read_small_values(const Expression& tensor);
Result<std::vector<float>> read_small_values(const Expression& tensor, std::uint64_t first, std::uint64_t count);

// Like `cast`, but also accepts an input that already has the type.
Result<ExpressionRef> to_type(ExpressionRef input, std::string_view type);

}  // namespace ggufmill::huggingface
