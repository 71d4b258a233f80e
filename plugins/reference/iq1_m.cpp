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

// Sums over the first elements of a sub-block in sorted order, one list for each group: entry j of a list covers those
// of the first j elements that are in the group.
struct SortedSums {
  float wx[2][kSub + 1] = {};
  float w[2][kSub + 1] = {};

  SortedSums(const float* x, const float* weight, const std::uint8_t* order) {
    for (int j = 0; j < kSub; ++j) {
      const int at = order[j], group = at / 8;
      for (int each = 0; each < 2; ++each) {
        wx[each][j + 1] = wx[each][j];
        w[each][j + 1] = w[each][j];
      }
      wx[group][j + 1] += weight[at] * x[at];
      w[group][j + 1] += weight[at];
    }
  }
};

// Sums for the least-squares scale of a group, with the shift up [0] and down [1].
struct GroupSums {
  float xq[2], qq[2];

  // Neighbouring values of a shift differ by 1, so the sums of a cut are those of the greatest value for all elements,
  // minus differences for the elements below each boundary. The order of the operations decides the bytes.
  GroupSums(const float* wx, const float* w, int low, int high) {
    const float below = wx[low] + wx[high];
    for (unsigned shift = 0; shift < 2; ++shift) {
      const auto& v = kShiftedValues[shift];
      xq[shift] = wx[kSub] * v[2] - below;
      qq[shift] = w[kSub] * v[2] * v[2] + w[low] * (v[0] * v[0] - v[1] * v[1]) + w[high] * (v[1] * v[1] - v[2] * v[2]);
    }
  }
};

// Tries all shift combinations of all cuts.
Cut best_cut(const float* x, const float* weight, const std::uint8_t* order) {
  const SortedSums sums(x, weight, order);
  Cut best;
  for (int low = 0; low <= kSub; ++low) {
    for (int high = low; high <= kSub; ++high) {
      const GroupSums first(sums.wx[0], sums.w[0], low, high), second(sums.wx[1], sums.w[1], low, high);
      for (unsigned way = 0; way < kWays; ++way)
        best.consider(low, high, way, first.xq[way >> 1] + second.xq[way & 1], first.qq[way >> 1] + second.qq[way & 1]);
    }
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
