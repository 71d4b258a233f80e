#pragma once
// Resizes the position embedding of a square image, whose positions are the rows of a tensor.

#include <boost/json/value.hpp>
#include <span>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// Resizes {columns, side * side} or {columns, side * side, 1} to another side, bilinearly with aligned corners. A
// tensor that has the side is returned as it is; another becomes F32, computed in single precision with the fused
// multiply-adds of torch's kernel for AVX2, from a tensor in the file, four rows of which are read at a time.
// `arguments`: the side. Errors carry no tensor name. Source: conversion/nemotron.py of llama.cpp (MIT); torch,
// UpSampleKernel.cpp (BSD).
Result<ExpressionRef> resize_grid(ExpressionRef input, std::span<const boost::json::value> arguments);

}  // namespace ggufmill::huggingface
