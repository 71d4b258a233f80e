#pragma once
// Weights of BitNet: -1, 0 and 1 times a scale of the tensor.

#include <array>
#include <cstdint>
#include <span>

#include "pipeline/core/expression.h"

namespace ggufmill::huggingface {

// Sums values in single precision in the order in which torch's CPU kernel sums a contiguous tensor in one thread: in
// 32 sums, each added up in levels. Torch splits tensors of more than 32,768 values among its threads; the last bit of
// its sum then depends on their number. Source: aten/src/ATen/native/cpu/SumKernel.cpp of PyTorch (BSD-3-Clause).
class TorchSum {
 public:
  explicit TorchSum(std::uint64_t count);  // number of values that will be added
  void add(std::span<const float> values);
  float total() const;

 private:
  static constexpr std::size_t kLevels = 4, kVector = 8, kLanes = 4 * kVector;
  using Lanes = std::array<float, kLanes>;
  void add_lanes();

  std::uint64_t level_power_;
  std::uint64_t done_ = 0;  // additions to each lane
  std::array<Lanes, kLevels> levels_{};
  Lanes pending_{};
  std::size_t pending_count_ = 0;
};

// Unpacks ternary weights, four in a byte: the two lowest bits of all bytes are the weights of the first quarter of the
// rows, the next two those of the second, and so on; 0, 1, and 2 stand for -1, 0, and 1. The result is F32, divided by
// `scale`. `bytes`: U8 in a file, {columns, rows / 4}. Source: conversion/base.py of llama.cpp (MIT). Errors carry no
// tensor name.
Result<ExpressionRef> unpack_ternary(const ExpressionRef& bytes, float scale);

// Rounds every value to -1, 0 or 1 times the mean of the magnitudes, which is at least 1e-5; the result is F16 for
// F16, otherwise F32. Reads the tensor, which must be F32, F16 or BF16 in a file, or the result of unpack_ternary(), to
// compute the mean. Source: conversion/bitnet.py of llama.cpp (MIT). Errors carry no tensor name.
Result<ExpressionRef> ternary(ExpressionRef input);

}  // namespace ggufmill::huggingface
