#pragma once
// The encoder of Q4_K and Q5_K, with one super-block per lane, for any way to fit lines to the groups.

#include "plugins/simd/bytes.h"
#include "plugins/simd/fit_lines.h"
#include "plugins/simd/fit_positive.h"
#include "plugins/simd/super_block.h"

namespace ggufmill::simd::q4_k {

inline constexpr int kGroups = 8;
inline constexpr int kGroup = 32;
inline constexpr int kInFlight = kLanes == 16 ? 4 : 2;  // as many as fit in the registers
inline constexpr int kMaxCode = 63;

struct Codes {
  Words scales[kGroups];
  Words minimums[kGroups];
};

// The three words of the block that contain the codes.
struct PackedCodes {
  Words words[3];
};

inline PackedCodes pack_codes(const Codes& codes) {
  const auto whole = [](const Words* c, int i) {
    return (c[i] | hn::ShiftLeft<6>(hn::ShiftRight<4>(c[i + 4]))) & words(0xff);
  };
  PackedCodes packed;
  packed.words[0] = four_bytes(0, [&](int i) { return whole(codes.scales, i); });
  packed.words[1] = four_bytes(0, [&](int i) { return whole(codes.minimums, i); });
  packed.words[2] = four_bytes(0, [&](int i) {
    return (codes.scales[i + 4] & words(0xf)) | (hn::ShiftLeft<4>(codes.minimums[i + 4]) & words(0xf0));
  });
  return packed;
}

// Returns the codes as the decoder reads them. A code above 63, which only a negative scale produces, corrupts its
// neighbours.
inline Codes unpack_codes(const PackedCodes& packed) {
  alignas(64) std::uint32_t lanes[3][kLanes];
  for (int i = 0; i < 3; ++i) hn::Store(packed.words[i], kWords, lanes[i]);
  const auto byte = [&](int word, int i) {
    return hn::ShiftRightSame(hn::Load(kWords, lanes[word]), 8 * i) & words(0xff);
  };
  Codes codes;
  for (int i = 0; i < 4; ++i) {
    const Words scale = byte(0, i), minimum = byte(1, i), upper = byte(2, i);
    codes.scales[i] = scale & words(63);
    codes.minimums[i] = minimum & words(63);
    codes.scales[i + 4] = (upper & words(0xf)) | hn::ShiftLeft<4>(hn::ShiftRight<6>(scale));
    codes.minimums[i + 4] = hn::ShiftRight<4>(upper) | hn::ShiftLeft<4>(hn::ShiftRight<6>(minimum));
  }
  return codes;
}

// The lines of the groups of super-blocks, as llama.cpp fits them. Other ways to fit them have the same members.
template <int kLimit>
class GroupLines {
 public:
  static constexpr float kZero = reference::kZeroGroup;  // with importance, smaller scales count as zero
  static constexpr float kMinRange = 0;                  // without importance, groups with less are flat

  GroupLines(const SuperBlocks& blocks, const reference::AffineSearch& plain) : blocks_(blocks), plain_(plain) {}

  void fit() {
    const Floats spread = blocks_.weighted() ? this->spread() : floats(0);
    alignas(64) float weights[kInFlight * kGroup * kLanes];
    for (int group = 0; group < kGroups; group += kInFlight) {
      for (int g = 0; g < kInFlight; ++g) weigh(group + g, spread, weights + g * kStep * kGroup);
      Search search(blocks_.x(group * kGroup), weights);
      search.run(blocks_.weighted() ? reference::kWeightedSearch : plain_, lines_ + group);
    }
  }

  const Line& line(int group) const { return lines_[group]; }
  const Floats* weight_sums() const { return weight_sums_; }
  // Returns the level of element i, which is in `group`.
  Ints level(int group, int i) const { return lines_[group].level(blocks_.at(i), kLimit); }

 protected:
  static constexpr int kStep = static_cast<int>(kLanes);
  using Search = LineSearch<kInFlight, kGroup, kLimit, reference::ErrorMeasure::kSquared>;

  Floats spread() const { return floats(2) * blocks_.sum_of_squares(0, kSuperBlock) / floats(float{kSuperBlock}); }

  void weigh(int group, Floats spread, float* weights) {
    const int first = group * kGroup;
    if (blocks_.weighted()) {
      weight_sums_[group] = blocks_.weigh(first, kGroup, spread, weights);
      return;
    }
    const Floats average = hn::Sqrt(blocks_.sum_of_squares(first, kGroup) / floats(float{kGroup}));
    for (int i = 0; i < kGroup; ++i) hn::Store(average + hn::Abs(blocks_.at(first + i)), kFloats, weights + i * kStep);
  }

  const SuperBlocks& blocks_;
  reference::AffineSearch plain_;
  Line lines_[kGroups];
  Floats weight_sums_[kGroups];
};

// Fits lines to all groups of super-blocks, and converts them to the contents of the block.
template <int kLimit, bool kBoundCodes, class Lines>
class Encoder {
 public:
  Encoder(const Batch<1>& batch, const reference::AffineSearch& plain) : blocks_(batch), lines_(blocks_, plain) {}

  // Computes d and dmin, the codes, and then the levels for them.
  void run() {
    Codes codes;
    Floats d, dmin;
    lines_.fit();
    Floats scales[kGroups], minimums[kGroups];
    for (int group = 0; group < kGroups; ++group) {
      scales[group] = lines_.line(group).scale;
      minimums[group] = hn::Neg(lines_.line(group).minimum);
    }
    if (blocks_.weighted()) {
      using Fit = PositiveFit<kGroups, kMaxCode>;
      d = Fit(scales, lines_.weight_sums(), codes.scales, Lines::kZero).run();
      dmin = Fit(minimums, lines_.weight_sums(), codes.minimums, Lines::kZero).run();
    } else {
      d = code_values<kGroups, kMaxCode>(scales, codes.scales);
      dmin = code_values<kGroups, kMaxCode>(minimums, codes.minimums);
    }
    for (int i = 0; i < kGroups && (kBoundCodes || !blocks_.weighted()); ++i) {
      codes.scales[i] = hn::Min(codes.scales[i], words(kMaxCode));
      codes.minimums[i] = hn::Min(codes.minimums[i], words(kMaxCode));
    }
    const Words d_bits = floats_to_half(d), dmin_bits = floats_to_half(dmin);
    halves_ = d_bits | hn::ShiftLeft<16>(dmin_bits);
    packed_ = pack_codes(codes);
    settle_levels(half_to_floats(d_bits), half_to_floats(dmin_bits), unpack_codes(packed_));
  }

  const LaneLevels<kSuperBlock>& levels() const { return levels_; }

  // Sets d, dmin and the codes, which are the first four words of the block.
  template <class Block>
  void set_scales(LaneBlocks<Block>& block) const {
    block.set(0, halves_);
    for (int i = 0; i < 3; ++i) block.set(1 + i, packed_.words[i]);
  }

  // Sets the nibbles, starting at word `first`. 64 levels take 8 words, with the first 32 in the low nibbles.
  template <class Block>
  void set_nibbles(LaneBlocks<Block>& block, int first) const {
    set_bytes(block, first, 32, [&](int i) {
      const int at = i / 32 * 64 + i % 32;
      return (levels_[at] & words(0xf)) | (hn::ShiftLeft<4>(levels_[at + 32]) & words(0xf0));
    });
  }

 private:
  // Computes the best levels for the scales as stored. A group with scale 0 uses the levels of its line.
  void settle_levels(Floats d, Floats dmin, const Codes& codes) {
    for (int group = 0; group < kGroups; ++group) {
      const Floats scale = d * to_floats(as_ints(codes.scales[group]));
      const Floats minimum = dmin * to_floats(as_ints(codes.minimums[group]));
      const Mask zero = scale == floats(0);
      const bool any_zero = any(zero);
      for (int i = group * kGroup; i < (group + 1) * kGroup; ++i) {
        const Floats x = blocks_.at(i);
        Ints level = clamp(nearest_ints((x + minimum) / scale), 0, kLimit);
        if (HWY_UNLIKELY(any_zero)) level = choose(zero, lines_.level(group, i), level);
        levels_.set(i, as_words(level));
      }
    }
  }

  SuperBlocks blocks_;
  Lines lines_;
  Words halves_;
  PackedCodes packed_;
  LaneLevels<kSuperBlock> levels_;
};

// Encodes Q4_K and Q5_K, respectively.
template <template <int> class Lines, class Block>
void encode_4_bits(const Batch<1>& batch, LaneBlocks<Block>& block) {
  Encoder<15, false, Lines<15>> encoder(batch,
                                        {-1.0f, 0.1f, 20, reference::ErrorMeasure::kSquared, Lines<15>::kMinRange});
  encoder.run();
  encoder.set_scales(block);
  encoder.set_nibbles(block, 4);
}
template <template <int> class Lines, class Block>
void encode_5_bits(const Batch<1>& batch, LaneBlocks<Block>& block) {
  Encoder<31, true, Lines<31>> encoder(batch,
                                       {-0.5f, 0.1f, 15, reference::ErrorMeasure::kSquared, Lines<31>::kMinRange});
  encoder.run();
  encoder.set_scales(block);
  set_bytes(block, 4, 8, [&](int i) {
    Words bits = words(0);
    for (int group = 0; group < kGroups; ++group)
      bits = bits | hn::ShiftLeftSame(hn::ShiftRight<4>(encoder.levels()[group * kGroup + i]), group);
    return bits;
  });
  encoder.set_nibbles(block, 12);
}

}  // namespace ggufmill::simd::q4_k
