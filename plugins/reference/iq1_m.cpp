#include "plugins/reference/codebooks.h"
#include "plugins/reference/iq1_thirds.h"
#include "plugins/reference/iq1_types.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/reference/iq_match.h"
#include "plugins/reference/iq_sub_block.h"

namespace ggufmill::reference {
namespace {

constexpr int kSub = 16;
constexpr int kSubBlocks = 16;
constexpr unsigned kWays = 4;      // shift combinations of two groups; bit 1: first one down, bit 0: second
constexpr float kMin = 1e-7f;      // a sub-block with a lower greatest magnitude becomes zero
constexpr float kFudge = 1.1125f;  // factor of the stored scale

const std::array<float, 3>& values_of(unsigned ways, int group) { return kShiftedValues[ways >> (1 - group) & 1]; }

// Sums for a least-squares scale, for each shift combination.
struct WaySums {
  float xq[kWays] = {};
  float qq[kWays] = {};

  void add(const WaySums& other) {
    for (unsigned way = 0; way < kWays; ++way) xq[way] += other.xq[way];
    for (unsigned way = 0; way < kWays; ++way) qq[way] += other.qq[way];
  }
};

WaySums term(float x, float weight, int group, int level) {
  WaySums sums;
  for (unsigned way = 0; way < kWays; ++way) {
    const float q = values_of(way, group)[level];
    sums.xq[way] = weight * q * x;
    sums.qq[way] = weight * q * q;
  }
  return sums;
}

// Tries all shift combinations of all cuts. Every sum runs over the elements in sorted order, so the sums of each cut
// extend those of the previous cut.
Cut best_cut(const float* x, const float* weight, const std::uint8_t* order) {
  WaySums terms[3][kSub];
  for (int level = 0; level < 3; ++level)
    for (int i = 0; i < kSub; ++i) terms[level][i] = term(x[order[i]], weight[order[i]], order[i] / 8, level);
  Cut best;
  WaySums to_low;
  for (int low = 0; low <= kSub; ++low) {
    WaySums to_high = to_low;
    for (int high = low; high <= kSub; ++high) {
      WaySums all = to_high;
      for (int i = high; i < kSub; ++i) all.add(terms[2][i]);
      for (unsigned way = 0; way < kWays; ++way) best.consider(low, high, way, all.xq[way], all.qq[way]);
      if (high < kSub) to_high.add(terms[1][high]);
    }
    if (low < kSub) to_low.add(terms[0][low]);
  }
  return best;
}

struct Sub {
  float weight[kSub];
  float scale = 0;
  unsigned ways = 0;
  std::uint16_t index[2] = {};
};

void prepare(const float* x, const float* importance, float mean_square, Sub& sub) {
  if (importance)
    weigh(x, importance, mean_square, kSub, sub.weight);
  else
    for (int i = 0; i < kSub; ++i) sub.weight[i] = x[i] * x[i];
}

// Encodes one sub-block. It remains zero if its magnitudes are below kMin or all its weights are zero. Returns false
// on kNoBookPoint.
bool encode_sub(const float* x, Sub& sub) {
  if (largest_magnitude(x, kSub) < kMin) return true;
  std::uint8_t order[kSub], levels[kSub];
  ascending(x, kSub, order);
  const Cut cut = best_cut(x, sub.weight, order);
  if (!cut.found()) return true;
  levels_of(cut, order, kSub, levels);
  sub.ways = cut.scale < 0 ? cut.shifts ^ (kWays - 1) : cut.shifts;
  sub.scale = cut.scale < 0 ? -cut.scale : cut.scale;
  return take_to_book({x, sub.weight, levels, {&values_of(sub.ways, 0), &values_of(sub.ways, 1)}, 2}, sub.scale,
                      sub.index);
}

void put_indices(const Sub& sub, int at, Iq1M::Block& block) {
  for (int group = 0; group < 2; ++group) {
    block.qs[2 * at + group] = static_cast<std::uint8_t>(sub.index[group]);
    put_u8(block.qh[at], (sub.index[group] >> 8) << (4 * group));
  }
}

void put_shifts(unsigned ways, std::uint8_t& qh) { put_u8(qh, (ways & 2) << 2 | (ways & 1) << 7); }

// Adds a sub-block, with its scale rounded to `level`, to the sums for the scale of the super-block.
void add_rounded(const float* x, const Sub& sub, unsigned level, float& xq, float& qq) {
  for (int i = 0; i < kSub; ++i) {
    const int third = kIq1Book[sub.index[i / 8]][i % 8];
    const float q = values_of(sub.ways, i / 8)[third] * static_cast<float>(2 * level + 1);
    xq += sub.weight[i] * q * x[i];
    qq += sub.weight[i] * q * q;
  }
}

// The half is stored in the upper nibbles of the four scale words.
void put_half(std::uint32_t half, std::uint8_t* scales) {
  for (int i = 0; i < 4; ++i) put_u8(scales[2 * i + 1], (half >> (4 * i) & 15) << 4);
}

std::uint16_t get_half(const std::uint8_t* scales) {
  unsigned half = 0;
  for (int i = 0; i < 4; ++i) half |= unsigned{scales[2 * i + 1]} >> 4 << (4 * i);
  return static_cast<std::uint16_t>(half);
}

// Writes the shifts, the scales relative to the largest one, and then the super-block scale that best fits them.
void put_scales(const float* x, const Sub* subs, float most, Iq1M::Block& block) {
  float d = most / 15;
  const float inverse = 1 / d;
  float xq = 0, qq = 0;
  for (int at = 0; at < kSubBlocks; ++at) {
    const unsigned level = scale_level(inverse, subs[at].scale);
    put_u16(block.scales + at / 4 * 2, level << (at % 4 * 3));
    put_shifts(subs[at].ways, block.qh[at]);
    add_rounded(x + kSub * at, subs[at], level, xq, qq);
  }
  if (qq > 0) d = xq / qq;
  put_half(float_to_half(d * kFudge), block.scales);
}

}  // namespace

void Iq1M::decode(const Block& block, float* x) {
  const float d = half_to_float(get_half(block.scales));
  for (int group = 0; group < 32; ++group) {
    const int sub = group / 2;
    const float scale = d * static_cast<float>(2 * (load_u16(block.scales + sub / 4 * 2) >> (sub % 4 * 3) & 7) + 1);
    const unsigned high = block.qh[sub] >> (group % 2 * 4);
    const float shift = high & 8 ? -kIq1Shift : kIq1Shift;
    for (const std::uint8_t level : kIq1Book[block.qs[group] | (high & 7) << 8])
      *x++ = scale * (kIq1Values[level] + shift);
  }
}

std::int32_t Iq1M::encode(const float* x, const float* importance, Block& block) {
  block = {};
  const float mean_square = 2 * sum_of_squares(x, kElements) / kElements;
  Sub subs[kSubBlocks];
  float most = 0;
  for (int at = 0; at < kSubBlocks; ++at) {
    const int first = kSub * at;
    prepare(x + first, importance ? importance + first : nullptr, mean_square, subs[at]);
    if (!encode_sub(x + first, subs[at])) return kNoBookPoint;
    put_indices(subs[at], at, block);
    most = most > subs[at].scale ? most : subs[at].scale;
  }
  if (most > 0) put_scales(x, subs, most, block);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::reference
