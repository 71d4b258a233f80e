#include "plugins/reference/codebooks.h"
#include "plugins/reference/iq1_thirds.h"
#include "plugins/reference/iq1_types.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/reference/iq_match.h"
#include "plugins/reference/iq_sub_block.h"

namespace ggufmill::reference {
namespace {

constexpr int kSub = 32;
constexpr int kSubBlocks = 8;
constexpr float kMin = 1e-12f;    // a sub-block with a lower greatest magnitude becomes zero
constexpr float kFudge = 1.125f;  // factor of the stored scale

struct Sub {
  float scale = 0;
  unsigned shift = 0;
  std::uint16_t index[4] = {};
};

// Encodes one sub-block. It remains zero if its magnitudes are below kMin or all its weights are zero. Returns false
// on kNoBookPoint.
bool encode_sub(const float* x, const float* importance, float mean_square, Sub& sub) {
  float weight[kSub];
  weigh(x, importance, mean_square, kSub, weight);
  if (largest_magnitude(x, kSub) < kMin) return true;
  std::uint8_t order[kSub], levels[kSub];
  ascending(x, kSub, order);
  const Cut cut = best_cut_of_one_shift(x, weight, order, kSub);
  if (!cut.found()) return true;
  levels_of(cut, order, kSub, levels);
  sub.shift = cut.scale < 0 ? cut.shifts ^ 1 : cut.shifts;
  sub.scale = cut.scale < 0 ? -cut.scale : cut.scale;
  const auto* values = &kShiftedValues[sub.shift];
  return take_to_book({x, weight, levels, {values, values, values, values}, 4}, sub.scale, sub.index);
}

void put_indices(const Sub& sub, int at, Iq1S::Block& block) {
  for (int group = 0; group < 4; ++group) {
    block.qs[4 * at + group] = static_cast<std::uint8_t>(sub.index[group]);
    put_u16(block.qh + 2 * at, (sub.index[group] >> 8) << (3 * group));
  }
}

}  // namespace

void Iq1S::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int group = 0; group < 32; ++group) {
    const unsigned high = load_u16(block.qh + group / 4 * 2);
    const float scale = d * static_cast<float>(2 * (high >> 12 & 7) + 1);
    const float shift = high & 0x8000 ? -kIq1Shift : kIq1Shift;
    const Ternary::Point& point = kIq1Book[block.qs[group] | (high >> (group % 4 * 3) & 7) << 8];
    for (const std::uint8_t level : point) *x++ = scale * (kIq1Values[level] + shift);
  }
}

std::int32_t Iq1S::encode(const float* x, const float* importance, Block& block) {
  block = {};
  const float mean_square = 2 * sum_of_squares(x, kElements) / kElements;
  Sub subs[kSubBlocks];
  float most = 0;
  for (int at = 0; at < kSubBlocks; ++at) {
    if (!encode_sub(x + kSub * at, importance + kSub * at, mean_square, subs[at])) return kNoBookPoint;
    put_indices(subs[at], at, block);
    most = most > subs[at].scale ? most : subs[at].scale;
  }
  if (most == 0) return GGUFMILL_OK;
  const float d = most / 15;
  block.d.store(d * kFudge);
  for (int at = 0; at < kSubBlocks; ++at)
    put_u16(block.qh + 2 * at, (scale_level(1 / d, subs[at].scale) | subs[at].shift << 3) << 12);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::reference
