// IQ1_S, with the same results as plugins/reference/iq1_s.cpp, and with one super-block per lane.

#include "plugins/reference/iq_bits.h"
#include "plugins/simd/iq1_book.h"
#include "plugins/simd/iq1_types.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32;
constexpr int kSubBlocks = 8;
constexpr int kInFlight = 2;      // sub-blocks in flight; hides the latency of comparisons
constexpr float kMin = 1e-12f;    // a sub-block with a lower greatest magnitude becomes zero
constexpr float kFudge = 1.125f;  // factor of the stored scale
constexpr int kStep = static_cast<int>(kLanes);

// Sums over the sorted elements before each position, and the contribution of the elements from that position on to the
// least-squares sums.
class Sums {
 public:
  explicit Sums(const SortedLanes<kSub>& sorted) {
    Floats wx = floats(0), w = floats(0);
    for (int i = 0; i <= kSub; ++i) {
      hn::Store(wx, kFloats, wx_ + i * kStep);
      hn::Store(w, kFloats, w_ + i * kStep);
      if (i == kSub) break;
      wx = wx + sorted.weight(i) * sorted.x(i);
      w = w + sorted.weight(i);
    }
    for (int i = 0; i <= kSub; ++i) {
      for (unsigned shift = 0; shift < 2; ++shift) {
        const Floats value = floats(reference::kShiftedValues[shift][2]);
        hn::Store((wx - this->wx(i)) * value, kFloats, top_xq_[shift] + i * kStep);
        hn::Store((w - this->w(i)) * value * value, kFloats, top_qq_[shift] + i * kStep);
      }
    }
  }

  Floats wx(int i) const { return hn::Load(kFloats, wx_ + i * kStep); }
  Floats w(int i) const { return hn::Load(kFloats, w_ + i * kStep); }
  Floats top_xq(unsigned shift, int i) const { return hn::Load(kFloats, top_xq_[shift] + i * kStep); }
  Floats top_qq(unsigned shift, int i) const { return hn::Load(kFloats, top_qq_[shift] + i * kStep); }

 private:
  static constexpr int kSize = (kSub + 1) * kStep;
  alignas(64) float wx_[kSize], w_[kSize], top_xq_[2][kSize], top_qq_[2][kSize];
};

// Tries both shifts of all cuts.
void find_cuts(const Sums* sums, LaneCut* cuts) {
  for (int low = 0; low <= kSub; ++low) {
    Floats wx[kInFlight], w[kInFlight], xq[kInFlight][2], qq[kInFlight][2];
    for (int sub = 0; sub < kInFlight; ++sub) {
      wx[sub] = sums[sub].wx(low), w[sub] = sums[sub].w(low);
      for (unsigned shift = 0; shift < 2; ++shift) {
        const Floats value = floats(reference::kShiftedValues[shift][0]);
        xq[sub][shift] = wx[sub] * value, qq[sub][shift] = w[sub] * value * value;
      }
    }
    for (int high = low; high <= kSub; ++high) {
      for (int sub = 0; sub < kInFlight; ++sub) {
        const Floats value = floats(reference::kShiftedValues[0][1]);  // that of the other shift is its negative
        const Floats middle_xq = (sums[sub].wx(high) - wx[sub]) * value;
        const Floats middle_qq = (sums[sub].w(high) - w[sub]) * value * value;
        cuts[sub].consider(low, high, 0, xq[sub][0] + middle_xq + sums[sub].top_xq(0, high),
                           qq[sub][0] + middle_qq + sums[sub].top_qq(0, high));
        cuts[sub].consider(low, high, 1, xq[sub][1] - middle_xq + sums[sub].top_xq(1, high),
                           qq[sub][1] + middle_qq + sums[sub].top_qq(1, high));
      }
    }
  }
}

class Encoder {
 public:
  explicit Encoder(const Batch<1>& batch) : blocks_(batch) {}

  // Returns false on reference::kNoBookPoint.
  bool run() {
    const Floats mean_square = floats(2) * blocks_.sum_of_squares(0, 256) / floats(256);
    blocks_.weigh(0, 256, mean_square, weight_);
    for (int at = 0; at < kSubBlocks; at += kInFlight) {
      if (!encode_subs(at)) return false;
    }
    finish();
    return true;
  }

  void put(std::size_t lane, Iq1S::Block& block) const {
    block.d.bytes[0] = static_cast<std::uint8_t>(d_[lane]);
    block.d.bytes[1] = static_cast<std::uint8_t>(d_[lane] >> 8);
    for (int group = 0; group < 32; ++group) block.qs[group] = static_cast<std::uint8_t>(low_[group][lane]);
    for (int at = 0; at < kSubBlocks; ++at) {
      block.qh[2 * at] = static_cast<std::uint8_t>(high_[at][lane]);
      block.qh[2 * at + 1] = static_cast<std::uint8_t>(high_[at][lane] >> 8);
    }
  }

 private:
  bool encode_subs(int first) {
    const auto x = [&](int sub) { return blocks_.x((first + sub) * kSub); };
    const auto weight = [&](int sub) { return weight_ + (first + sub) * kSub * kStep; };
    const SortedLanes<kSub> sorted[kInFlight] = {{x(0), weight(0)}, {x(1), weight(1)}};
    const Sums sums[kInFlight] = {Sums(sorted[0]), Sums(sorted[1])};
    LaneCut cuts[kInFlight];
    find_cuts(sums, cuts);
    for (int sub = 0; sub < kInFlight; ++sub) {
      const Mask zeros = largest_magnitude<kSub>(x(sub)) < floats(kMin);
      cuts[sub].low = choose(zeros, ints(-1), cuts[sub].low);
      if (!take(first + sub, sorted[sub], cuts[sub], Iq1Sub<kSub>(x(sub), weight(sub)))) return false;
    }
    return true;
  }

  bool take(int at, const SortedLanes<kSub>& sorted, const LaneCut& cut, Iq1Sub<kSub> sub) {
    const Mask down = hn::Xor(mask_of(cut.shifts == words(1)), cut.scale < floats(0));
    const Mask shifted = hn::And(down, cut.found());
    if (!sub.take(sorted, cut, [&](int) { return shifted; })) return false;
    scales_[at] = sub.scale();
    Words high = choose(shifted, words(0x8000), words(0));
    for (int group = 0; group < 4; ++group) {
      const Words index = choose(cut.found(), sub.index(group), words(0));
      hn::Store(index, kWords, low_[4 * at + group]);
      high = high | hn::ShiftLeftSame(hn::ShiftRight<8>(index), 3 * group);
    }
    hn::Store(high, kWords, high_[at]);
    return true;
  }

  // Computes the scale of the super-block, and those of its sub-blocks relative to it. If all scales are 0, neither is
  // written.
  void finish() {
    Floats most = floats(0);
    for (const Floats scale : scales_) most = greater(most, scale);
    const Mask flat = most == floats(0);
    const Floats d = most / floats(15);
    const Floats inverse = floats(1) / d;
    hn::Store(choose(flat, words(0), floats_to_half(d * floats(kFudge))), kWords, d_);
    for (int at = 0; at < kSubBlocks; ++at) {
      const Words high = hn::Load(kWords, high_[at]);
      const Words level = hn::ShiftLeft<12>(iq1_scale_level(inverse, scales_[at]));
      hn::Store(choose(flat, high & words(0x7fff), high | level), kWords, high_[at]);
    }
  }

  SuperBlocks blocks_;
  Floats scales_[kSubBlocks];
  alignas(64) float weight_[256 * kLanes];
  alignas(64) std::uint32_t d_[kLanes];
  alignas(64) std::uint32_t low_[32][kLanes];
  alignas(64) std::uint32_t high_[kSubBlocks][kLanes];
};

}  // namespace

LatticeView<reference::Ternary> iq1_view() {
  static const LatticeTable<reference::Ternary, reference::kIq1Neighbours, Keep::kAll> table(reference::iq1_lattice());
  return table.view();
}

std::int32_t Iq1S::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  Encoder encoder(batch);
  if (!encoder.run()) return reference::kNoBookPoint;
  for (std::size_t lane = 0; lane < count; ++lane) encoder.put(lane, block[lane]);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::simd
