#include "plugins/ik/ks_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "plugins/ik/divisions.h"
#include "plugins/ik/nonlinear.h"
#include "plugins/ik/row.h"

namespace ggufmill::ik {
namespace {

constexpr int kSubBlock = Row::kSubBlock, kSubBlocks = Row::kSubBlocks;

int code_of(std::uint8_t scale) { return (scale & 254) - 127; }

// Stores the 7-bit codes and the tables of the scales of IQ4_KS and IQ5_KS, which are multiples of d.
template <class Block>
void store_codes(Row& row, float d, Block* blocks, std::uint64_t count) {
  const float inverse = 1 / d;
  for (std::uint64_t block = 0; block < count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const int code = std::clamp(nearest_int(0.5f * (inverse * row.found(block, b).scale + 127.0f)), 0, 127);
      blocks[block].scales[b] = static_cast<std::uint8_t>(blocks[block].scales[b] | code << 1);
    }
}

template <class Block>
void store_tables(Row& row, Block* blocks, std::uint64_t count) {
  for (std::uint64_t block = 0; block < count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) blocks[block].scales[b] = row.found(block, b).is_shifted ? 1 : 0;
}

// ---- the search of IQ2_KS ----

// Returns the first level whose value, times d, is nearest to x.
std::uint8_t nearest_level(const Table<4>& table, float d, float x) {
  std::uint8_t level = 0;
  float least = 0;
  for (std::uint8_t i = 0; i < 4; ++i) {
    const float off = x - d * table[i], square = off * off;
    if (i != 0 && !(square < least)) continue;
    least = square;
    level = i;
  }
  return level;
}

// Tries the scale d, with both signs.
bool try_scale(const Table<4>& table, float d, const float* x, const float* weights, Best& found) {
  Lanes qx[2], q2[2];
  for (int i = 0; i < kSubBlock; ++i)
    for (const int sign : {0, 1}) {
      const float level = table[nearest_level(table, sign ? -d : d, x[i])], weighted = weights[i] * level;
      qx[sign].add(i, weighted, x[i]);
      q2[sign].add(i, weighted, level);
    }
  bool is_found = false;
  for (const int sign : {0, 1}) {
    const Sums sums{qx[sign].total(), q2[sign].total()};
    if (is_found) {
      found.take(sums);
    } else if (sums.q2 > 0) {
      found.start(sums);
      is_found = true;
    }
  }
  return is_found;
}

SubBlockScale search_levels(const float* x, const float* weights) {
  constexpr int kTries = 13;
  const float extreme = extreme_of(std::span(x, kSubBlock));
  SubBlockScale found;
  if (std::fabs(extreme) < 1e-14f) return found;
  found.scale = extreme / kValues2.shifted[3];
  Best tried;
  float best = 0;
  if (try_scale(kValues2.plain, found.scale, x, weights, tried)) {
    best = tried.score;
    found.scale = tried.scale;
  }
  for (const bool is_shifted : {false, true})
    for (int i = -kTries; i <= kTries; ++i) {
      const float d = extreme / (kValues2[is_shifted].front() + 0.5f * static_cast<float>(i));
      if (!try_scale(kValues2[is_shifted], d, x, weights, tried) || !(tried.score > best)) continue;
      best = tried.score;
      found = {tried.scale, is_shifted};
    }
  return found;
}

// Chooses the levels for a scale, and returns their weighted error.
float level_error(const Table<4>& table, float scale, const float* x, const float* weights, std::uint8_t* levels) {
  Lanes error;
  for (int i = 0; i < kSubBlock; ++i) {
    levels[i] = nearest_level(table, scale, x[i]);
    const float off = std::fma(-scale, table[levels[i]], x[i]);
    error.add(i, weights[i] * off, off);
  }
  return error.total();
}

// Finds the scales of the sub-blocks of IQ2_KS and stores their tables. Returns d, and the codes unless it is 0.
template <class Search>
float search_row(Row& row, const Search& search, IQ2_KS::Header& header, IQ2_KS::Block* blocks, std::uint64_t count,
                 std::vector<int>& codes) {
  std::memset(blocks, 0, count * sizeof *blocks);
  header.d.store(0);
  std::vector<float> scales, of_sub_blocks;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      row.found(block, b) = search(row.values(block, b), row.weights(b));
      scales.push_back(row.found(block, b).scale);
      of_sub_blocks.push_back(0);
      for (int j = 0; j < kSubBlock; ++j) of_sub_blocks.back() += row.weights(b)[j];
      if (row.found(block, b).is_shifted) blocks[block].extra.set(b);
    }
  }
  codes.resize(scales.size());
  return fit_codes(scales.size(), 16, scales.data(), of_sub_blocks.data(), codes.data());
}

void store_code(IQ2_KS::Block& block, int b, int code) {
  add_nibble(block.scales, b, static_cast<unsigned>(code + 16) & 15);
  if (code >= 0) block.extra.set(8 + b);
}

void store_level(IQ2_KS::Block& block, int b, int j, unsigned level) {
  add_bits(block.qs, 32 * (b / 4) + j, 2 * (b % 4), level);
}

}  // namespace

void IQ2_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const int code = nibble(block->scales, b) + (block->extra.bit(8 + b) ? 16 : 0);
      const float scale = d * static_cast<float>(code - 16);
      for (int j = 0; j < kSubBlock; ++j)
        *x++ = scale * kValues2[block->extra.bit(b)][bits_at(block->qs, 32 * (b / 4) + j, 2 * (b % 4), 3)];
    }
}

void IQ2_KS::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  Row row(x, importance, count, {1.5f, Without::kSquaresAndQuarter});
  std::vector<int> codes;
  const float d = search_row(row, search_levels, header, blocks, count, codes);
  if (d == 0) return;
  Lanes qx, q2;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      const SubBlockScale& found = row.found(block, b);
      const Table<4>& table = kValues2[found.is_shifted];
      const float *values = row.values(block, b), *weights = row.weights(b);
      int code = codes[block * kSubBlocks + static_cast<unsigned>(b)];
      const float scale = d * static_cast<float>(code);
      std::uint8_t levels[kSubBlock], others[kSubBlock];
      const float error = level_error(table, scale, values, weights, levels);
      // One step towards the scale that was found.
      const int step = code > -16 && scale > found.scale ? -1 : code < -1 && scale < found.scale ? 1 : 0;
      if (step != 0 && level_error(table, d * static_cast<float>(code + step), values, weights, others) < error) {
        code += step;
        std::ranges::copy(others, levels);
      }
      for (int j = 0; j < kSubBlock; ++j) {
        const float q = static_cast<float>(code) * table[levels[j]], weighted = weights[j] * q;
        qx.add(j, weighted, values[j]);
        q2.add(j, weighted, q);
        store_level(blocks[block], b, j, levels[j]);
      }
      store_code(blocks[block], b, code);
    }
  }
  const float sum = q2.total();
  header.d.store(sum > 0 ? qx.total() / sum : d);
}

void IQ2_KS::encode_row_slow(const float* x, const float* importance, Header& header, Block* blocks,
                             std::uint64_t count) {
  Row row(x, importance, count, {1.5f, Without::kSquaresAndQuarter});
  std::vector<int> codes;
  const float d =
      search_row(row, search_divisions<kSubBlock, kSubBlock / 4 * 3, kSubBlock / 4>, header, blocks, count, codes);
  if (d == 0) return;
  Sums sums;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      const int code = codes[block * kSubBlocks + static_cast<unsigned>(b)];
      store_code(blocks[block], b, code);
      if (d * static_cast<float>(code) == 0) continue;
      std::uint8_t levels[kSubBlock];
      choose_levels(kValues2[row.found(block, b).is_shifted], kSubBlock, row.values(block, b), row.weights(b), d, code,
                    levels, sums);
      for (int j = 0; j < kSubBlock; ++j) store_level(blocks[block], b, j, levels[j]);
    }
  }
  header.d.store(1.030f * (sums.q2 > 0 ? sums.qx / sums.q2 : d));
}

void IQ3_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const int code =
          static_cast<int>(bits_at(block->scales, b % 4, 4 * (b / 4), 15)) + (block->extra.bit(b) ? 16 : 0);
      const float scale = d * static_cast<float>(code - 16);
      for (int j = 0; j < kSubBlock; ++j)
        *x++ = scale * kValues3[block->extra.bit(8 + b)][bits_at(block->qs, 32 * (b / 4) + j, 2 * (b % 4), 3) |
                                                         bits_at(block->qh, j, b, 1) << 2];
    }
}

void IQ3_KS::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof(Block));
  Row row(x, importance, count);
  row.search(kValues3, 5, Start::kScale);
  for (std::uint64_t block = 0; block < count; ++block)
    for (int b = 0; b < kSubBlocks; ++b)
      if (row.found(block, b).is_shifted) blocks[block].extra.set(8 + b);
  const float d = -row.extreme() / 16;
  header.d.store(d);
  if (d == 0) return;
  const float inverse = 1 / d;
  Sums sums;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      const SubBlockScale& found = row.found(block, b);
      const int code = std::clamp(nearest_int(inverse * found.scale), -16, 15);
      add_bits(blocks[block].scales, b % 4, 4 * (b / 4), static_cast<unsigned>(code + 16) & 15);
      if (code >= 0) blocks[block].extra.set(b);
      std::uint8_t levels[kSubBlock];
      choose_levels(kValues3[found.is_shifted], kSubBlock, row.values(block, b), row.weights(b), d, code, levels, sums);
      for (int j = 0; j < kSubBlock; ++j) {
        add_bits(blocks[block].qs, 32 * (b / 4) + j, 2 * (b % 4), levels[j] & 3);
        add_bits(blocks[block].qh, j, b, levels[j] >> 2);
      }
    }
  }
  if (sums.q2 > 0) header.d.store(sums.qx / sums.q2);
}

void IQ4_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const float scale = d * static_cast<float>(code_of(block->scales[b]));
      for (int j = 0; j < kSubBlock; ++j)
        *x++ = scale * kValues4[block->scales[b] & 1][bits_at(block->qs, 16 * b + j % 16, 4 * (j / 16), 15)];
    }
}

void IQ4_KS::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof(Block));
  Row row(x, importance, count);
  row.search(kValues4, 7, Start::kFit);
  store_tables(row, blocks, count);
  const float d = std::fabs(row.extreme()) / 127;
  header.d.store(d);
  if (d == 0) return;
  store_codes(row, d, blocks, count);
  Sums sums;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      const auto code = static_cast<float>(code_of(blocks[block].scales[b]));
      const float scale = d * code, inverse = scale != 0 ? 1 / scale : 0;
      const auto& table = kValues4[row.found(block, b).is_shifted];
      const float *values = row.values(block, b), *weights = row.weights(b);
      for (int j = 0; j < kSubBlock / 2; ++j) {
        const std::uint8_t low = table.nearest(inverse * values[j]), high = table.nearest(inverse * values[j + 16]);
        blocks[block].qs[16 * b + j] = static_cast<std::uint8_t>(low | high << 4);
        const float q1 = table[low] * code, q2 = table[high] * code;
        sums.qx += weights[j] * q1 * values[j] + weights[j + 16] * q2 * values[j + 16];
        sums.q2 += weights[j] * q1 * q1 + weights[j + 16] * q2 * q2;
      }
    }
  }
  if (sums.q2 > 0) header.d.store(sums.qx / sums.q2);
}

void IQ5_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const float scale = d * static_cast<float>(code_of(block->scales[b]));
      for (int j = 0; j < kSubBlock; ++j)
        *x++ = scale * kValues5[block->scales[b] & 1][bits_at(block->qs, 32 * (b / 2) + j, 4 * (b % 2), 15) |
                                                      bits_at(block->qh, j, b, 1) << 4];
    }
}

void IQ5_KS::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof(Block));
  Row row(x, importance, count);
  row.search(kValues5, 5, Start::kFit);
  store_tables(row, blocks, count);
  const float d = std::fabs(row.extreme()) / 127;
  header.d.store(d);
  if (d == 0) return;
  store_codes(row, d, blocks, count);
  Sums sums;
  for (std::uint64_t block = 0; block < count; ++block) {
    row.weigh(block);
    for (int b = 0; b < kSubBlocks; ++b) {
      std::uint8_t levels[kSubBlock];
      choose_levels(kValues5[row.found(block, b).is_shifted], kSubBlock, row.values(block, b), row.weights(b), d,
                    code_of(blocks[block].scales[b]), levels, sums);
      for (int j = 0; j < kSubBlock; ++j) {
        add_bits(blocks[block].qs, 32 * (b / 2) + j, 4 * (b % 2), levels[j] & 15);
        add_bits(blocks[block].qh, j, b, levels[j] >> 4);
      }
    }
  }
  if (sums.q2 > 0) header.d.store(sums.qx / sums.q2);
}

}  // namespace ggufmill::ik
