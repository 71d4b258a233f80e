#pragma once
// Shared by the encoders of rows with a header: rows of super-blocks of 256 weights in sub-blocks of 32.

#include <cmath>
#include <cstdint>
#include <vector>

#include "plugins/ik/nonlinear.h"

namespace ggufmill::ik {

// The scales of the sub-blocks of a row, and the weights of the super-block that is looked at.
class Row {
 public:
  static constexpr int kSuperBlock = 256, kSubBlock = 32, kSubBlocks = 8;  // sub-blocks of a super-block
  static constexpr Weighting kWeighting{2, Without::kSquares};             // of most types

  Row(const float* x, const float* importance, std::uint64_t blocks, const Weighting& weighting = kWeighting)
      : x_(x), importance_(importance), weighting_(weighting), found_(blocks * kSubBlocks) {}

  template <std::size_t kSize>
  void search(const Tables<kSize>& tables, int tries, Start start) {
    for (std::uint64_t block = 0; block < found_.size() / kSubBlocks; ++block) {
      weigh(block);
      for (int b = 0; b < kSubBlocks; ++b)
        found(block, b) = search_tables(tables, kSubBlock, values(block, b), weights(b), tries, 1, start);
    }
  }

  SubBlockScale& found(std::uint64_t block, int b) { return found_[block * kSubBlocks + static_cast<unsigned>(b)]; }
  const float* values(std::uint64_t block, int b) const { return x_ + block * kSuperBlock + b * kSubBlock; }
  const float* weights(int b) const { return weights_ + b * kSubBlock; }
  // Computes the weights of a super-block.
  void weigh(std::uint64_t block) {
    const float* const importance = importance_ ? importance_ + block * kSuperBlock : nullptr;
    make_weights<kSuperBlock>(weighting_, kSubBlock, x_ + block * kSuperBlock, importance, weights_);
  }

  // Returns the scale of greatest magnitude, with its sign; the first of several. Scales that are NaN do not count.
  float extreme() const { return extreme_of(found_, &SubBlockScale::scale); }

 private:
  const float *x_, *importance_;
  const Weighting weighting_;
  std::vector<SubBlockScale> found_;
  float weights_[kSuperBlock] = {};
};

}  // namespace ggufmill::ik
