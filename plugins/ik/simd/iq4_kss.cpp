// IQ4_KSS. Four values share a word, and the number of bits that their levels have is even.
//
// At most two of the three changes of a level can cost least: the value is between the borders of the level, and from
// there, other changes are farther by a unit or more. (For the other sign, costs are those of the negative value.) Such
// costs differ by w scale^2 or more, which is far more than they are rounded by if |x| <= 1000 |scale| and nothing
// overflows or underflows. If so, two changes are tried, else three.

#include "plugins/ik/simd/ks_types.h"
#include "plugins/ik/simd/level_bytes.h"
#include "plugins/ik/simd/table_search.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32, kSubs = LaneScales::kCount, kGroups = kSub / 4;
constexpr ik::Weighting kWeighting{2, ik::Without::kSquares};

using Blocks = WeightedBlocks<kSub>;

constexpr bool is_odd(int level) { return std::popcount(static_cast<unsigned>(level)) % 2 != 0; }

// The changes of a level by up to 2 that change whether its number of bits is odd, in ascending order: one to three.
constexpr int kMaxChanges = 3;
constexpr int change_of(int level, int number) {
  for (const int change : {-2, -1, 1, 2}) {
    const int other = level + change;
    if (other >= 0 && other < 16 && is_odd(other) != is_odd(level) && number-- == 0) return change;
  }
  return 0;
}
constexpr bool are_all_changes() {
  for (int level = 0; level < 16; ++level)
    if (change_of(level, 0) == 0 || change_of(level, kMaxChanges) != 0) return false;
  return true;
}
static_assert(are_all_changes());

// The changes that are tried: all of them, or those that may cost least, for scales of the sign of the inverse or the
// other one.
enum class Changes { kAll, kNearest, kNearestOfOther };
constexpr int count_of(Changes changes) { return changes == Changes::kAll ? kMaxChanges : 2; }

// True if all values whose nearest level is `level` are nearer to the level after one change than after another one.
constexpr bool is_nearer(bool is_shifted, bool is_other_sign, int level, int change, int than) {
  const auto& table = kLevels<16>[is_shifted];
  const auto value = [&](int at) { return table.value(static_cast<std::size_t>(level + at)); };
  const float low = level == 0 ? -1000 : 0.5f * (value(-1) + value(0));
  const float high = level == 15 ? 1000 : 0.5f * (value(0) + value(1));
  const auto distance = [&](int at, float x) {
    const float off = value(at) - (is_other_sign ? -x : x);
    return off < 0 ? -off : off;
  };
  if (change == than) return false;
  // The difference is greatest or least at an end, or constant.
  return distance(change, low) + 1 <= distance(than, low) && distance(change, high) + 1 <= distance(than, high);
}
// If there are fewer changes, the first one is repeated, or the result is 0 for kAll.
constexpr int change_of(Changes changes, bool is_shifted, int level, int number) {
  if (changes == Changes::kAll) return change_of(level, number);
  int count = 0, first = 0;
  for (int i = 0; i < kMaxChanges && change_of(level, i) != 0; ++i) {
    bool is_needed = true;
    for (int k = 0; k < kMaxChanges && change_of(level, k) != 0; ++k)
      if (is_nearer(is_shifted, changes == Changes::kNearestOfOther, level, change_of(level, k), change_of(level, i)))
        is_needed = false;
    if (!is_needed) continue;
    if (count == 0) first = change_of(level, i);
    if (count++ == number) return change_of(level, i);
  }
  return number < 2 ? first : 0;
}
constexpr bool are_two_enough(Changes changes) {
  for (int level = 0; level < 16; ++level)
    for (const bool is_shifted : {false, true})
      if (change_of(changes, is_shifted, level, 2) != 0) return false;
  return true;
}
static_assert(are_two_enough(Changes::kNearest) && are_two_enough(Changes::kNearestOfOther));

// By level: the value after a change, or infinity if there is none.
constexpr LookupTable<16> changed_table(Changes changes, bool is_shifted, int number) {
  LookupTable<16> table{};
  for (int level = 0; level < 16; ++level) {
    const int change = change_of(changes, is_shifted, level, number);
    table.values[level] = change != 0 ? kLevels<16>[is_shifted].value(static_cast<std::size_t>(level + change))
                                      : std::numeric_limits<float>::infinity();
  }
  return table;
}
template <Changes kChanges>
constexpr LookupTable<16> kChanged[2][kMaxChanges] = {
    {changed_table(kChanges, false, 0), changed_table(kChanges, false, 1), changed_table(kChanges, false, 2)},
    {changed_table(kChanges, true, 0), changed_table(kChanges, true, 1), changed_table(kChanges, true, 2)}};

// By level: the level after a change.
constexpr LookupTable<16> level_table(Changes changes, bool is_shifted, int number) {
  LookupTable<16> table{};
  for (int level = 0; level < 16; ++level)
    table.values[level] = std::bit_cast<float>(level + change_of(changes, is_shifted, level, number));
  return table;
}
template <Changes kChanges>
constexpr LookupTable<16> kChangedLevel[2][kMaxChanges] = {
    {level_table(kChanges, false, 0), level_table(kChanges, false, 1), level_table(kChanges, false, 2)},
    {level_table(kChanges, true, 0), level_table(kChanges, true, 1), level_table(kChanges, true, 2)}};

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

// The data of four values for the trials with a table and a sign. All inverse scales are within a few percent, so that
// a scaled value passes at most one border: it has one of two levels, which are looked up once.
template <Changes kChanges>
struct GroupTerms {
  static constexpr int kCount = count_of(kChanges);
  Floats border[4], value[2][4], other[2][kCount][4];  // the values of the levels, and after their changes
  Words odd[2][4];                                     // in the highest bit

  GroupTerms(bool is_shifted, const Group& group, Floats one, Floats another) {
    const LevelTable<16>& table = kLevels<16>[is_shifted];
    for (int j = 0; j < 4; ++j) {
      Words level = table.level(lesser(one * group.x[j], another * group.x[j]));
      border[j] = table.border(level);
      for (const int i : {0, 1}) {
        value[i][j] = table.value(level);
        odd[i][j] = hn::ShiftLeft<31>(words(0x6996) >> level);
        for (int number = 0; number < kCount; ++number)
          other[i][number][j] = kChanged<kChanges>[is_shifted][number][level];
        level = hn::Min(level + words(1), words(15));
      }
    }
  }
};

// Levels are found and changed only if kHasLevels, values always.
template <Changes kChanges, bool kHasLevels>
struct FourLevels {
  static constexpr int kCount = count_of(kChanges);
  Words level[4];
  Floats value[4];

  // See ik::FourLevels: of an odd number of bits, the level whose change costs least is changed.
  HWY_INLINE FourLevels(bool is_shifted, const Group& group, Floats inverse, Floats scale) {
    const LevelTable<16>& table = kLevels<16>[is_shifted];
    Floats other[kCount][4];
    Words odd = words(0);
    GGUFMILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      level[j] = table.level(inverse * group.x[j]);
      value[j] = table.value(level[j]);
      odd = odd ^ hn::ShiftLeft<31>(words(0x6996) >> level[j]);
      GGUFMILL_UNROLL
      for (int number = 0; number < kCount; ++number)
        other[number][j] = kChanged<kChanges>[is_shifted][number][level[j]];
    }
    change_one(is_shifted, group, scale, odd, other);
  }
  HWY_INLINE FourLevels(bool is_shifted, const Group& group, const GroupTerms<kChanges>& terms, Floats inverse,
                        Floats scale) {
    static_assert(!kHasLevels);
    Floats other[kCount][4];
    Words odd = words(0);
    GGUFMILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      const Mask is_next = inverse * group.x[j] >= terms.border[j];
      value[j] = choose(is_next, terms.value[1][j], terms.value[0][j]);
      odd = odd ^ choose(is_next, terms.odd[1][j], terms.odd[0][j]);
      GGUFMILL_UNROLL
      for (int number = 0; number < kCount; ++number)
        other[number][j] = choose(is_next, terms.other[1][number][j], terms.other[0][number][j]);
    }
    change_one(is_shifted, group, scale, odd, other);
  }

 private:
  // The first change of a level exists. If there is no second or third one, its cost is infinite or NaN, and it is not
  // taken. A cost that exists is NaN where squares overflow; it is taken if it is the very first, as in the plain loop.
  HWY_INLINE void change_one(bool is_shifted, const Group& group, Floats scale, Words odd,
                             const Floats (&other)[kCount][4]) {
    // The cost before is that of the plain table.
    const LevelTable<16>& table = kLevels<16>[is_shifted];
    const Floats shift = floats(table.value(std::size_t{0}) - kLevels<16>.plain.value(std::size_t{0}));
    Floats least = floats(0), values[4];
    Words changed = words(0), levels[4];  // which one, and what each would become
    GGUFMILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      const Floats before = scale * (value[j] - shift) - group.x[j], square = before * before;
      Floats least_of_value = least;
      values[j] = value[j];
      if constexpr (kHasLevels) levels[j] = level[j];
      GGUFMILL_UNROLL
      for (int number = 0; number < kCount; ++number) {
        const Floats after = scale * other[number][j] - group.x[j];
        const Floats cost = group.weight[j] * (after * after - square);
        const bool is_first = j == 0 && number == 0;
        const Mask takes = cost < least_of_value;
        least_of_value = is_first ? cost : choose(takes, cost, least_of_value);
        values[j] = is_first ? other[0][j] : choose(takes, other[number][j], values[j]);
        if constexpr (kHasLevels) {
          const Words next = as_words(kChangedLevel<kChanges>[is_shifted][number][level[j]]);
          levels[j] = is_first ? next : choose(takes, next, levels[j]);
        }
      }
      const Mask takes = least_of_value < least;
      least = j == 0 ? least_of_value : choose(takes, least_of_value, least);
      if (j != 0) changed = choose(takes, words(static_cast<std::uint32_t>(j)), changed);
    }
    const Mask is_odd = mask_of(as_ints(odd) < ints(0));
    GGUFMILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      const Mask takes = hn::And(is_odd, mask_of(changed == words(static_cast<std::uint32_t>(j))));
      if constexpr (kHasLevels) level[j] = choose(takes, levels[j], level[j]);
      value[j] = choose(takes, values[j], value[j]);
    }
  }
};

// Returns the changes to try for scales between two ones; see the top of the file.
Changes changes_for(const Blocks& blocks, int b, Floats least_scale, Floats most_scale) {
  Floats least = blocks.weight(b * kSub), most = least, magnitude = floats(0);
  for (int i = b * kSub; i < (b + 1) * kSub; ++i) {
    least = hn::Min(least, blocks.weight(i));
    most = hn::Max(most, blocks.weight(i));
    magnitude = hn::Max(magnitude, hn::Abs(blocks.at(i)));
  }
  const Mask no_underflow = hn::Min(least, floats(1)) * least_scale * least_scale > floats(1e-36f);
  const Mask no_overflow = hn::Max(most, floats(1)) * most_scale * most_scale < floats(1e30f);
  const Mask is_near = magnitude <= floats(1000) * hn::Abs(least_scale);
  return all(hn::And(hn::And(no_underflow, no_overflow), is_near)) ? Changes::kNearest : Changes::kAll;
}

constexpr int kTries = 7, kTrials = 2 * kTries + 1;
static_assert(borders_passed(kLevels<16>.plain, kTries, 1) == 1 && borders_passed(kLevels<16>.shifted, kTries, 1) == 1);

// Adds the sums of the trials with a table and a sign, from their inverse scales with the positive sign.
template <Changes kChanges>
void sum_trials(const Blocks& blocks, int b, bool is_shifted, bool is_negative, const Floats* inverses,
                LaneSums* sums) {
  const auto signed_one = [&](int t) { return is_negative ? hn::Neg(inverses[t]) : inverses[t]; };
  for (int k = 0; k < kGroups; ++k) {
    const Group group(blocks, b, k);
    const GroupTerms<kChanges> terms(is_shifted, group, signed_one(0), signed_one(kTrials - 1));
    for (int t = 0; t < kTrials; ++t) {
      const FourLevels<kChanges, false> four(is_shifted, group, terms, signed_one(t), floats(1) / inverses[t]);
      for (int j = 0; j < 4; ++j) sums[t].add(group.weight[j], four.value[j], group.x[j]);
    }
  }
}

template <Changes kChanges>
Floats search_scale(const Blocks& blocks, int b, Floats extreme) {
  constexpr Changes kOther = kChanges == Changes::kAll ? Changes::kAll : Changes::kNearestOfOther;
  LaneSums sums[2][2][kTrials];
  for (const bool is_shifted : {false, true}) {
    Floats inverses[kTrials];
    for (int t = 0; t < kTrials; ++t)
      inverses[t] =
          (floats(static_cast<float>(t - kTries)) + floats(kLevels<16>[is_shifted].value(std::size_t{0}))) / extreme;
    sum_trials<kChanges>(blocks, b, is_shifted, false, inverses, sums[is_shifted][0]);
    sum_trials<kOther>(blocks, b, is_shifted, true, inverses, sums[is_shifted][1]);
  }
  LaneBest best;
  best.scale = hn::Neg(extreme) / floats(kLevels<16>.plain.value(std::size_t{0}));
  for (int t = 0; t < kTrials; ++t)
    for (const bool is_shifted : {false, true})
      for (const LaneSums& sum : {sums[is_shifted][0][t], sums[is_shifted][1][t]}) best.take(sum.qx, sum.q2);
  return best.scale;
}

Floats search_scale(const Blocks& blocks, int b) {
  Floats magnitude;
  const Floats extreme = simd::extreme<kSub>([&](int i) { return blocks.at(b * kSub + i); }, magnitude);
  const float front = kLevels<16>.plain.value(std::size_t{0});
  const Floats scale = changes_for(blocks, b, extreme / floats(front - kTries), extreme / floats(front + 4 + kTries)) ==
                               Changes::kNearest
                           ? search_scale<Changes::kNearest>(blocks, b, extreme)
                           : search_scale<Changes::kAll>(blocks, b, extreme);
  return hn::IfThenZeroElse(magnitude < floats(ik::kZero), scale);
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
    if (changes_for(blocks, b, scale, scale) == Changes::kNearest)
      choose_levels<Changes::kNearest>(blocks, b, is_shifted, scale, inverse);
    else
      choose_levels<Changes::kAll>(blocks, b, is_shifted, scale, inverse);
  }

 private:
  template <Changes kChanges>
  void choose_levels(const Blocks& blocks, int b, bool is_shifted, Floats scale, Floats inverse) {
    for (int k = 0; k < kGroups; ++k) {
      const Group group(blocks, b, k);
      const FourLevels<kChanges, true> four(is_shifted, group, inverse, scale);
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
      codes |= mask_bits(eight, hn::TestBit(stored, hn::Set(eight, 1))) << (8 * b);
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
