// IQ2_KL.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/ik/ks_types.h"
#include "plugins/ik/level_pairs.h"
#include "plugins/ik/row.h"

namespace ggufmill::ik {
namespace {

constexpr int kSubBlock = Row::kSubBlock, kSubBlocks = Row::kSubBlocks, kPairs = kSubBlock / 2;
constexpr Weighting kWeighting{2.25f, Without::kMagnitudes};

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
  const float extreme = extreme_of(std::span(x, kSubBlock));
  if (std::fabs(extreme) < kZero) return 0;
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
