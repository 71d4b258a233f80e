#include "plugins/ik/simple_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

// Codes for values x ~ scale * code, in [-kLimit, kLimit - 1].
class CodeSearch {
 public:
  CodeSearch(const float* x, const float* weights, int* codes) : x_(x), weights_(weights), codes_(codes) {}

  // Returns the scale.
  float run() {
    float magnitude = 0, extreme = 0;
    for (int i = 0; i < kCount; ++i)
      if (std::fabs(x_[i]) > magnitude) {
        magnitude = std::fabs(x_[i]);
        extreme = x_[i];
      }
    if (magnitude < 1e-15f) {
      std::fill(codes_, codes_ + kCount, -kLimit);
      return 0;
    }
    const float first = -kLimit / extreme;
    choose(first);
    sums_ = sums_of(first);
    if (sums_.q2 != 0) best_.start(sums_);
    for (int i = -9; i <= 9; ++i) {
      take(-(kLimit + 0.1f * static_cast<float>(i)) / extreme);
      take((kLimit - 1 + 0.1f * static_cast<float>(i)) / extreme);
    }
    for (int i = 0; i < kCount * (2 * kLimit - 1); ++i)
      if (!step()) break;
    return best_.scale;
  }

 private:
  int code_of(float inverse, int i) const { return std::clamp(nearest_int(inverse * x_[i]), -kLimit, kLimit - 1); }
  void choose(float inverse) {
    for (int i = 0; i < kCount; ++i) codes_[i] = code_of(inverse, i);
  }
  Sums sums_of(float inverse) const {
    Sums sums;
    for (int i = 0; i < kCount; ++i) {
      const auto code = static_cast<float>(code_of(inverse, i));
      sums.qx += weights_[i] * x_[i] * code;
      sums.q2 += weights_[i] * code * code;
    }
    return sums;
  }
  void take(float inverse) {
    const Sums sums = sums_of(inverse);
    if (!best_.take(sums)) return;
    sums_ = sums;
    choose(inverse);
  }
  // Changes by one the code with the steepest gradient. Returns false if that does not help.
  bool step() {
    float steepest = 0, gradient = 0;
    int changed = -1;
    for (int i = 0; i < kCount; ++i) {
      const float g = best_.scale * weights_[i] * (x_[i] - best_.scale * static_cast<float>(codes_[i]));
      const bool may_change = (g > 0 && codes_[i] < kLimit - 1) || (g < 0 && codes_[i] > -kLimit);
      if (!may_change || !(std::fabs(g) > steepest)) continue;
      steepest = std::fabs(g);
      gradient = g;
      changed = i;
    }
    if (changed < 0) return false;
    const float weight = weights_[changed], weighted = weight * x_[changed];
    const int code = codes_[changed];
    Sums sums = sums_;
    if (gradient > 0) {
      sums.qx += weighted;
      sums.q2 += weight * static_cast<float>(2 * code + 1);
    } else {
      sums.qx -= weighted;
      sums.q2 -= weight * static_cast<float>(2 * code - 1);
    }
    if (!best_.take(sums)) return false;
    sums_ = sums;
    codes_[changed] += gradient > 0 ? 1 : -1;
    return true;
  }

  const float *x_, *weights_;
  int* codes_;
  Sums sums_;
  Best best_;
};

void encode_q6_0(const float* x, const float* weights, Q6_0::Block& block) {
  int codes[kCount];
  std::memset(&block, 0, sizeof block);
  block.d.store(CodeSearch(x, weights, codes).run());
  for (int j = 0; j < kCount; ++j) {
    const auto q = static_cast<unsigned>(codes[j] + kLimit);
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
