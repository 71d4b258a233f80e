#pragma once
// The tensors of a checkpoint under their names in it, and the values of small ones.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

struct NamedTensor {
  std::string name;
  ExpressionRef values;
  bool was_fp8 = false;              // its numbers were stored in 8 bits
  bool first = false;                // written before all others, including computed tensors
  const TypeInfo* stored = nullptr;  // its type in the file; null if it was assembled
  // Further tensors of one number each. Each follows the tensor under its name, with the given ending in place of
  // '.weight', and is omitted if it is 1. When tensors are stacked, their numbers are concatenated into one tensor.
  std::vector<std::pair<std::string, ExpressionRef>> beside{};
  bool weights_only = false;  // NVFP4 made for activations that are not quantized (W4A16)
};

// Reads the bytes of a tensor in the file, at most 1 MiB: scales, biases. Errors carry no tensor name.
Result<std::vector<std::byte>> read_small_tensor(const Expression& tensor);

// Reads the values of an F32, F16 or BF16 tensor in the file, with the same limit: all, or `count` of them from the one
// with the index `first`, which must exist. Errors carry no tensor name.
Result<std::vector<float>> read_small_values(const Expression& tensor);
Result<std::vector<float>> read_small_values(const Expression& tensor, std::uint64_t first, std::uint64_t count);

// Reads the values of an I64 tensor in the file, with the same limit. Errors carry no tensor name.
Result<std::vector<std::int64_t>> read_small_integers(const Expression& tensor);

// Returns the first value of `from` that is NaN or infinite, or else `made`, which is computed from them: a result has
// to show such a value to the checks of a run, and 1 / infinity would hide it.
float showing_nonfinite(float made, std::initializer_list<float> from);

// Like `cast`, but also accepts an input that already has the type.
Result<ExpressionRef> to_type(ExpressionRef input, std::string_view type);

// Fails with exit code 4 if a tensor has no elements. `where` is for messages: the checkpoint's folder.
Status check_not_empty(const std::vector<NamedTensor>& tensors, const std::string& where);

}  // namespace ggufmill::huggingface
