#pragma once
// Tensors that maps compute: the positions of audio encoders that do not store theirs, position grids of another size,
// and batch norms as a scale and a shift.

#include <boost/json/value.hpp>
#include <span>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// Makes {values, positions} of F32: for every position t, the sines, then the cosines, of t times the frequencies,
// which decrease from 1 to 1/10000. Computed in single precision with correctly rounded functions, which torch's come
// closest to. `arguments`: positions, values of each. Errors carry no tensor name. Source: conversion/qwenvl.py of
// llama.cpp (MIT).
Result<ExpressionRef> sinusoids(std::span<const boost::json::value> arguments);

// Resizes {columns, side * side} or {columns, side * side, 1} to another side, bilinearly with aligned corners. A
// tensor that has the side is returned as it is; another becomes F32, computed in single precision with the fused
// multiply-adds of torch's kernel for AVX2, from a tensor in the file, four rows of which are read at a time.
// `arguments`: the side. Errors carry no tensor name. Source: conversion/nemotron.py of llama.cpp (MIT); torch,
// UpSampleKernel.cpp (BSD).
Result<ExpressionRef> resize_grid(ExpressionRef input, std::span<const boost::json::value> arguments);

// Computes from weight and variance: weight / sqrt(variance + epsilon).
Result<ExpressionRef> batch_norm_scale(ExpressionRef input, std::span<const boost::json::value>);

// Computes from weight, variance, bias, and mean: bias - mean * scale.
Result<ExpressionRef> batch_norm_shift(ExpressionRef input, std::span<const boost::json::value>);

}  // namespace ggufmill::huggingface
