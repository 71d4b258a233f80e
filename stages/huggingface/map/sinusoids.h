#pragma once
// The position embedding of audio encoders that do not store theirs.

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

}  // namespace ggufmill::huggingface
