#include "plugins/reference/fp4_types.h"

#include <cmath>

#include "plugins/reference/fp4_scales.h"

namespace ggufmill::reference {
namespace {

// Twice the value of each level.
constexpr float kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float greatest_magnitude(const float* x, int count) {
  float greatest = 0;
  for (int i = 0; i < count; ++i) greatest = greatest < std::fabs(x[i]) ? std::fabs(x[i]) : greatest;
  return greatest;
}

// Returns the level nearest to x; the first one if there are several.
std::uint8_t nearest_level(float x, float scale) {
  int best = 0;
  float least = std::fabs(kDoubled[0] * scale - x);
  for (int level = 1; level < 16; ++level) {
    const float error = std::fabs(kDoubled[level] * scale - x);
    if (error < least) {
      best = level;
      least = error;
    }
  }
  return static_cast<std::uint8_t>(best);
}

// Writes `bytes` bytes of levels, with the first half of the elements in the low nibbles.
void encode_levels(const float* x, float scale, int bytes, std::uint8_t* qs) {
  for (int i = 0; i < bytes; ++i)
    qs[i] = static_cast<std::uint8_t>(nearest_level(x[i], scale) | nearest_level(x[i + bytes], scale) << 4);
}

void decode_levels(const std::uint8_t* qs, float scale, int bytes, float* x) {
  for (int i = 0; i < bytes; ++i) {
    x[i] = kDoubled[qs[i] & 0xf] * scale;
    x[i + bytes] = kDoubled[qs[i] >> 4] * scale;
  }
}

}  // namespace

void MXFP4::encode(const float* x, Block& block) {
  block.e = e8m0_for(greatest_magnitude(x, 32));
  encode_levels(x, half_of_e8m0(block.e), 16, block.qs);
}

void MXFP4::decode(const Block& block, float* x) { decode_levels(block.qs, half_of_e8m0(block.e), 16, x); }

void NVFP4::encode(const float* x, Block& block) {
  for (int group = 0; group < 4; ++group) {
    const float* values = x + 16 * group;
    block.d[group] = to_ue4m3(greatest_magnitude(values, 16) / 6.0f);
    encode_levels(values, half_of_ue4m3(block.d[group]), 8, block.qs + 8 * group);
  }
}

void NVFP4::decode(const Block& block, float* x) {
  for (int group = 0; group < 4; ++group)
    decode_levels(block.qs + 8 * group, half_of_ue4m3(block.d[group]), 8, x + 16 * group);
}

}  // namespace ggufmill::reference
