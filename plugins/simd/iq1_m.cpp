// IQ1_M, with the same results as plugins/reference/iq1_m.cpp, and with one super-block per lane.

#include "plugins/reference/iq_bits.h"
#include "plugins/simd/iq1_book.h"
#include "plugins/simd/iq1_m_cuts.h"
#include "plugins/simd/iq1_types.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = kIq1MSub;
constexpr int kSubBlocks = 16;
constexpr float kMin = 1e-7f;      // a sub-block with a lower greatest magnitude becomes zero
constexpr float kFudge = 1.1125f;  // factor of the stored scale
constexpr int kStep = static_cast<int>(kLanes);

class Encoder {
 public:
  explicit Encoder(const Batch<1>& batch) : blocks_(batch) {}

  // Returns false on reference::kNoBookPoint.
  bool run() {
    weigh();
    for (int at = 0; at < kSubBlocks; ++at)
      if (!encode_sub(at)) return false;
    put_scales();
    return true;
  }

  void put(std::size_t lane, Iq1M::Block& block) const {
    for (int group = 0; group < 32; ++group) block.qs[group] = static_cast<std::uint8_t>(low_[group][lane]);
    for (int at = 0; at < kSubBlocks; ++at) block.qh[at] = static_cast<std::uint8_t>(high_[at][lane]);
    for (int i = 0; i < 4; ++i) {
      block.scales[2 * i] = static_cast<std::uint8_t>(scales16_[i][lane]);
      block.scales[2 * i + 1] = static_cast<std::uint8_t>(scales16_[i][lane] >> 8);
    }
  }

 private:
  Floats weight(int i) const { return hn::Load(kFloats, weight_ + i * kStep); }

  void weigh() {
    if (blocks_.weighted()) {
      blocks_.weigh(0, 256, floats(2) * blocks_.sum_of_squares(0, 256) / floats(256), weight_);
      return;
    }
    for (int i = 0; i < 256; ++i) hn::Store(blocks_.at(i) * blocks_.at(i), kFloats, weight_ + i * kStep);
  }

  bool encode_sub(int at) {
    const float* x = blocks_.x(kSub * at);
    const float* weight = weight_ + kSub * at * kStep;
    const SortedLanes<kSub> sorted(x, weight);
    const Iq1MSums sums(sorted);
    LaneCut cut = Iq1MCuts(sums).best();
    cut.low = choose(largest_magnitude<kSub>(x) < floats(kMin), ints(-1), cut.low);
    const Words turned = choose(cut.scale < floats(0), cut.shifts ^ words(kIq1MWays - 1), cut.shifts);
    const Words ways = choose(cut.found(), turned, words(0));
    Iq1Sub<kSub> sub(x, weight);
    const auto down = [&](int group) { return mask_of((ways & words(2u >> group)) == words(2u >> group)); };
    if (!sub.take(sorted, cut, down)) return false;
    keep(at, sub, ways);
    return true;
  }

  void keep(int at, const Iq1Sub<kSub>& sub, Words ways) {
    scales_[at] = sub.scale();
    for (int i = 0; i < kSub; ++i) hn::Store(sub.value(i), kFloats, value_ + (kSub * at + i) * kStep);
    const Words first = sub.index(0), second = sub.index(1);
    hn::Store(first, kWords, low_[2 * at]);
    hn::Store(second, kWords, low_[2 * at + 1]);
    const Words shifts = hn::ShiftLeft<2>(ways & words(2)) | hn::ShiftLeft<7>(ways & words(1));
    hn::Store(hn::ShiftRight<8>(first) | hn::ShiftLeft<4>(hn::ShiftRight<8>(second)) | shifts, kWords, high_[at]);
  }

  // Computes the scales relative to the largest one, and then the super-block scale that best fits them. If all scales
  // are 0, neither the scales nor the shifts are written.
  void put_scales() {
    Floats most = floats(0);
    for (const Floats scale : scales_) most = greater(most, scale);
    const Mask some = most > floats(0);
    Floats d = most / floats(15);
    const Floats inverse = floats(1) / d;
    Words packed[4] = {words(0), words(0), words(0), words(0)};
    Floats xq = floats(0), qq = floats(0);
    for (int at = 0; at < kSubBlocks; ++at) {
      const Words level = iq1_scale_level(inverse, scales_[at]);
      packed[at / 4] = packed[at / 4] | hn::ShiftLeftSame(level, at % 4 * 3);
      const Floats factor = to_floats(as_ints(level + level + words(1)));
      for (int i = kSub * at; i < kSub * (at + 1); ++i) {
        const Floats q = hn::Load(kFloats, value_ + i * kStep) * factor;
        const Floats wq = weight(i) * q;
        xq = xq + wq * blocks_.at(i);
        qq = qq + wq * q;
      }
      const Words high = hn::Load(kWords, high_[at]);
      hn::Store(choose(some, high, high & words(0x77)), kWords, high_[at]);
    }
    d = choose(qq > floats(0), xq / qq, d);
    const Words half = floats_to_half(d * floats(kFudge));
    for (int i = 0; i < 4; ++i) {
      const Words nibble = hn::ShiftLeft<12>(hn::ShiftRightSame(half, 4 * i) & words(15));
      hn::Store(choose(some, packed[i] | nibble, words(0)), kWords, scales16_[i]);
    }
  }

  SuperBlocks blocks_;
  Floats scales_[kSubBlocks];
  alignas(64) float weight_[256 * kLanes];
  alignas(64) float value_[256 * kLanes];  // values of the book points, before scaling
  alignas(64) std::uint32_t low_[32][kLanes];
  alignas(64) std::uint32_t high_[kSubBlocks][kLanes];
  alignas(64) std::uint32_t scales16_[4][kLanes];
};

}  // namespace

std::int32_t Iq1M::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  Encoder encoder(batch);
  if (!encoder.run()) return reference::kNoBookPoint;
  for (std::size_t lane = 0; lane < count; ++lane) encoder.put(lane, block[lane]);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::simd
