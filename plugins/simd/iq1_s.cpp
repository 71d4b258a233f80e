// IQ1_S, with the same results as plugins/reference/iq1_s.cpp, and with one super-block per lane.

#include "plugins/reference/iq_bits.h"
#include "plugins/simd/iq1_book.h"
#include "plugins/simd/iq1_types.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32;
constexpr int kSubBlocks = 8;
constexpr float kMin = 1e-12f;    // a sub-block with a lower greatest magnitude becomes zero
constexpr float kFudge = 1.125f;  // factor of the stored scale
constexpr int kStep = static_cast<int>(kLanes);

// Sums over the sorted elements before each position, and the contribution of the elements from that position on to the
// least-squares sums.
class Sums {
 public:
  explicit Sums(const SortedLanes<kSub>& sorted) {
    Floats wx = floats(0), w = floats(0), least = floats(0);
    for (int i = 0; i <= kSub; ++i) {
      hn::Store(wx, kFloats, wx_ + i * kStep);
      hn::Store(w, kFloats, w_ + i * kStep);
      if (i == kSub) break;
      wx = wx + sorted.weight(i) * sorted.x(i);
      w = w + sorted.weight(i);
      least = hn::Min(least, wx);
    }
    magnitudes_ = wx - least - least;
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
  // Returns the sum of w |x|.
  Floats magnitudes() const { return magnitudes_; }

 private:
  static constexpr int kSize = (kSub + 1) * kStep;
  Floats magnitudes_;
  alignas(64) float wx_[kSize], w_[kSize], top_xq_[2][kSize], top_qq_[2][kSize];
};

// Search for the best cut. The score of a cut is xq^2 / qq. As neighbouring levels differ by one, and the middle one
// has the value +-a,
//
//   xq = (1 +- a) WX - wx(low) - wx(high),  qq = (1 +- a)^2 W + (1 -+ 2 a) w(low) - (1 +- 2 a) w(high)
//
// with the sums WX and W of all elements. This takes few operations. A cut is compared with the specification's sums
// only if this score is not more than 2^-10 below the best one so far.
//
// - Both kinds of sums differ by less than 8 u of the sum of w |x|, or of W, with u = 2^-24. Since qq is at least
//   a^2 W = W / 64, this is less than 2^-11 of a score above T if T W is at least 1 / 64 of the square of that sum.
// - The search starts from a score T that is 2^-9 below that of some cut, which skips cuts that a later one supersedes.
//   If this search and the specification's have not kept the same cut, then no cut so far was above both best scores
//   by more than rounding, 16 u. In this case, the 1122 comparisons have raised the scores by less than 1122 * 16 u T,
//   which does not reach the score of that cut.
//
// Other lanes, such as those with extreme values, compare all cuts.
class CutSearch {
 public:
  CutSearch(const SortedLanes<kSub>& sorted, const Sums& sums) : sums_(sums) {
    const Floats w = sums.w(kSub), size = sums.magnitudes() * sums.magnitudes();
    const Floats start = floats(1 - 0x1p-9f) * good_score(sorted);
    usual_ =
        hn::And(hn::And(size > floats(1e-20f), size < floats(1e20f)), hn::And(w > floats(1e-20f), w < floats(1e20f)));
    usual_ = hn::And(usual_, start * w > floats(0x1p-6f) * size);
    cut_.score = choose(usual_, start, cut_.score);
    set_least();
  }

  LaneCut run() {
    for (int low = 0; low <= kSub; ++low) {
      const Row row = row_of(low);
      int high = low;
      for (; high + 1 <= kSub; high += 2) {
        if (HWY_LIKELY(all(hn::Max(excess(row, high), excess(row, high + 1)) <= floats(0)))) continue;
        for (int i = high; i < high + 2; ++i) compare(low, i);
      }
      for (; high <= kSub; ++high)
        if (!all(excess(row, high) <= floats(0))) compare(low, high);
    }
    return cut_;
  }

 private:
  // The parts of the sums that depend on `low`, for both shifts.
  struct Row {
    Floats xq[2], qq[2];
  };

  Row row_of(int low) const {
    constexpr float a = reference::kIq1Shift;
    const Floats wx = sums_.wx(kSub), w = sums_.w(kSub), wx_low = sums_.wx(low), w_low = sums_.w(low);
    return {{hn::MulSub(wx, floats(1 + a), wx_low), hn::MulSub(wx, floats(1 - a), wx_low)},
            {hn::MulAdd(w, floats((1 + a) * (1 + a)), w_low * floats(1 - 2 * a)),
             hn::MulAdd(w, floats((1 - a) * (1 - a)), w_low * floats(1 + 2 * a))}};
  }

  // The sums of a cut, except for rounding.
  HWY_INLINE Floats xq(const Row& row, unsigned shift, int high) const { return row.xq[shift] - sums_.wx(high); }
  HWY_INLINE Floats qq(const Row& row, unsigned shift, int high) const {
    constexpr float a = reference::kIq1Shift;
    return hn::NegMulAdd(sums_.w(high), floats(shift == 0 ? 1 + 2 * a : 1 - 2 * a), row.qq[shift]);
  }

  // Returns a value above 0, or NaN, in the lanes where a cut may be better than the best one so far.
  HWY_INLINE Floats excess(const Row& row, int high) const {
    const Floats up = xq(row, 0, high), down = xq(row, 1, high);
    return hn::Max(hn::NegMulAdd(least_, qq(row, 0, high), up * up),
                   hn::NegMulAdd(least_, qq(row, 1, high), down * down));
  }

  // Returns the score of a cut that is hardly worse than the best one: starts from the best of a few cuts, and then
  // improves the levels for the scale and the scale for the levels.
  Floats good_score(const SortedLanes<kSub>& sorted) const {
    constexpr float a = reference::kIq1Shift;
    const Floats wx = sums_.wx(kSub), w = sums_.w(kSub);
    Floats best = floats(0), scale = floats(0), middle = floats(a);
    const auto keep = [&](Floats xq, Floats qq, float shift) {
      const Floats own = xq / qq, score = own * xq;
      const Mask better = score > best;
      best = hn::Max(score, best);
      scale = choose(better, own, scale);
      middle = choose(better, floats(shift), middle);
    };
    for (int low = 6; low <= 14; low += 4) {
      const Row row = row_of(low);
      for (int high = 18; high <= 26; high += 4) {
        keep(xq(row, 0, high), qq(row, 0, high), a);
        keep(xq(row, 1, high), qq(row, 1, high), -a);
      }
    }
    for (int round = 0; round < kRounds; ++round) {
      const Floats inverse = floats(1) / scale;
      Floats xl = floats(0), l = floats(0), l2 = floats(0);
      for (int i = 0; i < kSub; ++i) {
        const Floats x = sorted.x(i), exact = hn::MulSub(x, inverse, middle);
        const Floats level = hn::Round(hn::Min(hn::Max(exact, floats(-1)), floats(1)));
        const Floats wl = sorted.weight(i) * level;
        xl = hn::MulAdd(x, wl, xl);
        l = l + wl;
        l2 = hn::MulAdd(wl, level, l2);
      }
      const Floats xq = hn::MulAdd(middle, wx, xl);
      const Floats qq = hn::MulAdd(middle, hn::MulAdd(middle, w, l + l), l2);
      scale = xq / qq;
      best = hn::Max(scale * xq, best);
    }
    return best;
  }

  // Tries both shifts of a cut.
  void compare(int low, int high) {
    const auto of = [](Floats sum, unsigned shift, std::size_t level) {
      return sum * floats(reference::kShiftedValues[shift][level]);
    };
    const Floats wx = sums_.wx(low), w = sums_.w(low);
    const Floats wx1 = sums_.wx(high) - wx, w1 = sums_.w(high) - w;
    for (unsigned shift = 0; shift < 2; ++shift)
      cut_.consider(low, high, shift, of(wx, shift, 0) + of(wx1, shift, 1) + sums_.top_xq(shift, high),
                    of(of(w, shift, 0), shift, 0) + of(of(w1, shift, 1), shift, 1) + sums_.top_qq(shift, high));
    set_least();
  }

  static constexpr int kRounds = 2;

  void set_least() { least_ = choose(usual_, cut_.score * floats(1 - 0x1p-10f), floats(-FLT_MAX)); }

  const Sums& sums_;
  LaneCut cut_;
  Mask usual_;
  Floats least_;  // score of cuts to compare
};

class Encoder {
 public:
  explicit Encoder(const Batch<1>& batch) : blocks_(batch) {}

  // Returns false on reference::kNoBookPoint.
  bool run() {
    const Floats mean_square = floats(2) * blocks_.sum_of_squares(0, 256) / floats(256);
    blocks_.weigh(0, 256, mean_square, weight_);
    for (int at = 0; at < kSubBlocks; ++at)
      if (!encode_sub(at)) return false;
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
  bool encode_sub(int at) {
    const float* x = blocks_.x(at * kSub);
    const float* weight = weight_ + at * kSub * kStep;
    const SortedLanes<kSub> sorted(x, weight);
    const Sums sums(sorted);
    LaneCut cut = CutSearch(sorted, sums).run();
    cut.low = choose(largest_magnitude<kSub>(x) < floats(kMin), ints(-1), cut.low);
    return take(at, sorted, cut, Iq1Sub<kSub>(x, weight));
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

LatticeView<reference::Ternary> iq1_rounded_view() {
  static const LatticeTable<reference::Ternary, reference::kIq1Neighbours, Keep::kNearestToRounded> table(
      reference::iq1_lattice());
  return table.view();
}

std::int32_t Iq1S::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  Encoder encoder(batch);
  if (!encoder.run()) return reference::kNoBookPoint;
  for (std::size_t lane = 0; lane < count; ++lane) encoder.put(lane, block[lane]);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::simd
