#pragma once
// Common parts of the searches with a block per lane. Each lane computes what the searches of plugins/reference do,
// with masks in place of branches, so that a lane's results do not depend on the others.

#include <algorithm>
#include <cmath>

#include "plugins/reference/codec.h"
#include "plugins/reference/search_parts.h"
#include "plugins/reference/search_weights.h"
#include "plugins/simd/lane_doubles.h"
#include "plugins/simd/transpose.h"

namespace ggufmill::simd {

inline constexpr int kLaneStep = static_cast<int>(kLanes);

// A block of kCount values per lane, and the weights of their squared errors. `is_plain` is set if all of them are 1;
// then products with weights need not be computed.
template <int kCount>
struct SearchLanes {
  bool is_plain;
  alignas(64) float x[kCount * kLanes];
  alignas(64) float weights[kCount * kLanes];
};

inline Mask no_lanes() { return floats(0) > floats(0); }
inline Mask all_lanes() { return floats(0) == floats(0); }

// Like reference::nearest_within(), but that a result of zero may be negative, which no sum of a search shows.
inline Floats nearest_within(Floats value, Floats low, Floats high) {
  return hn::Round(lesser(greater(value, low), high));
}

// A number per lane in an array, for what is done one lane at a time.
template <class Number>
struct PerLane {
  alignas(64) Number at[kLanes] = {};

  PerLane() = default;
  explicit PerLane(Number value) {
    for (Number& each : at) each = value;
  }
};

inline PerLane<float> per_lane(Floats values) {
  PerLane<float> lanes;
  hn::Store(values, kFloats, lanes.at);
  return lanes;
}
inline Floats floats_of(const PerLane<float>& lanes) { return hn::Load(kFloats, lanes.at); }

// Lanes as a mask and as ones and zeros.
inline PerLane<float> per_lane(Mask mask) { return per_lane(or_zero(mask, floats(1))); }
inline Mask mask_of(const PerLane<float>& lanes) { return differ(floats_of(lanes), floats(0)); }

// Returns the sum of w x x of each lane, in element order.
template <int kCount>
LaneDoubles weighted_squares(const SearchLanes<kCount>& block) {
  LaneDoubles sums = doubles_of(floats(0));
  for (int i = 0; i < kCount; ++i) {
    const LaneDoubles x = doubles_of(hn::Load(kFloats, block.x + i * kLaneStep));
    sums = sums + doubles_of(hn::Load(kFloats, block.weights + i * kLaneStep)) * x * x;
  }
  return sums;
}

// The best one or two of the candidates that were offered, as reference::Best keeps them. A candidate has `error`,
// is_like() and chosen(mask, yes, no).
template <class Candidate>
struct BestOfLanes {
  Candidate best[2] = {};
  Mask has[2] = {no_lanes(), no_lanes()};

  // Offers a candidate to some lanes; `most` is how many are kept.
  void offer(Mask lanes, const Candidate& candidate, int most) {
    lanes = hn::AndNot(hn::And(has[0], candidate.is_like(best[0])), lanes);
    const Mask before_first = hn::Or(hn::Not(has[0]), candidate.error < best[0].error);
    if (most == 1) {
      put(hn::And(lanes, before_first), 0, candidate);
      return;
    }
    lanes = hn::AndNot(hn::And(has[1], candidate.is_like(best[1])), lanes);
    const Mask before_second = hn::And(lanes, hn::Or(hn::Not(has[1]), candidate.error < best[1].error));
    const Mask first = hn::And(before_second, before_first);
    put(hn::And(first, has[0]), 1, best[0]);
    put(first, 0, candidate);
    put(hn::AndNot(first, before_second), 1, candidate);
  }

  // Makes a candidate the only one of some lanes.
  void set(Mask lanes, const Candidate& candidate) {
    put(lanes, 0, candidate);
    has[1] = hn::AndNot(lanes, has[1]);
  }

 private:
  void put(Mask lanes, int at, const Candidate& candidate) {
    best[at] = Candidate::chosen(lanes, candidate, best[at]);
    has[at] = hn::Or(has[at], lanes);
  }
};

// Computes the codes of kLanes blocks, whose values are also at `x`. Where `found` is false, nothing was found, and the
// block is to be encoded by the codec itself.
template <class Codec, class Codes>
using LaneSearch = void (*)(const SearchLanes<Codec::kElements>& block, const float* const* x, std::uint32_t effort,
                            Codes* codes, bool* found);

// Encodes the rows of a call as one stream of blocks.
template <class Codec, class Codes>
class BlockStream {
 public:
  using Block = typename Codec::Block;
  static constexpr std::uint32_t kElements = Codec::kElements;

  BlockStream(const ggufmill_call& call, LaneSearch<Codec, Codes> search) : call_(call), search_(search) {}

  std::int32_t run() {
    const ggufmill_call& rows = call_;
    const std::uint64_t blocks = rows.rows * (rows.cols / kElements);
    auto* block = static_cast<Block*>(rows.dst);
    for (std::uint64_t done = 0; done < blocks; done += kLanes) {
      const std::uint64_t count = std::min<std::uint64_t>(kLanes, blocks - done);
      for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
        if (lane < count) read(done + lane);
        take(lane);
      }
      if (const std::int32_t status = encode(block + done, count); status != GGUFMILL_OK) return status;
    }
    return GGUFMILL_OK;
  }

 private:
  // Moves on to a block.
  void read(std::uint64_t at) {
    const ggufmill_call& rows = call_;
    const std::uint64_t blocks_a_row = rows.cols / kElements, column = at % blocks_a_row * kElements;
    const float* row = static_cast<const float*>(rows.src) + at / blocks_a_row * rows.cols;
    const bool needs_mean = Codec::kGgml.weighted == reference::GgmlWeights::kRootOfRow && rows.importance;
    if (needs_mean && column == 0) mean_square_ = reference::mean_square(row, rows.cols);
    next_x_ = row + column;
    next_importance_ = rows.importance ? rows.importance + column : nullptr;
  }

  void take(std::uint64_t lane) {
    x_[lane] = next_x_;
    importance_[lane] = next_importance_;
    if (!weighs_rows()) return;
    const reference::SearchRow row{call_.weights, call_.effort, mean_square_};
    reference::search_weights(Codec::kGgml, row, kElements, next_x_, next_importance_, weights_[lane]);
  }

  std::int32_t encode(Block* block, std::uint64_t count) {
    rows_to_lanes(x_, kElements, lanes_.x);
    weigh();
    lanes_.is_plain =
        call_.weights == GGUFMILL_WEIGHTS_PLAIN || (call_.weights == GGUFMILL_WEIGHTS_IMPORTANCE && !call_.importance);
    Codes codes[kLanes];
    bool found[kLanes];
    search_(lanes_, x_, call_.effort, codes, found);
    for (std::uint64_t lane = 0; lane < count; ++lane) {
      if (found[lane]) {
        Codec::put(codes[lane], block[lane]);
        continue;
      }
      // As a row of one block.
      const std::int32_t status = reference::encode_row<Codec>(x_[lane], kElements, importance_[lane], block + lane);
      if (status != GGUFMILL_OK) return status;
    }
    return GGUFMILL_OK;
  }

  // True if the weights are those of the reference encoder, which are computed one block after the other.
  bool weighs_rows() const { return call_.weights == GGUFMILL_WEIGHTS_GGML; }

  // Computes the weights in lanes as reference::search_weights() does.
  void weigh() {
    if (weighs_rows()) {
      const float* weights[kLanes];
      for (std::size_t lane = 0; lane < kLanes; ++lane) weights[lane] = weights_[lane];
      rows_to_lanes(weights, kElements, lanes_.weights);
      return;
    }
    // First, because its additions wait for each other, and what follows need not wait.
    const bool has_roots = call_.weights == GGUFMILL_WEIGHTS_QUARTER;
    const Floats spread = has_roots ? floats(2) * mean_square() : floats(0);
    const bool is_given = call_.importance && call_.weights != GGUFMILL_WEIGHTS_PLAIN;
    if (is_given)
      rows_to_lanes(importance_, kElements, lanes_.weights);
    else
      for (std::uint32_t i = 0; i < kElements; ++i) hn::Store(floats(1), kFloats, lanes_.weights + i * kLanes);
    if (!has_roots) return;
    for (std::uint32_t i = 0; i < kElements; ++i) {
      const Floats x = hn::Load(kFloats, lanes_.x + i * kLanes);
      const Floats root = hn::Sqrt(hn::Sqrt(spread + x * x));
      hn::Store(hn::Load(kFloats, lanes_.weights + i * kLanes) * root, kFloats, lanes_.weights + i * kLanes);
    }
  }

  Floats mean_square() const {
    Floats squares = floats(0);
    for (std::uint32_t i = 0; i < kElements; ++i) {
      const Floats x = hn::Load(kFloats, lanes_.x + i * kLanes);
      squares = squares + x * x;
    }
    return squares / floats(static_cast<float>(kElements));
  }

  const ggufmill_call& call_;
  LaneSearch<Codec, Codes> search_;
  float mean_square_ = 0;  // of the row, if needed
  const float* next_x_ = nullptr;
  const float* next_importance_ = nullptr;
  const float* x_[kLanes];
  const float* importance_[kLanes];
  alignas(64) float weights_[kLanes][kElements];
  SearchLanes<kElements> lanes_;
};

}  // namespace ggufmill::simd
