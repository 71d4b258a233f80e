// IQ4_KSS. Four values share a word, and the number of bits that their levels have is even.

#include "plugins/ik/simd/ks_types.h"
#include "plugins/ik/simd/level_bytes.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32, kSubs = LaneScales::kCount, kGroups = kSub / 4;
constexpr ik::Weighting kWeighting{2, ik::Without::kSquares};

using Blocks = WeightedBlocks<kSub>;

constexpr bool is_odd(int level) { return std::popcount(static_cast<unsigned>(level)) % 2 != 0; }

// The changes of a level by up to 2 that change whether its number of bits is odd, in ascending order: one to three.
constexpr int kMostChanges = 3;
constexpr int change_of(int level, int number) {
  for (const int change : {-2, -1, 1, 2}) {
    const int other = level + change;
    if (other >= 0 && other < 16 && is_odd(other) != is_odd(level) && number-- == 0) return change;
  }
  return 0;
}
constexpr bool are_all_changes() {
  for (int level = 0; level < 16; ++level)
    if (change_of(level, 0) == 0 || change_of(level, kMostChanges) != 0) return false;
  return true;
}
static_assert(are_all_changes());

// By level: the value after a change, or infinity if there is none.
constexpr LookupTable<16> changed_table(bool is_shifted, int number) {
  LookupTable<16> table{};
  for (int level = 0; level < 16; ++level) {
    const int change = change_of(level, number);
    table.values[level] = change != 0 ? kLevels<16>[is_shifted].value(static_cast<std::size_t>(level + change))
                                      : std::numeric_limits<float>::infinity();
  }
  return table;
}
constexpr LookupTable<16> kChanged[2][kMostChanges] = {
    {changed_table(false, 0), changed_table(false, 1), changed_table(false, 2)},
    {changed_table(true, 0), changed_table(true, 1), changed_table(true, 2)}};

// By level: the level after a change.
constexpr LookupTable<16> level_table(int number) {
  LookupTable<16> table{};
  for (int level = 0; level < 16; ++level) table.values[level] = std::bit_cast<float>(level + change_of(level, number));
  return table;
}
constexpr LookupTable<16> kChangedLevel[kMostChanges] = {level_table(0), level_table(1), level_table(2)};

// Four values that share a word, in lanes.
struct Group {
  Floats x[4], weight[4];

  Group(const Blocks& blocks, int b, int k) {
    for (int j = 0; j < 4; ++j) {
      const int at = b * kSub + 2 * k + j / 2 + 16 * (j % 2);
      x[j] = blocks.at(at);
      weight[j] = blocks.weight(at);
    }
  }
};

// Levels are changed only if kHasLevels, values always.
template <bool kHasLevels>
struct FourLevels {
  Words level[4];
  Floats value[4];

  // See ik::FourLevels: of an odd number of bits, the level whose change costs least is changed.
  HWY_INLINE FourLevels(bool is_shifted, const Group& group, Floats inverse, Floats scale) {
    const LevelTable<16>& table = kLevels<16>[is_shifted];
    Words odd = words(0);
    GGUFMILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      level[j] = table.level(inverse * group.x[j]);
      value[j] = table.value(level[j]);
      odd = odd ^ (words(0x6996) >> level[j]);
    }
    change_one(is_shifted, group, scale, mask_of((odd & words(1)) != words(0)));
  }

 private:
  // The first change of a level exists. If there is no second or third one, its cost is infinite or NaN, and it is not
  // taken.
  HWY_INLINE void change_one(bool is_shifted, const Group& group, Floats scale, Mask is_odd) {
    Floats least = floats(0), changed_value = floats(0);
    Words changed = words(0), changed_level = words(0);  // which one, and its level then
    GGUFMILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      const Floats before = scale * kLevels<16>.plain.value(level[j]) - group.x[j], square = before * before;
      GGUFMILL_UNROLL
      for (int number = 0; number < kMostChanges; ++number) {
        const Floats other = kChanged[is_shifted][number][level[j]];
        const Floats after = scale * other - group.x[j];
        const Floats cost = group.weight[j] * (after * after - square);
        const bool is_first = j == 0 && number == 0;
        const Mask takes = is_first ? cost == cost : cost < least;
        least = is_first ? cost : choose(takes, cost, least);
        changed_value = is_first ? other : choose(takes, other, changed_value);
        if (!is_first) changed = choose(takes, words(static_cast<std::uint32_t>(j)), changed);
        if constexpr (kHasLevels) {
          const Words next = as_words(kChangedLevel[number][level[j]]);
          changed_level = is_first ? next : choose(takes, next, changed_level);
        }
      }
    }
    GGUFMILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      const Mask takes = hn::And(is_odd, mask_of(changed == words(static_cast<std::uint32_t>(j))));
      if constexpr (kHasLevels) level[j] = choose(takes, changed_level, level[j]);
      value[j] = choose(takes, changed_value, value[j]);
    }
  }
};

Floats search_scale(const Blocks& blocks, int b) {
  constexpr int kTries = 7;
  Floats magnitude;
  const Floats extreme = simd::extreme<kSub>([&](int i) { return blocks.at(b * kSub + i); }, magnitude);
  LaneBest best;
  best.scale = hn::Neg(extreme) / floats(kLevels<16>.plain.value(std::size_t{0}));
  for (int i = -kTries; i <= kTries; ++i)
    for (const bool is_shifted : {false, true}) {
      const Floats front = floats(kLevels<16>[is_shifted].value(std::size_t{0}));
      const Floats inverse = (floats(static_cast<float>(i)) + front) / extreme, scale = floats(1) / inverse;
      LaneSums positive, negative;
      for (int k = 0; k < kGroups; ++k) {
        const Group group(blocks, b, k);
        const FourLevels<false> one(is_shifted, group, inverse, scale);
        for (int j = 0; j < 4; ++j) positive.add(group.weight[j], one.value[j], group.x[j]);
        const FourLevels<false> other(is_shifted, group, hn::Neg(inverse), scale);
        for (int j = 0; j < 4; ++j) negative.add(group.weight[j], other.value[j], group.x[j]);
      }
      best.take(positive.qx, positive.q2);
      best.take(negative.qx, negative.q2);
    }
  return hn::IfThenZeroElse(magnitude < floats(ik::kZero), best.scale);
}

// Returns n for which n ^ 2n are the bits, whose number is even.
Words scrambled(Words bits) {
  bits = bits ^ hn::ShiftLeft<1>(bits);
  bits = bits ^ hn::ShiftLeft<2>(bits);
  bits = bits ^ hn::ShiftLeft<4>(bits);
  bits = bits ^ hn::ShiftLeft<8>(bits);
  return bits & words(0x7fff);
}

// The levels of a sub-block with a table, and their weighted error.
struct Chosen {
  Floats error = floats(0);
  Words levels[kSub];
  Floats values[kSub];

  Chosen(const Blocks& blocks, int b, bool is_shifted, Floats scale, Floats inverse) {
    for (int k = 0; k < kGroups; ++k) {
      const Group group(blocks, b, k);
      const FourLevels<true> four(is_shifted, group, inverse, scale);
      for (int j = 0; j < 4; ++j) {
        const Floats off = group.x[j] - scale * four.value[j];
        error = error + group.weight[j] * off * off;
        levels[4 * k + j] = four.level[j];
        values[4 * k + j] = four.value[j];
      }
    }
  }
};

}  // namespace

void IQ4_KSS::search(const Batch<1>& batch, LaneScales& found) {
  const Blocks blocks(batch, kWeighting);
  for (int b = 0; b < kSubs; ++b) found.scale[b] = search_scale(blocks, b);
  found.shifted = words(0);
}

IQ4_KSS::Rows::Rows(const RowScales& found) : d_(hn::Abs(found.extreme()) / floats(127)) {}

void IQ4_KSS::Rows::encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block) {
  const Blocks blocks(batch, kWeighting);
  const Floats inverse_d = floats(1) / d_;
  for (int b = 0; b < kSubs; ++b) {
    const Ints half = clamp(nearest_ints(floats(0.5f) * (inverse_d * found.scale[b] + floats(127.0f))), 0, 127);
    const Floats code = to_floats(half + half - ints(127)), scale = d_ * code, inverse = floats(1) / scale;
    const Chosen plain(blocks, b, false, scale, inverse), shifted(blocks, b, true, scale, inverse);
    const Mask is_shifted = shifted.error < plain.error;
    const Words stored = as_words(half + half) | choose(is_shifted, words(1), words(0));
    Words even = words(0);
    for (int k = 0; k < kGroups; ++k) {
      const Group group(blocks, b, k);
      Words bits = words(0);
      for (int j = 0; j < 4; ++j) {
        const int i = 4 * k + j;
        bits = bits | hn::ShiftLeftSame(choose(is_shifted, shifted.levels[i], plain.levels[i]), 4 * j);
        sums_.add(group.weight[j], choose(is_shifted, shifted.values[i], plain.values[i]) * code, group.x[j]);
      }
      const Words word = hn::ShiftLeft<1>(scrambled(bits)) | (hn::ShiftRightSame(stored, k) & words(1));
      if (k % 2 == 0)
        even = word;
      else
        block.set((b * kGroups + k) / 2, even | hn::ShiftLeft<16>(word));
    }
  }
  clear(d_ == floats(0), block);
}

Words IQ4_KSS::Rows::header() const {
  const Floats d = choose(sums_.q2 > floats(0), sums_.qx / sums_.q2 * floats(1.01f), d_);
  return as_words(choose(d_ == floats(0), d_, d));
}

void IQ4_KSS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  // Eight words of a sub-block; the bytes of their levels are in the order of the levels.
  const hn::Full128<std::uint16_t> eight{};
  const hn::Full128<std::uint8_t> bytes{};
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block, x += kSuperBlock) {
    SubScales<kSubs> scales;
    ValueBytes values;
    std::uint64_t codes = 0;  // bytes
    for (int b = 0; b < kSubs; ++b) {
      const auto stored = hn::BitCast(eight, hn::LoadU(bytes, block->words[b * kGroups].bytes));
      std::uint8_t scale_bits[8] = {};
      hn::StoreMaskBits(eight, hn::TestBit(stored, hn::Set(eight, 1)), scale_bits);
      codes |= std::uint64_t{scale_bits[0]} << (8 * b);
      const auto n = hn::And(stored, hn::Set(eight, 0xfffe)), levels = hn::Xor(n, hn::ShiftRight<1>(n));
      const auto nibbles = hn::BitCast(bytes, levels);
      const auto high = hn::BitCast(bytes, hn::ShiftRight<4>(levels));
      values.set(b * kSub, kBytes4[hn::And(nibbles, hn::Set(bytes, 15))]);
      values.set(b * kSub + 16, kBytes4[hn::And(high, hn::Set(bytes, 15))]);
    }
    scales.scale.set(
        [&](int i) { return floats(d) * to_floats(as_ints(bytes_of(codes, i) & words(254)) - ints(127)); });
    scales.shift.set([&](int i) { return to_floats(as_ints(bytes_of(codes, i) & words(1))) * floats(4); });
    scales.write(values, x);
  }
}

}  // namespace ggufmill::simd
