// Decodes and encodes IQ4_KSS.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "plugins/ik/ks_types.h"
#include "plugins/ik/row.h"

namespace ggufmill::ik {
namespace {

constexpr int kSubBlock = Row::kSubBlock, kSubBlocks = Row::kSubBlocks, kGroups = kSubBlock / 4;

// Four values that share a word, and their weights.
struct Group {
  float x[4], weight[4];

  Group(const float* values, const float* weights, int k) {
    for (int j = 0; j < 4; ++j) {
      const int at = 2 * k + j / 2 + 16 * (j % 2);
      x[j] = values[at];
      weight[j] = weights[at];
    }
  }
};

bool is_odd(unsigned bits) { return std::popcount(bits) % 2 != 0; }

struct FourLevels {
  std::uint8_t level[4];

  // The nearest levels; of an odd number of bits, the level whose change costs least is changed by up to two. The cost
  // before is that of the plain table, also for the shifted one.
  FourLevels(const Table<16>& table, const Group& group, float inverse, float scale) {
    bool odd = false;
    for (int j = 0; j < 4; ++j) {
      level[j] = table.nearest(inverse * group.x[j]);
      odd ^= is_odd(level[j]);
    }
    if (odd) change_one(table, group, scale);
  }

 private:
  void change_one(const Table<16>& table, const Group& group, float scale) {
    bool is_found = false;
    float least = 0;
    int changed = 0;
    std::uint8_t changed_to = 0;
    for (int j = 0; j < 4; ++j) {
      const float before = scale * kValues4.plain[level[j]] - group.x[j];
      for (int other = std::max(level[j] - 2, 0); other <= std::min(level[j] + 2, 15); ++other) {
        const auto now = static_cast<std::uint8_t>(other);
        if (is_odd(now) == is_odd(level[j])) continue;
        const float after = scale * table[now] - group.x[j];
        const float cost = group.weight[j] * (after * after - before * before);
        if (is_found && !(cost < least)) continue;
        is_found = true;
        least = cost;
        changed = j;
        changed_to = now;
      }
    }
    level[changed] = changed_to;
  }
};

void add(Sums& sums, const Table<16>& table, const Group& group, const FourLevels& four) {
  for (int j = 0; j < 4; ++j) sums.add(group.weight[j], table[four.level[j]], group.x[j]);
}

float search_scale(const float* x, const float* weights) {
  constexpr int kTries = 7;
  const float extreme = extreme_of(std::span(x, kSubBlock));
  if (std::fabs(extreme) < kZero) return 0;
  Best best;
  best.scale = -extreme / kValues4.plain.front();
  for (int i = -kTries; i <= kTries; ++i)
    for (const Table<16>* table : {&kValues4.plain, &kValues4.shifted}) {
      const float inverse = (static_cast<float>(i) + table->front()) / extreme, scale = 1 / inverse;
      Sums positive, negative;
      for (int k = 0; k < kGroups; ++k) {
        const Group group(x, weights, k);
        add(positive, *table, group, FourLevels(*table, group, inverse, scale));
        add(negative, *table, group, FourLevels(*table, group, -inverse, scale));
      }
      best.take(positive);
      best.take(negative);
    }
  return best.scale;
}

// Returns n for which n ^ 2n are the bits, whose number is even.
unsigned scrambled(unsigned bits) {
  for (const int shift : {1, 2, 4, 8}) bits ^= bits << shift;
  return bits & 0x7fff;
}

float error_of(const Table<16>& table, const Group& group, const FourLevels& four, float scale, float error) {
  for (int j = 0; j < 4; ++j) {
    const float off = group.x[j] - scale * table[four.level[j]];
    error += group.weight[j] * off * off;
  }
  return error;
}

}  // namespace

void IQ4_KSS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b, x += kSubBlock) {
      const StoredWord* const words = block->words + b * kGroups;
      int code = 0;
      for (int k = 0; k < kGroups; ++k) code |= words[k].bit(0) << k;
      const float scale = d * static_cast<float>((code & 254) - 127);
      for (int k = 0; k < kGroups; ++k) {
        const unsigned n = words[k].load() & 0xfffe, levels = n ^ n >> 1;
        for (int j = 0; j < 4; ++j)
          x[2 * k + j / 2 + 16 * (j % 2)] = scale * kValues4[code & 1][levels >> (4 * j) & 15];
      }
    }
}

void IQ4_KSS::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof(Block));
  header.d.store(0);
  Row row(x, importance, count);
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) row.found(block, b).scale = search_scale(row.values(block, b), row.weights(b));
  }
  const float d = std::fabs(row.extreme()) / 127;
  header.d.store(d);
  if (d == 0) return;
  const float inverse_d = 1 / d;
  Sums sums;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      const float *values = row.values(block, b), *weights = row.weights(b);
      const int half = std::clamp(nearest_int(0.5f * (inverse_d * row.found(block, b).scale + 127.0f)), 0, 127);
      const int code = 2 * half - 127;  // odd
      const float scale = d * static_cast<float>(code), inverse = 1 / scale;
      float errors[2] = {};
      std::uint8_t levels[2][kSubBlock];
      for (const bool is_shifted : {false, true})
        for (int k = 0; k < kGroups; ++k) {
          const Group group(values, weights, k);
          const FourLevels four(kValues4[is_shifted], group, inverse, scale);
          errors[is_shifted] = error_of(kValues4[is_shifted], group, four, scale, errors[is_shifted]);
          std::ranges::copy(four.level, levels[is_shifted] + 4 * k);
        }
      const bool is_shifted = errors[1] < errors[0];
      const unsigned stored = static_cast<unsigned>(code + 127) | (is_shifted ? 1u : 0u);
      for (int k = 0; k < kGroups; ++k) {
        const Group group(values, weights, k);
        unsigned bits = 0;
        for (int j = 0; j < 4; ++j) {
          const std::uint8_t level = levels[is_shifted][4 * k + j];
          bits |= static_cast<unsigned>(level) << (4 * j);
          sums.add(group.weight[j], kValues4[is_shifted][level] * static_cast<float>(code), group.x[j]);
        }
        blocks[block].words[b * kGroups + k].store(scrambled(bits) << 1 | (stored >> k & 1));
      }
    }
  }
  if (sums.q2 > 0) header.d.store(sums.qx / sums.q2 * 1.01f);
}

}  // namespace ggufmill::ik
