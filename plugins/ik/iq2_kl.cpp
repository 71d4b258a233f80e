// IQ2_KL.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "plugins/ik/ks_types.h"
#include "plugins/ik/row.h"

namespace ggufmill::ik {
namespace {

constexpr int kSubBlock = Row::kSubBlock, kSubBlocks = Row::kSubBlocks, kPairs = kSubBlock / 2;
constexpr Weighting kWeighting{2.25f, Without::kMagnitudes};

// The pair of two levels of kValues3, by 8 * first + second; -1 - i if it is not one of the 32: see kNear[i].
constexpr std::array<int, 64> kPairOf{-1,  -2,  0,  -3,  -4, 1,   -5, -6,  2,   -7,  -8,  3,   -9,  4,  -10, 5,
                                      -11, 6,   7,  -12, 8,  9,   10, -13, 11,  -14, -15, -16, 12,  13, -17, 14,
                                      -18, -19, 15, 16,  17, 18,  19, -20, -21, 20,  21,  22,  23,  24, -22, -23,
                                      25,  -24, 26, -25, 27, -26, 28, 29,  -27, -28, 30,  -29, -30, 31, -31, -32};
// Pairs that are near to one that does not exist, in the order in which they are tried.
constexpr std::uint8_t kNear[32][8] = {
    {2, 0, 6, 11, 7, 3, 8, 15},       {0, 2, 3, 6, 7, 1, 8, 4},         {0, 1, 3, 4, 8, 7, 9, 6},
    {1, 0, 3, 4, 8, 9, 7, 10},        {1, 4, 5, 10, 9, 3, 8, 0},        {5, 1, 4, 10, 9, 14, 8, 3},
    {6, 2, 7, 0, 3, 11, 8, 15},       {3, 7, 0, 6, 8, 4, 12, 9},        {3, 4, 8, 9, 1, 7, 12, 10},
    {4, 10, 5, 9, 1, 8, 13, 14},      {11, 2, 6, 7, 20, 15, 25, 21},    {8, 7, 3, 12, 9, 16, 17, 13},
    {14, 5, 10, 19, 9, 13, 4, 18},    {6, 15, 7, 11, 20, 21, 16, 2},    {15, 7, 16, 6, 21, 12, 17, 22},
    {12, 16, 17, 8, 15, 7, 13, 22},   {19, 10, 13, 18, 14, 9, 12, 24},  {11, 20, 25, 6, 15, 2, 21, 7},
    {20, 15, 21, 6, 11, 7, 16, 26},   {14, 19, 29, 10, 28, 18, 13, 24}, {25, 11, 20, 21, 15, 6, 26, 30},
    {19, 24, 28, 18, 29, 23, 13, 17}, {29, 19, 14, 28, 24, 18, 10, 13}, {20, 26, 21, 25, 30, 15, 22, 16},
    {27, 26, 22, 23, 21, 30, 16, 24}, {27, 24, 28, 31, 23, 18, 22, 17}, {25, 30, 20, 26, 21, 11, 15, 22},
    {30, 26, 25, 20, 21, 27, 22, 15}, {30, 27, 31, 26, 22, 23, 21, 24}, {31, 27, 30, 26, 28, 23, 22, 24},
    {31, 28, 29, 27, 24, 23, 19, 18}, {29, 28, 31, 24, 19, 27, 14, 18}};

struct Pair {
  float first = 0, second = 0;
};
constexpr std::array<Pair, 32> kGrid = [] {
  std::array<Pair, 32> grid;
  for (std::size_t i = 0; i < kPairOf.size(); ++i)
    if (kPairOf[i] >= 0) grid[static_cast<std::size_t>(kPairOf[i])] = {kValues3.plain[i / 8], kValues3.plain[i % 8]};
  return grid;
}();

std::uint8_t nearest_pair(float inverse, const float* x, const float* weights) {
  const float first = inverse * x[0], second = inverse * x[1];
  const int known = kPairOf[8u * kValues3.plain.nearest(first) + kValues3.plain.nearest(second)];
  if (known >= 0) return static_cast<std::uint8_t>(known);
  const auto& near = kNear[-1 - known];
  std::uint8_t best = near[0];
  float least = 0;
  for (const std::uint8_t& pair : near) {
    const float off1 = kGrid[pair].first - first, off2 = kGrid[pair].second - second;
    const float error = weights[0] * off1 * off1 + weights[1] * off2 * off2;
    if (&pair != near && !(error < least)) continue;
    least = error;
    best = pair;
  }
  return best;
}

// Adds a pair times `factor`: the products of both values are added first.
void add(Sums& sums, const Pair& pair, float factor, const float* x, const float* weights) {
  const float first = factor * pair.first, second = factor * pair.second;
  sums.qx += weights[0] * first * x[0] + weights[1] * second * x[1];
  sums.q2 += weights[0] * first * first + weights[1] * second * second;
}

float search_scale(const float* x, const float* weights) {
  constexpr int kTries = 5;
  float magnitude = 0, extreme = 0;
  for (int i = 0; i < kSubBlock; ++i)
    if (std::fabs(x[i]) > magnitude) {
      magnitude = std::fabs(x[i]);
      extreme = x[i];
    }
  if (magnitude < kZero) return 0;
  const auto sums_of = [&](float inverse) {
    Sums sums;
    for (int i = 0; i < kSubBlock; i += 2)
      add(sums, kGrid[nearest_pair(inverse, x + i, weights + i)], 1, x + i, weights + i);
    return sums;
  };
  const float first = 1 / (-extreme / kValues3.plain.front());
  Best best;
  best.start(sums_of(first));
  best.take(sums_of(-first));
  for (int i = -kTries; i <= kTries; ++i) {
    const float inverse = (static_cast<float>(i) + kValues3.plain.front()) / extreme;
    best.take(sums_of(inverse));
    best.take(sums_of(-inverse));
  }
  return best.scale;
}

// Returns the weighted error of a sub-block with this scale.
float error_of(float scale, const float* x, const float* weights) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  float error = 0;
  for (int i = 0; i < kSubBlock; i += 2) {
    const Pair& pair = kGrid[nearest_pair(inverse, x + i, weights + i)];
    const float off1 = scale * pair.first - x[i], off2 = scale * pair.second - x[i + 1];
    error += weights[i] * off1 * off1 + weights[i + 1] * off2 * off2;
  }
  return error;
}

// Returns the code of a scale, or one of its neighbours, with the least error.
int best_code(float d, float scale, const float* x, const float* weights) {
  const int nearest = std::clamp(nearest_int(1 / d * scale), -32, 31);
  int best = nearest;
  bool is_first = true;
  float least = 0;
  for (int code = std::max(nearest - 1, -32); code <= std::min(nearest + 1, 31); ++code) {
    const float error = error_of(d * static_cast<float>(code), x, weights);
    if (!is_first && !(error < least)) continue;
    is_first = false;
    least = error;
    best = code;
  }
  return best;
}

}  // namespace

void IQ2_KL::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const unsigned code =
          bits_at(block->scales_low, b % 4, 4 * (b / 4), 15) | bits_at(block->scales_high, b / 4, 2 * (b % 4), 3) << 4;
      const float scale = d * static_cast<float>(static_cast<int>(code) - 32);
      for (int j = 0; j < kPairs; ++j) {
        const Pair& pair =
            kGrid[bits_at(block->qs, 16 * (b / 2) + j, 4 * (b % 2), 15) | bits_at(block->qh, j, b, 1) << 4];
        *x++ = scale * pair.first;
        *x++ = scale * pair.second;
      }
    }
}

void IQ2_KL::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof(Block));
  header.d.store(0);
  Row row(x, importance, count, kWeighting);
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) row.found(block, b).scale = search_scale(row.values(block, b), row.weights(b));
  }
  float d = -row.extreme() / 32;
  if (d == 0) return;
  Sums sums;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      const float *values = row.values(block, b), *weights = row.weights(b);
      const int code = best_code(d, row.found(block, b).scale, values, weights);
      const auto stored = static_cast<unsigned>(code + 32);
      add_bits(blocks[block].scales_low, b % 4, 4 * (b / 4), stored & 15);
      add_bits(blocks[block].scales_high, b / 4, 2 * (b % 4), stored >> 4);
      if (code == 0) continue;
      const float inverse = 1 / (d * static_cast<float>(code));
      for (int j = 0; j < kPairs; ++j) {
        const float *two = values + 2 * j, *of_two = weights + 2 * j;
        const std::uint8_t pair = nearest_pair(inverse, two, of_two);
        add_bits(blocks[block].qs, 16 * (b / 2) + j, 4 * (b % 2), pair & 15);
        add_bits(blocks[block].qh, j, b, pair >> 4);
        add(sums, kGrid[pair], static_cast<float>(code), two, of_two);
      }
    }
  }
  if (sums.q2 > 0) d = sums.qx / sums.q2;
  header.d.store(1.025f * d);
}

}  // namespace ggufmill::ik
