#pragma once
// Turns searches of one block into kernels for types where the reference encoder can find a smaller error: the better
// block is kept, as reference::search_rows() does. The blocks of the encoder are those of its vector kernel.

#include <algorithm>

#include "plugins/reference/search_rows.h"
#include "plugins/simd/lane_blocks.h"

namespace ggufmill::simd {

// `Codec` has a search, `Encoder` is the codec of the type with the vector kernel.
template <class Codec, class Encoder, reference::BlockSearch<Codec> kSearch>
class SearchBeside {
 public:
  explicit SearchBeside(const ggufmill_call& call) : call_(call) {
    static_assert(Codec::kGgml.weighted != reference::GgmlWeights::kRootOfRow);
  }

  std::int32_t run() {
    const ggufmill_call& rows = call_;
    const std::uint64_t blocks = rows.rows * (rows.cols / kElements);
    auto* block = static_cast<Block*>(rows.dst);
    for (std::uint64_t done = 0; done < blocks; done += kLanes) {
      const std::uint64_t count = std::min<std::uint64_t>(kLanes, blocks - done);
      for (std::uint64_t lane = 0; lane < kLanes; ++lane) take(lane, done + std::min(lane, count - 1));
      if (const std::int32_t status = encode(block + done, count); status != GGUFMILL_OK) return status;
    }
    return GGUFMILL_OK;
  }

 private:
  using Block = typename Codec::Block;
  static constexpr std::uint32_t kElements = Codec::kElements;

  // Makes a block of the call that of a lane.
  void take(std::uint64_t lane, std::uint64_t at) {
    const ggufmill_call& rows = call_;
    const std::uint64_t blocks_a_row = rows.cols / kElements, column = at % blocks_a_row * kElements;
    const float* const x = static_cast<const float*>(rows.src) + at / blocks_a_row * rows.cols + column;
    const float* const importance = rows.importance ? rows.importance + column : nullptr;
    reference::search_weights(Codec::kGgml, {call_.weights, call_.effort, 0.0f}, kElements, x, importance,
                              weights_[lane]);
    batch_.x[lane] = x;
    batch_.importance[lane] = reference::importance_for<Codec>(importance, weights_[lane]);
    batch_.weighted = batch_.importance[lane] != nullptr;
  }

  std::int32_t encode(Block* block, std::uint64_t count) {
    const bool keeps = reference::keeps_reference<Codec>(call_.effort);
    Block by_codec[kLanes];
    const bool is_encoded = keeps && Encoder::encode(batch_, by_codec, count) == GGUFMILL_OK;
    for (std::uint64_t lane = 0; lane < count; ++lane) {
      const float* const x = batch_.x[lane];
      const bool found = kSearch(x, weights_[lane], call_.effort, block[lane]);
      if (found && !keeps) continue;
      // If it fails for a block, the vector kernel says nothing about the others.
      const std::int32_t status =
          is_encoded ? GGUFMILL_OK
                     : reference::encode_row<Codec>(x, kElements, batch_.importance[lane], by_codec + lane);
      if (status != GGUFMILL_OK && !found) return status;
      if (!found || (status == GGUFMILL_OK && is_better(lane, by_codec[lane], block[lane])))
        block[lane] = by_codec[lane];
    }
    return GGUFMILL_OK;
  }

  bool is_better(std::uint64_t lane, const Block& one, const Block& other) const {
    return reference::error_of_block<Codec>(batch_.x[lane], weights_[lane], one) <
           reference::error_of_block<Codec>(batch_.x[lane], weights_[lane], other);
  }

  const ggufmill_call& call_;
  Batch<1> batch_{};
  float weights_[kLanes][kElements];
};

}  // namespace ggufmill::simd
