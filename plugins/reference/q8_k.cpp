// Q8_K. Source: ggml, src/ggml-quants.c (quantize_row_q8_K_ref, dequantize_row_q8_K).

#include <algorithm>
#include <cstring>
#include <span>

#include "plugins/reference/k_types.h"

namespace ggufmill::reference {
namespace {

constexpr int kGroup = 16;

}  // namespace

// For a block of zeros, ggml leaves the sums uninitialized; here they are 0.
void Q8_K::encode(const float* x, Block& block) {
  std::memset(&block, 0, sizeof block);
  const float extreme = extreme_of(std::span(x, kSuperBlock));
  if (extreme == 0) return;
  const float inverse = -127.0f / extreme;
  for (int i = 0; i < kSuperBlock; ++i)
    block.qs[i] = static_cast<std::uint8_t>(std::min(127, nearest_int(inverse * x[i])));
  for (int group = 0; group < kSuperBlock / kGroup; ++group) {
    int sum = 0;
    for (int i = 0; i < kGroup; ++i) sum += signed_byte(block.qs[group * kGroup + i]);
    block.sums[2 * group] = static_cast<std::uint8_t>(sum);
    block.sums[2 * group + 1] = static_cast<std::uint8_t>(sum >> 8);
  }
  const float d = 1 / inverse;
  std::memcpy(block.d, &d, sizeof d);
}

void Q8_K::decode(const Block& block, float* x) {
  float d;
  std::memcpy(&d, block.d, sizeof d);
  for (int i = 0; i < kSuperBlock; ++i) x[i] = d * static_cast<float>(signed_byte(block.qs[i]));
}

}  // namespace ggufmill::reference
