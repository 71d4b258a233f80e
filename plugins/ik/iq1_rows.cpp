#include "plugins/ik/iq1_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/reference/codebooks.h"
#include "plugins/reference/iq1_thirds.h"
#include "plugins/reference/weights.h"

namespace ggufmill::ik {
namespace {

using reference::Cut;
using reference::kIq1Book;
using reference::kShiftedValues;

constexpr int kBlock = 32, kHalf = 16, kGroup = 8;
constexpr float kNothing = 1e-14f;          // sums of squares or of weighted magnitudes that count as zero
constexpr std::uint16_t kZeroIndex = 1029;  // of the point whose coordinates are all zero
constexpr float kFudge = 1.0625f;           // factor of the stored scale
constexpr float kMaxLevels = 15;            // the largest scale in units of the row's

struct Fit {
  float scale = 0;
  unsigned shifts = 0;  // a bit for each shift; the first one is the highest
};

// Computes the weights of `count` values, from `spread` if there is no importance or the sum of the weighted magnitudes
// is below `least`.
void weigh(const float* x, const float* importance, float spread, int count, double least, float* weights) {
  if (importance) {
    float sum = 0;
    for (int i = 0; i < count; ++i) {
      weights[i] = importance[i] * std::sqrt(spread + x[i] * x[i]);
      sum += weights[i] * std::fabs(x[i]);
    }
    if (!(sum < least)) return;
  }
  for (int i = 0; i < count; ++i) weights[i] = std::sqrt(spread + x[i] * x[i]);
}

// Returns the scale of a row, and stores it.
float store_scale(float most, reference::StoredHalf& d) {
  d.store(kFudge * most / kMaxLevels);
  return most > 0 ? kMaxLevels / most : 0.0f;
}

void put_low_bits(const std::uint16_t* index, std::uint8_t* qs) {
  for (int group = 0; group < kBlock / kGroup; ++group) qs[group] = static_cast<std::uint8_t>(index[group]);
}

// ---- IQ1_S_R1 ----

// Returns false if the values are too large.
bool encode_block(const float* x, const float* importance, Fit& fit, IQ1_S_R1::Block& block) {
  std::uint16_t index[4] = {kZeroIndex, kZeroIndex, kZeroIndex, kZeroIndex};
  const float squares = reference::sum_of_squares(x, kBlock);
  if (!(squares < kNothing)) {
    float weights[kBlock];
    weigh(x, importance, 1.5f * squares / kBlock, kBlock, kNothing, weights);
    std::uint8_t order[kBlock], levels[kBlock];
    reference::ascending(x, kBlock, order);
    const Cut cut = reference::best_cut_of_one_shift(x, weights, order, kBlock);
    if (!cut.found()) return false;
    reference::levels_of(cut, order, kBlock, levels);
    fit.shifts = cut.scale < 0 ? cut.shifts ^ 1 : cut.shifts;
    fit.scale = std::fabs(cut.scale);
    const auto* values = &kShiftedValues[fit.shifts];
    if (!reference::take_to_book({x, weights, levels, {values, values, values, values}, 4}, fit.scale, index))
      return false;
  }
  put_low_bits(index, block.qs);
  unsigned high = fit.shifts << 15;
  for (int group = 0; group < 4; ++group) high |= static_cast<unsigned>(index[group] >> 8) << (3 * group);
  block.qh.store(high);
  return true;
}

// ---- IQ1_M_R1 ----

constexpr unsigned kWays = 4;  // shifts of the two groups of a half

const std::array<float, 3>& values_of(unsigned way, int group) { return kShiftedValues[way >> (1 - group) & 1]; }

// Sums over the elements in ascending order, of each group of a half.
struct SumsOfGroups {
  float wx[2][kHalf + 1] = {}, w[2][kHalf + 1] = {};

  SumsOfGroups(const float* x, const float* weights, const std::uint8_t* order) {
    for (int i = 0; i < kHalf; ++i) {
      const int at = order[i], group = at / kGroup;
      for (int each = 0; each < 2; ++each) {
        wx[each][i + 1] = wx[each][i] + (each == group ? weights[at] * x[at] : 0.0f);
        w[each][i + 1] = w[each][i] + (each == group ? weights[at] : 0.0f);
      }
    }
  }

  void consider(int low, int high, unsigned way, Cut& best) const {
    float xq = 0, qq = 0;
    for (int group = 0; group < 2; ++group) {
      const auto& v = values_of(way, group);
      xq += wx[group][low] * v[0];
      xq += (wx[group][high] - wx[group][low]) * v[1];
      xq += (wx[group][kHalf] - wx[group][high]) * v[2];
      qq += w[group][low] * v[0] * v[0];
      qq += (w[group][high] - w[group][low]) * v[1] * v[1];
      qq += (w[group][kHalf] - w[group][high]) * v[2] * v[2];
    }
    best.consider(low, high, way, xq, qq);
  }
};

// Chooses the shifts again, with the points that were found, and computes the scale that fits them best.
void fit_points(const float* x, const float* weights, const std::uint16_t* index, Fit& fit) {
  float xq[kWays] = {}, qq[kWays] = {};
  for (int i = 0; i < kHalf; ++i) {
    const int group = i / kGroup;
    for (unsigned way = 0; way < kWays; ++way) {
      const float q = values_of(way, group)[kIq1Book[index[group]][static_cast<unsigned>(i % kGroup)]];
      xq[way] += weights[i] * x[i] * q;
      qq[way] += weights[i] * q * q;
    }
  }
  float best = 0;
  for (unsigned way = 0; way < kWays; ++way)
    if (xq[way] > 0 && qq[way] > 0 && xq[way] * xq[way] > best * qq[way]) {
      fit = {xq[way] / qq[way], way};
      best = fit.scale * xq[way];
    }
}

// Returns false if the values are too large.
bool encode_half(const float* x, const float* weights, Fit& fit, std::uint16_t* index) {
  std::uint8_t order[kHalf], levels[kHalf];
  reference::ascending(x, kHalf, order);
  const SumsOfGroups sums(x, weights, order);
  Cut cut;
  for (int low = 0; low <= kHalf; ++low)
    for (int high = low; high <= kHalf; ++high)
      for (unsigned way = 0; way < kWays; ++way) sums.consider(low, high, way, cut);
  if (!cut.found()) return false;
  reference::levels_of(cut, order, kHalf, levels);
  fit = {std::fabs(cut.scale), cut.scale < 0 ? cut.shifts ^ (kWays - 1) : cut.shifts};
  bool moved = false;
  if (!reference::find_in_book({x, weights, levels, {&values_of(fit.shifts, 0), &values_of(fit.shifts, 1)}, 2},
                               fit.scale, index, moved))
    return false;
  if (moved) fit_points(x, weights, index, fit);
  return fit.scale >= 0;
}

// ik_llama.cpp gives a half that counts as zero the shifts of the half before it; here it has none.
bool encode_block(const float* x, const float* importance, Fit* fits, IQ1_M_R1::Block& block) {
  std::uint16_t index[4] = {kZeroIndex, kZeroIndex, kZeroIndex, kZeroIndex};
  const float squares[2] = {reference::sum_of_squares(x, kHalf), reference::sum_of_squares(x + kHalf, kHalf)};
  const float all = squares[0] + squares[1];
  constexpr double kMin[2] = {kNothing, 1e-14};  // a float for the first half, and a double for the second
  for (int half = 0; half < 2 && !(all < kNothing); ++half) {
    if (!(squares[half] > kNothing)) continue;
    const int first = half * kHalf;
    float weights[kHalf];
    weigh(x + first, importance ? importance + first : nullptr, 1.5f * all / kBlock, kHalf, kMin[half], weights);
    if (!encode_half(x + first, weights, fits[half], index + 2 * half)) return false;
  }
  put_low_bits(index, block.qs);
  for (int half = 0; half < 2; ++half) {
    const unsigned shifts = fits[half].shifts;
    block.qh[half] = static_cast<std::uint8_t>(index[2 * half] >> 8 | index[2 * half + 1] >> 8 << 4 |
                                               (shifts & 2) << 2 | (shifts & 1) << 7);
  }
  return true;
}

}  // namespace

void IQ1_S_R1::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (std::uint64_t at = 0; at < count; ++at) {
    const unsigned high = blocks[at].qh.load();
    const float scale = d * static_cast<float>(2 * (high >> 12 & 7) + 1);
    const float shift = high & 0x8000 ? -reference::kIq1Shift : reference::kIq1Shift;
    for (int group = 0; group < 4; ++group)
      for (const std::uint8_t level : kIq1Book[blocks[at].qs[group] | (high >> (3 * group) & 7) << 8])
        *x++ = scale * (reference::kIq1Values[level] + shift);
  }
}

std::int32_t IQ1_S_R1::encode_row(const float* x, const float* importance, Header& header, Block* blocks,
                                  std::uint64_t count) {
  std::vector<Fit> fits(count);
  float most = 0;
  for (std::uint64_t at = 0; at < count; ++at) {
    const float* const weights = importance ? importance + at * kBlock : nullptr;
    if (!encode_block(x + at * kBlock, weights, fits[at], blocks[at])) return GGUFMILL_CANNOT_REPRESENT;
    most = std::max(most, fits[at].scale);
  }
  const float inverse = store_scale(most, header.d);
  for (std::uint64_t at = 0; at < count; ++at)
    blocks[at].qh.store(blocks[at].qh.load() | reference::scale_level(inverse, fits[at].scale) << 12);
  return GGUFMILL_OK;
}

void IQ1_M_R1::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (std::uint64_t at = 0; at < count; ++at)
    for (int group = 0; group < 4; ++group) {
      const int half = group / 2;
      const float scale = d * static_cast<float>(blocks[at].scales >> (4 * half) & 15);
      const unsigned high = static_cast<unsigned>(blocks[at].qh[half]) >> (4 * (group % 2));
      const float shift = high & 8 ? -reference::kIq1Shift : reference::kIq1Shift;
      for (const std::uint8_t level : kIq1Book[blocks[at].qs[group] | (high & 7) << 8])
        *x++ = scale * (reference::kIq1Values[level] + shift);
    }
}

std::int32_t IQ1_M_R1::encode_row(const float* x, const float* importance, Header& header, Block* blocks,
                                  std::uint64_t count) {
  std::vector<Fit> fits(2 * count);
  float most = 0;
  for (std::uint64_t at = 0; at < count; ++at) {
    const float* const weights = importance ? importance + at * kBlock : nullptr;
    if (!encode_block(x + at * kBlock, weights, fits.data() + 2 * at, blocks[at])) return GGUFMILL_CANNOT_REPRESENT;
    most = std::max({most, fits[2 * at].scale, fits[2 * at + 1].scale});
  }
  const float inverse = store_scale(most, header.d);
  const auto level = [&](const Fit& fit) {
    return reference::clamp_level(reference::nearest_int(fit.scale * inverse), 0, 15);
  };
  for (std::uint64_t at = 0; at < count; ++at)
    blocks[at].scales = static_cast<std::uint8_t>(level(fits[2 * at]) | level(fits[2 * at + 1]) << 4);
  return GGUFMILL_OK;
}

}  // namespace ggufmill::ik
