#include "plugins/ik/simple_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/ik/llama_fit.h"
#include "plugins/ik/nonlinear.h"

namespace ggufmill::ik {
namespace {

float largest(const float* x, std::uint64_t count) {
  float largest = 0;
  for (std::uint64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// ---- Q6_0 ----

constexpr int kLimit = 32, kCount = 32;

void encode_q6_0(const float* x, const float* weights, Q6_0::Block& block) {
  std::uint8_t levels[kCount];
  std::memset(&block, 0, sizeof block);
  block.d.store(fit_symmetric(kCount, kLimit, x, weights, levels));
  for (int j = 0; j < kCount; ++j) {
    const unsigned q = levels[j];
    add_bits(block.qs, j % 16, 4 * (j / 16), q & 15);
    add_bits(block.qh, j % 8, 4 * (j / 8 % 2) + 2 * (j / 16), q >> 4);
  }
}

// ---- ternary types ----

// 0, 1, or 2.
int trit_of(float x, float threshold) { return std::fabs(x) < threshold ? 1 : x < 0 ? 0 : 2; }

constexpr int kPowers[] = {1, 3, 9, 27, 81, 243};

std::uint8_t byte_of(int number) { return static_cast<std::uint8_t>((256 * number + kPowers[5] - 1) / kPowers[5]); }
int trit_at(std::uint8_t byte, int k) {
  const auto rest = static_cast<std::uint8_t>(byte * kPowers[4 - k]);
  return (rest + (rest >> 1)) >> 7;
}

}  // namespace

void Q6_0::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int j = 0; j < kCount; ++j) {
    const unsigned q =
        bits_at(block.qs, j % 16, 4 * (j / 16), 15) | bits_at(block.qh, j % 8, 4 * (j / 8 % 2) + 2 * (j / 16), 3) << 4;
    x[j] = static_cast<float>(static_cast<int>(q) - kLimit) * d;
  }
}

void Q6_0::encode(const float* x, Block& block) {
  float weights[kCount];
  for (int j = 0; j < kCount; ++j) weights[j] = x[j] * x[j];
  encode_q6_0(x, weights, block);
}

void Q6_0::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  float weights[kCount];
  for (int j = 0; j < kCount; ++j) weights[j] = importance[j] * std::sqrt(row_mean_square + x[j] * x[j]);
  encode_q6_0(x, weights, block);
}

void Q8_KV::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (std::uint64_t block = 0; block < count; ++block)
    for (const std::uint8_t q : blocks[block].q) *x++ = d * static_cast<float>(static_cast<std::int8_t>(q));
}

void Q8_KV::encode_row(const float* x, const float* /*importance*/, Header& header, Block* blocks,
                       std::uint64_t count) {
  const float d = largest(x, count * kElements) / 127, inverse = d != 0 ? 1 / d : 0;
  header.d.store(d);
  std::uint32_t sum = 0;
  for (std::uint64_t block = 0; block < count; ++block)
    for (std::uint8_t& q : blocks[block].q) {
      const int code = nearest_int(inverse * *x++);
      q = static_cast<std::uint8_t>(code);
      sum += static_cast<std::uint32_t>(code);
    }
  for (int i = 0; i < 4; ++i) header.sum[i] = static_cast<std::uint8_t>(sum >> (8 * i));
}

void IQ1_BN::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int i = 0; i < 64; ++i) {
      const int group = i / 16, j = i % 16;
      const int trit = j == 15 ? trit_at(block->extra, group) : trit_at(block->ql[3 * group + j / 5], j % 5);
      *x++ = d * static_cast<float>(trit - 1);
    }
}

void IQ1_BN::encode_row(const float* x, const float* /*importance*/, Header& header, Block* blocks,
                        std::uint64_t count) {
  const float d = largest(x, count * kElements), threshold = 0.5f * d;
  header.d.store(d);
  for (Block* block = blocks; block != blocks + count; ++block) {
    int last = 0;
    for (int group = 0; group < 4; ++group) {
      for (int k = 0; k < 3; ++k) {
        int number = 0;
        for (int j = 0; j < 5; ++j) number += kPowers[j] * trit_of(*x++, threshold);
        block->ql[3 * group + k] = byte_of(number);
      }
      last += kPowers[group] * trit_of(*x++, threshold);
    }
    block->extra = byte_of(last);
  }
}

void IQ2_BN::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int i = 0; i < 64; ++i)
      *x++ = d * static_cast<float>(static_cast<int>(bits_at(block->qs, i % 16, 2 * (i / 16), 3)) - 1);
}

void IQ2_BN::encode_row(const float* x, const float* /*importance*/, Header& header, Block* blocks,
                        std::uint64_t count) {
  std::memset(blocks, 0, count * sizeof(Block));
  const float d = largest(x, count * kElements), threshold = 0.5f * d;
  header.d.store(d);
  for (Block* block = blocks; block != blocks + count; ++block)
    for (int i = 0; i < 64; ++i)
      add_bits(block->qs, i % 16, 2 * (i / 16), static_cast<unsigned>(trit_of(*x++, threshold)));
}

}  // namespace ggufmill::ik
