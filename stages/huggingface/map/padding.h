#pragma once
// Operations on tensors that add rows or matrices: of zeros, or copies.

#include <cstdint>

#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// Appends zeros to dimension 1 until it has `rows` entries; a tensor that already has as many is returned unchanged.
// Fails if more than 2^24 zeros are missing.
Result<ExpressionRef> pad_rows(ExpressionRef input, std::uint64_t rows);

// Inserts `count` entries of zeros before those of the last dimension: matrices for a stack of matrices. At most 2^24
// values.
Result<ExpressionRef> extend_front(ExpressionRef input, std::uint64_t count);

// Repeats a tensor `count` times along dimension 1; `count` is from 1 to 65536.
Result<ExpressionRef> repeat_rows(ExpressionRef input, std::uint64_t count);

}  // namespace ggufmill::huggingface
