// IQ2_KL. Two neighbours have one of 32 pairs of levels: that of their nearest levels, or the best one of a list for
// these two.
//
// Half of a list is never chosen. If the nearest levels of x are known, x is between two borders. A level is as near as
// another one to all of these x, or nearer, if it is on the side of the border that is next to their middle, or is the
// same. A pair whose levels are both as near as those of a pair later in the list comes before it: errors are monotonic
// in both distances, also when they are rounded, and a later pair is chosen only if its error is less.

#include "plugins/ik/level_pairs.h"
#include "plugins/ik/simd/ks_types.h"
#include "plugins/ik/simd/level_bytes.h"
#include "plugins/ik/simd/table_search.h"
#include "plugins/reference/iq_bits.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32, kSubs = LaneScales::kCount, kPairs = kSub / 2;
constexpr ik::Weighting kWeighting{2.25f, ik::Without::kMagnitudes};
constexpr const LevelTable<8>& kTable = kLevels<8>.plain;

using Blocks = WeightedBlocks<kSub>;

// Tables of words, in the form that LookupTable has.
template <std::size_t kSize, class Value>
constexpr LookupTable<kSize> word_table(const Value& value) {
  LookupTable<kSize> table{};
  for (std::size_t i = 0; i < kSize; ++i) table.values[i] = std::bit_cast<float>(std::uint32_t{value(i)});
  return table;
}

// For the first level: nibbles by the second level, with the number of pairs, or of lists, before it in the row; 15 if
// there is no pair, or no list. And the number of pairs or lists in the rows before.
constexpr std::uint32_t row_of(std::size_t first, bool has_pair) {
  std::uint32_t nibbles = 0, count = 0;
  for (std::size_t second = 0; second < 8; ++second) {
    const bool is_counted = (ik::kPairOf[8 * first + second] >= 0) == has_pair;
    nibbles |= (is_counted ? count : 15u) << (4 * second);
    count += is_counted ? 1 : 0;
  }
  return nibbles;
}
constexpr std::uint32_t before_row(std::size_t first, bool has_pair) {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < 8 * first; ++i) count += (ik::kPairOf[i] >= 0) == has_pair ? 1 : 0;
  return count;
}
constexpr auto kPairRows = word_table<8>([](std::size_t i) { return row_of(i, true); });
constexpr auto kListRows = word_table<8>([](std::size_t i) { return row_of(i, false); });
constexpr auto kPairsBefore = word_table<8>([](std::size_t i) { return before_row(i, true); });
constexpr auto kListsBefore = word_table<8>([](std::size_t i) { return before_row(i, false); });

// The pairs of a list that may be chosen, in its order.
struct ShortList {
  static constexpr std::size_t kMax = 4;
  std::uint8_t pair[kMax] = {};
  bool is_complete = true;

  constexpr ShortList(std::size_t list, std::size_t first, std::size_t second) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint8_t next = ik::kNear[list][i];
      bool is_needed = true;
      for (std::size_t before = 0; before < i; ++before)
        if (is_as_near(first, ik::kGrid[ik::kNear[list][before]].first, ik::kGrid[next].first) &&
            is_as_near(second, ik::kGrid[ik::kNear[list][before]].second, ik::kGrid[next].second))
          is_needed = false;
      if (!is_needed) continue;
      is_complete = is_complete && count < kMax;
      if (count < kMax) pair[count++] = next;
    }
    for (; count < kMax; ++count) pair[count] = pair[0];  // is not less than itself
  }

 private:
  // True if all values whose nearest level is `level` are as near to `value` as to `other`, or nearer.
  static constexpr bool is_as_near(std::size_t level, float value, float other) {
    const float middle = 0.5f * (value + other);
    if (value < other) return level < 7 && middle >= kTable.border(level);
    return value == other || (level > 0 && middle <= kTable.border(level - 1));
  }
};

// By number of the list.
struct ShortLists {
  std::uint8_t pair[32][ShortList::kMax] = {};
  bool are_complete = true;

  constexpr ShortLists() {
    for (std::size_t i = 0; i < 64; ++i) {
      if (ik::kPairOf[i] >= 0) continue;
      const auto list = static_cast<std::size_t>(-1 - ik::kPairOf[i]);
      const ShortList of_list(list, i / 8, i % 8);
      are_complete = are_complete && of_list.is_complete;
      for (std::size_t k = 0; k < ShortList::kMax; ++k) pair[list][k] = of_list.pair[k];
    }
  }
};
constexpr ShortLists kShortLists;
static_assert(kShortLists.are_complete);
constexpr int kNearest = ShortList::kMax;

// For each list, the values of one of its pairs: the upper halves of two floats, whose lower halves are zero.
constexpr LookupTable<32> pair_table(std::size_t i) {
  return word_table<32>([i](std::size_t list) {
    const auto& pair = ik::kGrid[kShortLists.pair[list][i]];
    const auto half = [](float value) { return std::bit_cast<std::uint32_t>(value) >> 16; };
    return half(static_cast<float>(pair.first)) << 16 | half(static_cast<float>(pair.second));
  });
}
constexpr LookupTable<32> kNearPairs[kNearest] = {pair_table(0), pair_table(1), pair_table(2), pair_table(3)};
constexpr bool are_halves_enough() {
  for (const auto& pair : ik::kGrid)
    for (const float value : {static_cast<float>(pair.first), static_cast<float>(pair.second)})
      if ((std::bit_cast<std::uint32_t>(value) & 0xffff) != 0) return false;
  return true;
}
static_assert(are_halves_enough());
Floats first_of(Words pair) { return as_floats(pair & words(0xffff0000)); }
Floats second_of(Words pair) { return as_floats(hn::ShiftLeft<16>(pair)); }

// For each list, the numbers of its pairs as bytes.
constexpr LookupTable<32> kNumbers = word_table<32>([](std::size_t list) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kNearest; ++i) word |= std::uint32_t{kShortLists.pair[list][i]} << (8 * i);
  return word;
});

// The values of the pairs as bytes.
struct PairBytes {
  alignas(16) std::uint8_t at[32];

  template <class Value>
  constexpr explicit PairBytes(const Value& value) : at() {
    for (std::size_t i = 0; i < 32; ++i) at[i] = static_cast<std::uint8_t>(static_cast<int>(value(ik::kGrid[i])));
  }
};
constexpr PairBytes kFirstBytes([](const auto& pair) { return pair.first; });
constexpr PairBytes kSecondBytes([](const auto& pair) { return pair.second; });

// Numbers of pairs and lists are in the order of the tables that are built from them.
constexpr bool is_in_order() {
  int pairs = 0, lists = 0;
  for (const int pair : ik::kPairOf)
    if (pair >= 0 ? pair != pairs++ : pair != -1 - lists++) return false;
  return true;
}
static_assert(is_in_order());

struct NearestPair {
  Floats first, second;
  Words number;
};

// Returns the pair for two values divided by the scale. The number is computed if kHasNumber.
template <bool kHasNumber>
HWY_INLINE NearestPair nearest_pair(Floats first, Floats second, Floats weight1, Floats weight2) {
  const Words level1 = kTable.level(first), level2 = kTable.level(second), shift = hn::ShiftLeft<2>(level2);
  const Words row = as_words(kListRows[level1]);
  const Words list = (row >> shift) & words(15);
  const Words index = as_words(kListsBefore[level1]) + (list & words(7));
  Words nearest = words(0), number = words(0);
  Floats least = floats(0);
  GGUFMILL_UNROLL
  for (int i = 0; i < kNearest; ++i) {
    const Words pair = as_words(kNearPairs[i][index & words(31)]);
    const Floats off1 = first_of(pair) - first, off2 = second_of(pair) - second;
    const Floats error = weight1 * off1 * off1 + weight2 * off2 * off2;
    const Mask is_less = error < least;
    least = i == 0 ? error : choose(is_less, error, least);
    nearest = i == 0 ? pair : choose(is_less, pair, nearest);
    if constexpr (kHasNumber) {
      const Words next = hn::ShiftRightSame(as_words(kNumbers[index & words(31)]), 8 * i) & words(255);
      number = i == 0 ? next : choose(is_less, next, number);
    }
  }
  NearestPair best{first_of(nearest), second_of(nearest), number};
  const Mask is_pair = mask_of(list == words(15));
  best.first = choose(is_pair, kTable.value(level1), best.first);
  best.second = choose(is_pair, kTable.value(level2), best.second);
  if constexpr (kHasNumber) {
    const Words of_pair = as_words(kPairsBefore[level1]) + ((as_words(kPairRows[level1]) >> shift) & words(15));
    best.number = choose(is_pair, of_pair, best.number);
  }
  return best;
}

// The data of two neighbours for the trials with a sign. All inverse scales are within a few percent, so that a scaled
// value passes at most one border: it has one of two levels. The candidate pairs are looked up once for each two
// levels; if there is a pair of exactly these levels, it is the only one.
constexpr int kTries = 5, kTrials = 2 * kTries + 1;
static_assert(borders_passed(kTable, kTries, 1) == 1);
struct PairTerms {
  Floats border1, border2;
  Words pair[2][2][kNearest];

  PairTerms(Floats first, Floats second) {
    const Words low1 = kTable.level(first), low2 = kTable.level(second);
    border1 = kTable.border(low1);
    border2 = kTable.border(low2);
    for (const std::uint32_t next1 : {0u, 1u})
      for (const std::uint32_t next2 : {0u, 1u}) {
        const Words level1 = hn::Min(low1 + words(next1), words(7)), level2 = hn::Min(low2 + words(next2), words(7));
        const Words list = (as_words(kListRows[level1]) >> hn::ShiftLeft<2>(level2)) & words(15);
        const Words index = (as_words(kListsBefore[level1]) + (list & words(7))) & words(31);
        const Words same = as_words(kTable.value(level1)) | hn::ShiftRight<16>(as_words(kTable.value(level2)));
        for (int i = 0; i < kNearest; ++i)
          pair[next1][next2][i] = choose(mask_of(list == words(15)), same, as_words(kNearPairs[i][index]));
      }
  }

  HWY_INLINE NearestPair nearest(Floats first, Floats second, Floats weight1, Floats weight2) const {
    const Mask next1 = first >= border1, next2 = second >= border2;
    Words nearest = words(0);
    Floats least = floats(0);
    GGUFMILL_UNROLL
    for (int i = 0; i < kNearest; ++i) {
      const Words each =
          choose(next1, choose(next2, pair[1][1][i], pair[1][0][i]), choose(next2, pair[0][1][i], pair[0][0][i]));
      const Floats off1 = first_of(each) - first, off2 = second_of(each) - second;
      const Floats error = weight1 * off1 * off1 + weight2 * off2 * off2;
      const Mask is_less = error < least;
      least = i == 0 ? error : choose(is_less, error, least);
      nearest = i == 0 ? each : choose(is_less, each, nearest);
    }
    return {first_of(nearest), second_of(nearest), words(0)};
  }
};

// A sub-block in lanes.
class Pairs {
 public:
  Pairs(const Blocks& blocks, int b) : blocks_(blocks), first_(b * kSub) {}

  Floats x(int i) const { return blocks_.at(first_ + i); }
  Floats weight(int i) const { return blocks_.weight(first_ + i); }

  template <bool kHasNumber>
  NearestPair nearest(Floats inverse, int i) const {
    return nearest_pair<kHasNumber>(inverse * x(i), inverse * x(i + 1), weight(i), weight(i + 1));
  }

  // Adds a pair times `factor`: the products of both values are added first.
  void add(const NearestPair& pair, Floats factor, int i, LaneSums& sums) const {
    const Floats first = factor * pair.first, second = factor * pair.second;
    const Floats weighted1 = weight(i) * first, weighted2 = weight(i + 1) * second;
    sums.qx = sums.qx + (weighted1 * x(i) + weighted2 * x(i + 1));
    sums.q2 = sums.q2 + (weighted1 * first + weighted2 * second);
  }

  // Adds the sums of the trials with a sign.
  void sum_trials(const Floats (&inverses)[kTrials + 1], LaneSums (&sums)[kTrials + 1]) const {
    for (int i = 0; i < kSub; i += 2) {
      const auto least = [&](Floats x) { return lesser(inverses[0] * x, inverses[kTrials - 1] * x); };
      const PairTerms terms(least(x(i)), least(x(i + 1)));
      for (int t = 0; t <= kTrials; ++t)
        add(terms.nearest(inverses[t] * x(i), inverses[t] * x(i + 1), weight(i), weight(i + 1)), floats(1), i, sums[t]);
    }
  }

  Floats search_scale() const {
    Floats magnitude;
    const Floats extreme = simd::extreme<kSub>([&](int i) { return x(i); }, magnitude);
    const Floats front = floats(kTable.value(std::size_t{0}));
    // By sign. The trial after the others is the first one; it has about the size of the middle one.
    Floats inverses[2][kTrials + 1];
    LaneSums sums[2][kTrials + 1];
    for (int t = 0; t < kTrials; ++t) inverses[0][t] = (floats(static_cast<float>(t - kTries)) + front) / extreme;
    inverses[0][kTrials] = hn::Neg(floats(1) / (hn::Neg(extreme) / front));
    for (int t = 0; t <= kTrials; ++t) inverses[1][t] = hn::Neg(inverses[0][t]);
    for (const int sign : {0, 1}) sum_trials(inverses[sign], sums[sign]);
    LaneBest best;
    const LaneSums& start = sums[1][kTrials];
    best.scale = start.qx / start.q2;
    best.score = best.scale * start.qx;
    best.take(sums[0][kTrials].qx, sums[0][kTrials].q2);
    for (int t = 0; t < kTrials; ++t)
      for (const int sign : {0, 1}) best.take(sums[sign][t].qx, sums[sign][t].q2);
    return hn::IfThenZeroElse(magnitude < floats(ik::kZero), best.scale);
  }

  Floats error(Floats scale) const {
    const Floats inverse = inverse_of(scale);
    Floats error = floats(0);
    for (int i = 0; i < kSub; i += 2) {
      const NearestPair pair = nearest<false>(inverse, i);
      const Floats off1 = scale * pair.first - x(i), off2 = scale * pair.second - x(i + 1);
      error = error + (weight(i) * off1 * off1 + weight(i + 1) * off2 * off2);
    }
    return error;
  }

  // Returns the code of a scale, or one of its neighbours, with the least error.
  Ints best_code(Floats d, Floats scale) const {
    const Ints nearest = clamp(nearest_ints(floats(1) / d * scale), -32, 31);
    Ints best = nearest;
    Floats least = floats(0);
    Mask has = hn::MaskFromVec(floats(0));
    for (int change = -1; change <= 1; ++change) {
      const Ints code = nearest + ints(change);
      const Mask exists = mask_of(clamp(code, -32, 31) == code);
      const Floats error = this->error(d * to_floats(code));
      const Mask takes = hn::And(exists, hn::Or(hn::Not(has), error < least));
      has = hn::Or(has, exists);
      least = choose(takes, error, least);
      best = choose(takes, code, best);
    }
    return best;
  }

 private:
  const Blocks& blocks_;
  int first_;
};

}  // namespace

void IQ2_KL::search(const Batch<1>& batch, LaneScales& found) {
  const Blocks blocks(batch, kWeighting);
  for (int b = 0; b < kSubs; ++b) found.scale[b] = Pairs(blocks, b).search_scale();
  found.shifted = words(0);
}

IQ2_KL::Rows::Rows(const RowScales& found) : d_(hn::Neg(found.extreme()) / floats(32)) {}

void IQ2_KL::Rows::encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block) {
  const Blocks blocks(batch, kWeighting);
  const Mask is_zero = d_ == floats(0);
  LaneLevels<kSubs * kPairs> numbers;
  Words codes[kSubs], high = words(0);
  for (int b = 0; b < kSubs; ++b) {
    const Pairs pairs(blocks, b);
    const Ints code = pairs.best_code(d_, found.scale[b]);
    const Floats factor = to_floats(code), inverse = floats(1) / (d_ * factor);
    const Mask counts = hn::AndNot(is_zero, mask_of(code != ints(0)));
    for (int j = 0; j < kPairs; ++j) {
      const NearestPair pair = pairs.nearest<true>(inverse, 2 * j);
      LaneSums next = sums_;
      pairs.add(pair, factor, 2 * j, next);
      sums_ = {choose(counts, next.qx, sums_.qx), choose(counts, next.q2, sums_.q2)};
      numbers.set(b * kPairs + j, choose(counts, pair.number, words(0)));
    }
    const Words stored = as_words(code + ints(32));
    codes[b] = stored & words(15);
    high = high | hn::ShiftLeftSame(hn::ShiftRight<4>(stored), 2 * b);
  }
  set_bytes(block, 0, LaneBlocks<Block>::kWords, [&](int i) {
    if (i < 2) return hn::ShiftRightSame(high, 8 * i) & words(255);
    if (i < 6) return codes[i - 2] | hn::ShiftLeft<4>(codes[i + 2]);
    if (i < 70) {
      const int at = (i - 6) / 16 * 32 + (i - 6) % 16;
      return (numbers[at] & words(15)) | hn::ShiftLeft<4>(numbers[at + 16] & words(15));
    }
    if (i >= 86) return words(0);
    Words bits = words(0);
    for (int b = 0; b < kSubs; ++b) bits = bits | hn::ShiftLeftSame(hn::ShiftRight<4>(numbers[b * kPairs + i - 70]), b);
    return bits;
  });
  clear(is_zero, block);
}

Words IQ2_KL::Rows::header() const {
  const Floats d = floats(1.025f) * sums_.scale(d_);
  return floats_to_half(choose(d_ == floats(0), floats(0), d));
}

void IQ2_KL::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const hn::Full128<std::uint8_t> bytes{};
  const hn::Full128<std::uint16_t> wide{};
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block) {
    const auto qh = hn::BitCast(wide, hn::LoadU(bytes, block->qh));
    GGUFMILL_UNROLL
    for (int b = 0; b < kSubs; ++b, x += kSub) {
      const int code =
          (block->scales_low[b % 4] >> (4 * (b / 4)) & 15) | (block->scales_high[b / 4] >> (2 * (b % 4)) & 3) << 4;
      const auto qs = hn::BitCast(wide, hn::LoadU(bytes, block->qs + b / 2 * kPairs));
      const auto low = hn::And(hn::BitCast(bytes, hn::ShiftRightSame(qs, 4 * (b % 2))), hn::Set(bytes, 15));
      const auto bit = hn::And(hn::BitCast(bytes, hn::ShiftRightSame(qh, b)), hn::Set(bytes, 1));
      const auto is_high = bit == hn::Set(bytes, 1);
      const auto firsts = hn::IfThenElse(is_high, hn::TableLookupBytes(hn::Load(bytes, kFirstBytes.at + 16), low),
                                         hn::TableLookupBytes(hn::Load(bytes, kFirstBytes.at), low));
      const auto seconds = hn::IfThenElse(is_high, hn::TableLookupBytes(hn::Load(bytes, kSecondBytes.at + 16), low),
                                          hn::TableLookupBytes(hn::Load(bytes, kSecondBytes.at), low));
      alignas(16) std::uint8_t values[kSub];
      hn::Store(hn::InterleaveLower(firsts, seconds), bytes, values);
      hn::Store(hn::InterleaveUpper(bytes, firsts, seconds), bytes, values + 16);
      const Floats scale = floats(d * static_cast<float>(code - 32));
      GGUFMILL_UNROLL
      for (int j = 0; j < kSub; j += static_cast<int>(kLanes))
        hn::StoreU(scale * to_floats(load_signed(values + j)), kFloats, x + j);
    }
  }
}

}  // namespace ggufmill::simd
