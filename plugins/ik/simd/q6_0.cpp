// Q6_0. The encoder has one block per lane, and the same sums in the same order as ik::Q6_0::encode_weighted().

#include "plugins/ik/nonlinear.h"
#include "plugins/ik/simd/simple_types.h"
#include "plugins/ik/simd/sub_blocks.h"
#include "plugins/simd/bytes.h"

namespace ggufmill::simd {
namespace {

constexpr int kLimit = 32, kCount = 32, kStep = static_cast<int>(kLanes);

struct CodeSums {
  Floats qx = floats(0), q2 = floats(0);
};

// Codes for values x ~ scale * code, in [-kLimit, kLimit - 1].
class CodeSearch {
 public:
  // The weights are those of the squared errors, in lanes as the values.
  CodeSearch(const float* x, const float* weights) {
    for (int i = 0; i < kCount; ++i) {
      Value& value = values_[i];
      const Floats w = hn::Load(kFloats, weights + i * kStep), value_x = hn::Load(kFloats, x + i * kStep);
      hn::Store(value_x, kFloats, value.x);
      hn::Store(w, kFloats, value.w);
      hn::Store(w * value_x, kFloats, value.wx);
    }
  }

  // Returns the scale.
  Floats run() {
    Floats magnitude;
    const Floats extreme = simd::extreme<kCount>([&](int i) { return hn::Load(kFloats, values_[i].x); }, magnitude);
    const Mask is_zero = magnitude < floats(1e-15f);
    const Floats first = floats(-kLimit) / extreme;
    inverse_ = first;
    sums_ = sums_of<1>(&first).at[0];
    const Mask fits = differ(sums_.q2, floats(0));
    best_.scale = or_zero(fits, sums_.qx / sums_.q2);
    best_.score = or_zero(fits, best_.scale * sums_.qx);
    for (int i = -9; i <= 9; i += kAtOnce / 2) {
      Floats inverses[kAtOnce];
      GGUFMILL_UNROLL
      for (int t = 0; t < kAtOnce / 2; ++t) {
        const float change = 0.1f * static_cast<float>(i + t);
        inverses[2 * t] = floats(-(kLimit + change)) / extreme;
        inverses[2 * t + 1] = floats(kLimit - 1 + change) / extreme;
      }
      const Trials<kAtOnce> trials = sums_of<kAtOnce>(inverses);
      for (int t = 0; t < kAtOnce && i + t / 2 <= 9; ++t) take(trials.at[t], inverses[t]);
    }
    for (int i = 0; i < kCount; ++i) {
      const Floats code = code_of(inverse_ * hn::Load(kFloats, values_[i].x));
      hn::Store(choose(is_zero, floats(-kLimit), code), kFloats, values_[i].code);
    }
    Mask goes_on = hn::Not(is_zero);
    for (int i = 0; i < kCount * (2 * kLimit - 1) && any(goes_on); ++i) goes_on = step(goes_on);
    return hn::IfThenZeroElse(is_zero, best_.scale);
  }

  Floats code(int i) const { return hn::Load(kFloats, values_[i].code); }

 private:
  static constexpr int kAtOnce = 4;  // trials in flight

  // A value with its weight, their product, and its code.
  struct Value {
    float x[kLanes], w[kLanes], wx[kLanes], code[kLanes];
  };
  template <int kTrials>
  struct Trials {
    CodeSums at[kTrials];
  };

  // Products with an inverse scale are at most 33 or are infinite or NaN in lanes of zero blocks, whose codes are not
  // used.
  static Floats code_of(Floats scaled) {
    return hn::Min(hn::Max(hn::Round(scaled), floats(-kLimit)), floats(kLimit - 1));
  }

  template <int kTrials>
  HWY_INLINE Trials<kTrials> sums_of(const Floats* inverses) const {
    Trials<kTrials> trials;
    for (const Value& value : values_) {
      const Floats x = hn::Load(kFloats, value.x), w = hn::Load(kFloats, value.w), wx = hn::Load(kFloats, value.wx);
      GGUFMILL_UNROLL
      for (int t = 0; t < kTrials; ++t) {
        const Floats code = code_of(inverses[t] * x);
        trials.at[t].qx = trials.at[t].qx + wx * code;
        trials.at[t].q2 = trials.at[t].q2 + w * code * code;
      }
    }
    return trials;
  }

  void take(const CodeSums& sums, Floats inverse) {
    const Mask better = best_.take(sums.qx, sums.q2);
    sums_ = {choose(better, sums.qx, sums_.qx), choose(better, sums.q2, sums_.q2)};
    inverse_ = choose(better, inverse, inverse_);
  }

  // Changes by one the code with the steepest gradient. Returns the lanes of `goes_on` in which that helps.
  Mask step(Mask goes_on) {
    Floats steepest = floats(0), gradient = floats(0), w = floats(0), wx = floats(0), code = floats(0);
    Floats changed = floats(-1);
    for (int i = 0; i < kCount; ++i) {
      const Value& value = values_[i];
      const Floats next_w = hn::Load(kFloats, value.w), next_code = hn::Load(kFloats, value.code);
      const Floats g = best_.scale * next_w * (hn::Load(kFloats, value.x) - best_.scale * next_code);
      const Mask up = hn::And(g > floats(0), next_code < floats(kLimit - 1));
      const Mask down = hn::And(g<floats(0), next_code> floats(-kLimit));
      const Mask takes = hn::And(hn::Or(up, down), hn::Abs(g) > steepest);
      steepest = choose(takes, hn::Abs(g), steepest);
      gradient = choose(takes, g, gradient);
      w = choose(takes, next_w, w);
      wx = choose(takes, hn::Load(kFloats, value.wx), wx);
      code = choose(takes, next_code, code);
      changed = choose(takes, floats(static_cast<float>(i)), changed);
    }
    goes_on = hn::And(goes_on, changed >= floats(0));
    const Mask rises = gradient > floats(0);
    const Floats twice = code + code;
    const CodeSums next{choose(rises, sums_.qx + wx, sums_.qx - wx),
                        choose(rises, sums_.q2 + w * (twice + floats(1)), sums_.q2 - w * (twice - floats(1)))};
    goes_on = hn::And(goes_on, best_.is_better(next.qx, next.q2));
    if (!any(goes_on)) return goes_on;
    const Floats scale = next.qx / next.q2;
    best_.scale = choose(goes_on, scale, best_.scale);
    best_.score = choose(goes_on, scale * next.qx, best_.score);
    sums_ = {choose(goes_on, next.qx, sums_.qx), choose(goes_on, next.q2, sums_.q2)};
    const Floats by = or_zero(goes_on, choose(rises, floats(1), floats(-1)));
    for (int i = 0; i < kCount; ++i) {
      const Floats old = hn::Load(kFloats, values_[i].code);
      const Mask is_changed = changed == floats(static_cast<float>(i));
      hn::Store(choose(is_changed, old + by, old), kFloats, values_[i].code);
    }
    return goes_on;
  }

  LaneBest best_;
  Floats inverse_;
  CodeSums sums_;
  alignas(64) Value values_[kCount];
};

}  // namespace

void Q6_0::decode(const Block* block, std::uint64_t count, float* x) {
  const hn::Full128<std::uint8_t> bytes{};
  const hn::Full128<std::uint16_t> wide{};
  const hn::Full128<std::uint64_t> halves{};
  const auto nibble = hn::Set(bytes, 15), two = hn::Set(bytes, 0x30);
  for (; count > 0; --count, ++block, x += kCount) {
    std::uint64_t stored = 0;
    std::memcpy(&stored, block->qh, sizeof stored);
    // Bits 4 and 5 of each byte are the high bits of levels 0 to 15 or 16 to 31.
    const auto qh = hn::Set(halves, stored);
    const auto high = hn::ConcatUpperLower(halves, qh, hn::ShiftLeft<4>(qh));
    const auto first = hn::BitCast(bytes, high), second = hn::BitCast(bytes, hn::ShiftRight<2>(high));
    const auto low = hn::LoadU(bytes, block->qs);
    const auto low_of_second = hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(wide, low)));
    alignas(16) std::uint8_t levels[kCount];
    hn::Store(hn::Or(hn::And(low, nibble), hn::And(first, two)), bytes, levels);
    hn::Store(hn::Or(hn::And(low_of_second, nibble), hn::And(second, two)), bytes, levels + 16);
    const Floats d = floats(block->d.load());
    GGUFMILL_UNROLL
    for (int j = 0; j < kCount; j += kStep)
      hn::StoreU(to_floats(as_ints(load_bytes(levels + j)) - ints(kLimit)) * d, kFloats, x + j);
  }
}

void Q6_0::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  alignas(64) float x[kCount * kLanes], weights[kCount * kLanes];
  rows_to_lanes(batch.x, kCount, x);
  if (batch.weighted) rows_to_lanes(batch.importance, kCount, weights);
  const Floats spread = hn::LoadU(kFloats, batch.row_mean_square);
  for (int i = 0; i < kCount * kStep; i += kStep) {
    const Floats value = hn::Load(kFloats, x + i), square = value * value;
    const Floats weight = batch.weighted ? hn::Load(kFloats, weights + i) * hn::Sqrt(spread + square) : square;
    hn::Store(weight, kFloats, weights + i);
  }
  CodeSearch search(x, weights);
  const Words d = floats_to_half(search.run());
  LaneLevels<kCount> levels;
  for (int i = 0; i < kCount; ++i) levels.set(i, as_words(hn::ConvertTo(kInts, search.code(i)) + ints(kLimit)));
  set_bytes(*blocks, 0, LaneBlocks<Block>::kWords, [&](int byte) {
    if (byte < 2) return hn::ShiftRightSame(d, 8 * byte) & words(255);
    if (byte < 10) {
      const auto high = [&](int i) { return hn::ShiftRight<4>(levels[byte - 2 + i]); };
      return high(0) | hn::ShiftLeft<2>(high(16)) | hn::ShiftLeft<4>(high(8)) | hn::ShiftLeft<6>(high(24));
    }
    if (byte < 26) return (levels[byte - 10] & words(15)) | hn::ShiftLeft<4>(levels[byte + 6] & words(15));
    return words(0);
  });
}

}  // namespace ggufmill::simd
