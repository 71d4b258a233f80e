#pragma once
// How good levels are that were chosen with a covariance: losses on held-out vectors, and the trial that chooses the
// shrinkage by them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "plugins/abi/ggufmill_covariance.h"

namespace ggufmill {

// Calls a function for each of `count` numbers, in any order, and possibly in parallel.
using ForEach = std::function<void(std::uint64_t count, const std::function<void(std::uint64_t)>& each)>;

// Losses of some rows on the first and on the second half of the held-out vectors, which can be of different texts.
struct HalfLosses {
  double first = 0, second = 0;

  double sum() const { return first + second; }
  // Returns the greater share of the losses `start`; infinity if these are 0.
  double worst_share_of(const HalfLosses& start) const;
};

// Returns the losses of at most kLevelRows rows if `call.decoded` replaces `call.weights`. Sets the other members that
// say with which vectors; `vectors` has `call.cols` numbers for each.
HalfLosses losses_of(const ggufmill_covariance_kernels& kernels, ggufmill_loss_call call,
                     std::span<const float> vectors);

// The rows of the trial that chooses a shrinkage: random numbers, and their rounding to whole numbers, as rows of Q8_0
// whose scales are 1. The errors of a fine rounding do not depend much on what is rounded, so the trial stands for all
// matrices and types with this input.
class LevelTrial {
 public:
  static constexpr std::uint64_t kBlock = 32;  // columns of a block of Q8_0

  // `memory`: Covariance::trial_bytes(), aligned to 64 bytes. `columns`: a multiple of kBlock.
  LevelTrial(std::span<std::byte> memory, std::uint64_t columns);

  // Chooses the numbers with a metric, unless it is null, and returns the losses.
  HalfLosses losses(const ggufmill_covariance_kernels& kernels, const ggufmill_metric* metric,
                    std::span<const float> vectors, const ForEach& for_each);

 private:
  std::uint64_t row_bytes() const { return columns_ / kBlock * (kBlock + 2); }
  std::byte* block_of(std::uint64_t number) { return encoded_.data() + number / kBlock * (kBlock + 2); }

  std::uint64_t columns_;
  std::span<std::byte> chosen_;
  std::span<float> weights_;
  std::span<std::byte> encoded_;
};

}  // namespace ggufmill
