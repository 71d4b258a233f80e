#pragma once
// Operations on the tensors of audio codecs: activations and codebooks. They read the values, which are F32 in files,
// and compute in single precision like torch.

#include <boost/json/value.hpp>
#include <span>

#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// exp(x) of every value.
Result<ExpressionRef> exp_of(ExpressionRef input, std::span<const boost::json::value> arguments);

// 1 / (exp(x) + a) of every value; the argument is a.
Result<ExpressionRef> reciprocal_exp(ExpressionRef input, std::span<const boost::json::value> arguments);

// Divides rows by one number each. `input`: one dimension, all rows followed by their divisors. Arguments: the number
// of rows, and the least divisor, which replaces smaller ones. Returns {columns, rows}.
Result<ExpressionRef> divide_rows(ExpressionRef input, std::span<const boost::json::value> arguments);

}  // namespace ggufmill::huggingface
