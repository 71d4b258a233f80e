#pragma once
// Folds the statistics of a batch normalization into its weight and bias, in single precision with an epsilon of 1e-5,
// as conversion/gemma.py of llama.cpp (MIT) does. The input is the concatenation of small one-dimensional tensors of
// equal length. Errors carry no tensor name.

#include <boost/json/value.hpp>
#include <span>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// Computes from weight and variance: weight / sqrt(variance + epsilon).
Result<ExpressionRef> batch_norm_scale(ExpressionRef input, std::span<const boost::json::value>);

// Computes from weight, variance, bias, and mean: bias - mean * scale.
Result<ExpressionRef> batch_norm_shift(ExpressionRef input, std::span<const boost::json::value>);

}  // namespace ggufmill::huggingface
