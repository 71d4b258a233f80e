#pragma once
// Encoder of the IQ2 and IQ3 types, with the same results as plugins/reference/iq_codec.h, and with one super-block per
// lane. A format is a reference format (iq_format.h) with these additions:
//
//   static LatticeView<Space> view();                              // table of the book
//   static Floats plain_weight(Floats x, Floats mean_square);      // unless the type needs importance

#include "plugins/reference/iq_codec.h"
#include "plugins/simd/lane_blocks.h"
#include "plugins/simd/lattice_scale.h"

namespace ggufmill::simd {

template <class Format>
class LatticeEncoder {
 public:
  using Input = LatticeInput<Format>;
  using Scale = LatticeScale<Format>;
  using Block = typename Format::Block;

  LatticeEncoder(const Batch<1>& batch, const LatticeView<typename Input::Space>& lattice)
      : weighted_(batch.weighted), scale_(lattice) {
    rows_to_lanes(batch.x, 256, x_);
    if (weighted_) rows_to_lanes(batch.importance, 256, importance_);
  }

  std::int32_t run(Block* blocks, std::size_t count) {
    Floats squares = floats(0);
    for (int i = 0; i < 256; ++i) {
      const Floats x = hn::Load(kFloats, x_ + i * kStep);
      squares = squares + x * x;
    }
    const Floats mean_square = floats(Format::kMeanFactor) * squares / floats(256);
    for (int at = 0; at < kSubBlocks; at += Scale::kSubs) {
      for (int sub = 0; sub < Scale::kSubs; ++sub) {
        const int first = (at + sub) * Input::kCount * kStep;
        inputs_[sub].prepare(x_ + first, weighted_ ? importance_ + first : nullptr, mean_square);
      }
      if (!scale_.find(inputs_)) return reference::kNoBookPoint;
      for (int sub = 0; sub < Scale::kSubs; ++sub) keep(at + sub, sub);
    }
    for (std::size_t lane = 0; lane < count; ++lane) put(lane, blocks[lane]);
    return GGUFMILL_OK;
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr int kSubBlocks = 256 / Input::kCount;

  void keep(int at, int sub) {
    hn::Store(scale_.scale(sub), kFloats, scales_[at]);
    hn::Store(choose(scale_.zeros(sub), words(1), words(0)), kWords, zeros_[at]);
    for (int group = 0; group < Scale::kGroups; ++group)
      hn::Store(scale_.index(sub, group), kWords, indices_[at * Scale::kGroups + group]);
    for (int eight = 0; eight < Input::kSigns; ++eight)
      hn::Store(inputs_[sub].signs(eight), kWords, signs_[at * Input::kSigns + eight]);
  }

  void put(std::size_t lane, Block& block) const {
    block = {};
    float scales[kSubBlocks];
    [[maybe_unused]] unsigned zeros = 0;
    for (int at = 0; at < kSubBlocks; ++at) {
      scales[at] = scales_[at][lane];
      zeros |= zeros_[at][lane] << at;
      if (zeros_[at][lane]) continue;
      for (int group = at * Scale::kGroups; group < (at + 1) * Scale::kGroups; ++group)
        Format::put_index(block, group, indices_[group][lane]);
      for (int eight = at * Input::kSigns; eight < (at + 1) * Input::kSigns; ++eight)
        Format::put_signs(block, eight, signs_[eight][lane]);
    }
    if constexpr (requires { Format::close_gaps(block, zeros); }) Format::close_gaps(block, zeros);
    reference::put_scales<Format>(scales, block);
  }

  bool weighted_;
  Input inputs_[Scale::kSubs];
  Scale scale_;
  alignas(64) float x_[256 * kLanes];
  alignas(64) float importance_[256 * kLanes];
  alignas(64) float scales_[kSubBlocks][kLanes];
  alignas(64) std::uint32_t zeros_[kSubBlocks][kLanes];
  alignas(64) std::uint32_t indices_[kSubBlocks * Scale::kGroups][kLanes];
  alignas(64) std::uint32_t signs_[32][kLanes];
};

// Returns a kernel status, like reference::LatticeCodec::encode. `Format::view()` returns the table of the book.
template <class Format>
std::int32_t encode_lattice(const Batch<1>& batch, typename Format::Block* blocks, std::size_t count) {
  return LatticeEncoder<Format>(batch, Format::view()).run(blocks, count);
}

}  // namespace ggufmill::simd
