#include "plugins/reference/bit_types.h"

#include <cmath>
#include <cstring>

namespace ggufmill::reference {

void Q1_0::encode(const float* x, Block& block) {
  float sum = 0;
  std::memset(block.qs, 0, sizeof block.qs);
  for (unsigned i = 0; i < kElements; ++i) {
    sum += std::fabs(x[i]);
    if (x[i] >= 0) block.qs[i / 8] = static_cast<std::uint8_t>(block.qs[i / 8] | 1u << (i % 8));
  }
  block.d.store(sum / float{kElements});
}

void Q1_0::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (unsigned i = 0; i < kElements; ++i) x[i] = (block.qs[i / 8] >> (i % 8)) & 1 ? d : -d;
}

// Because the scale is the greatest magnitude, the encoder never produces level 3 (2 * d), although the format has it.
void Q2_0::encode(const float* x, Block& block) {
  float greatest = 0;
  for (unsigned i = 0; i < kElements; ++i) greatest = std::fabs(x[i]) > greatest ? std::fabs(x[i]) : greatest;
  const float inverse = greatest > 0 ? 1.0f / greatest : 0.0f;
  block.d.store(greatest);
  std::memset(block.qs, 0, sizeof block.qs);
  for (unsigned i = 0; i < kElements; ++i) {
    const int level = clamp_level(to_int32(round_away(x[i] * inverse)), -1, 2) + 1;
    block.qs[i / 4] = static_cast<std::uint8_t>(block.qs[i / 4] | level << (2 * (i % 4)));
  }
}

void Q2_0::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (unsigned i = 0; i < kElements; ++i) {
    const int level = (block.qs[i / 4] >> (2 * (i % 4))) & 3;
    x[i] = static_cast<float>(level - 1) * d;
  }
}

}  // namespace ggufmill::reference
