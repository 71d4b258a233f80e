#pragma once
// Encoders of types whose rows have a scale in their header, in two passes. The first one finds the scales of the
// sub-blocks; it takes most of the time and has one super-block per lane, of any rows. The second one has one row per
// lane: it computes the scale of the row, the codes and levels, and their sums in the order of the row.
//
//   struct IQ4_KS : ik::IQ4_KS {
//     static void search(const Batch<1>& batch, LaneScales& found);    // the first pass, for kLanes super-blocks
//     class Rows {                                                      // the second pass, for kLanes rows
//       explicit Rows(const RowScales& found);
//       void encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block);  // the next super-block
//       Words header() const;                                           // its bytes, after the last super-block
//     };
//   };

#include <utility>
#include <vector>

#include "plugins/ik/row_codec.h"
#include "plugins/ik/simd/sub_blocks.h"

namespace ggufmill::simd {

// The scales of the sub-blocks of one super-block in each lane.
struct LaneScales {
  static constexpr int kCount = 8;  // sub-blocks
  Floats scale[kCount];
  Words shifted;              // bit b: sub-block b uses the shifted table
  Floats of_weights[kCount];  // sums of weights, for codecs that need them

  Mask is_shifted(int b) const { return mask_of((shifted & words(1u << b)) != words(0)); }
};

// The scales of rows, one in each lane.
class RowScales {
 public:
  explicit RowScales(std::uint64_t blocks) : stored_(blocks) {}

  std::uint64_t size() const { return stored_.size(); }
  LaneScales operator[](std::uint64_t block) const {
    LaneScales scales;
    const Stored& stored = stored_[block];
    for (int b = 0; b < LaneScales::kCount; ++b) {
      scales.scale[b] = hn::LoadU(kFloats, stored.scale[b]);
      scales.of_weights[b] = hn::LoadU(kFloats, stored.of_weights[b]);
    }
    scales.shifted = hn::LoadU(kWords, stored.shifted);
    return scales;
  }

  // Returns the scale of a sub-block of the row, and the sum of its weights.
  std::pair<Floats, Floats> scale_and_weight(std::uint64_t sub_block) const {
    const Stored& stored = stored_[sub_block / LaneScales::kCount];
    const std::size_t b = sub_block % LaneScales::kCount;
    return {hn::LoadU(kFloats, stored.scale[b]), hn::LoadU(kFloats, stored.of_weights[b])};
  }
  // Returns the scale of greatest magnitude, with its sign; the first of several.
  Floats extreme() const {
    Extreme extreme;
    for (const Stored& stored : stored_)
      for (const auto& scale : stored.scale) extreme.add(hn::LoadU(kFloats, scale));
    return extreme.value;
  }

  struct Stored {
    float scale[LaneScales::kCount][kLanes], of_weights[LaneScales::kCount][kLanes];
    std::uint32_t shifted[kLanes];

    void store(const LaneScales& scales) {
      for (int b = 0; b < LaneScales::kCount; ++b) {
        hn::StoreU(scales.scale[b], kFloats, scale[b]);
        hn::StoreU(scales.of_weights[b], kFloats, of_weights[b]);
      }
      hn::StoreU(scales.shifted, kWords, shifted);
    }
    // Copies one lane of another.
    void copy(std::size_t lane, const Stored& from, std::size_t from_lane) {
      for (int b = 0; b < LaneScales::kCount; ++b) {
        scale[b][lane] = from.scale[b][from_lane];
        of_weights[b][lane] = from.of_weights[b][from_lane];
      }
      shifted[lane] = from.shifted[from_lane];
    }
  };
  Stored& stored(std::uint64_t block) { return stored_[block]; }

 private:
  std::vector<Stored> stored_;
};

template <class Codec>
class RowEncoder {
 public:
  explicit RowEncoder(const ggufmill_call& call)
      : call_(call), blocks_(call.cols / Codec::kElements), found_((call.rows * blocks_ + kLanes - 1) / kLanes) {}

  void run() {
    for (std::uint64_t first = 0; first < call_.rows * blocks_; first += kLanes) {
      LaneScales scales{};
      Codec::search(batch([&](std::uint64_t lane) { return first + lane; }), scales);
      found_[first / kLanes].store(scales);
    }
    for (std::uint64_t first = 0; first < call_.rows; first += kLanes) encode(first);
  }

 private:
  using Header = typename Codec::Header;
  using Block = typename Codec::Block;

  // Returns a batch of super-blocks; number_of() returns the number of that of a lane. Those after the last one are
  // replaced by it.
  template <class NumberOf>
  Batch<1> batch(const NumberOf& number_of) const {
    Batch<1> batch{};
    batch.weighted = call_.importance != nullptr;
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t number = std::min(number_of(lane), call_.rows * blocks_ - 1);
      batch.x[lane] = static_cast<const float*>(call_.src) + number * Codec::kElements;
      if (batch.weighted) batch.importance[lane] = call_.importance + number % blocks_ * Codec::kElements;
    }
    return batch;
  }

  std::uint64_t number_of(std::uint64_t row, std::uint64_t block) const {
    return std::min(row, call_.rows - 1) * blocks_ + block;
  }

  // Encodes kLanes rows, or those that are left.
  void encode(std::uint64_t first) {
    RowScales scales(blocks_);
    for (std::uint64_t block = 0; block < blocks_; ++block)
      for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
        const std::uint64_t from = number_of(first + lane, block);
        scales.stored(block).copy(lane, found_[from / kLanes], from % kLanes);
      }
    const std::uint64_t row_bytes = sizeof(Header) + blocks_ * sizeof(Block);
    const std::uint64_t count = std::min<std::uint64_t>(kLanes, call_.rows - first);
    auto* const rows = static_cast<std::uint8_t*>(call_.dst) + first * row_bytes;
    typename Codec::Rows encoder(scales);
    for (std::uint64_t block = 0; block < blocks_; ++block) {
      LaneBlocks<Block> packed;
      encoder.encode(batch([&](std::uint64_t lane) { return number_of(first + lane, block); }), scales[block], packed);
      packed.store(rows + sizeof(Header) + block * sizeof(Block), count, row_bytes);
    }
    alignas(64) std::uint32_t headers[kLanes];
    hn::Store(encoder.header(), kWords, headers);
    for (std::uint64_t lane = 0; lane < count; ++lane)
      std::memcpy(rows + lane * row_bytes, headers + lane, sizeof(Header));
  }

  const ggufmill_call& call_;
  std::uint64_t blocks_;  // super-blocks of a row
  std::vector<RowScales::Stored> found_;
};

template <class Codec>
int32_t encode_rows_twice(const ggufmill_call* call) {
  RowEncoder<Codec>(*call).run();
  return GGUFMILL_OK;
}

// Returns a decoder and an encoder for each codec; the decoder is the codec's decode_row().
template <class... Codecs>
constexpr std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> row_kernels_of() {
  std::array<ggufmill_kernel, 2 * sizeof...(Codecs)> kernels{};
  std::size_t count = 0;
  ((kernels[count++] = ik::row_kernel_of<Codecs>(GGUFMILL_DECODE, 0, ik::decode_rows<Codecs>),
    kernels[count++] = ik::row_kernel_of<Codecs>(GGUFMILL_ENCODE, Codecs::kFlags, encode_rows_twice<Codecs>)),
   ...);
  return kernels;
}

}  // namespace ggufmill::simd
