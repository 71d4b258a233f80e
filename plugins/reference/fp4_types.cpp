#include "plugins/reference/fp4_types.h"

#include "plugins/reference/fp4_levels.h"
#include "plugins/reference/fp4_scales.h"

namespace ggufmill::reference {
namespace {

void decode_levels(const std::uint8_t* qs, float scale, int bytes, float* x) {
  for (int i = 0; i < bytes; ++i) {
    x[i] = kDoubledFp4[qs[i] & 0xf] * scale;
    x[i + bytes] = kDoubledFp4[qs[i] >> 4] * scale;
  }
}

}  // namespace

void MXFP4::encode(const float* x, Block& block) {
  block.e = e8m0_for(greatest_magnitude(x, 32));
  encode_fp4(x, half_of_e8m0(block.e), 16, block.qs);
}

void MXFP4::decode(const Block& block, float* x) { decode_levels(block.qs, half_of_e8m0(block.e), 16, x); }

void NVFP4::encode(const float* x, Block& block) {
  for (int group = 0; group < 4; ++group) {
    const float* values = x + 16 * group;
    block.d[group] = to_ue4m3(greatest_magnitude(values, 16) / 6.0f);
    encode_fp4(values, half_of_ue4m3(block.d[group]), 8, block.qs + 8 * group);
  }
}

void NVFP4::decode(const Block& block, float* x) {
  for (int group = 0; group < 4; ++group)
    decode_levels(block.qs + 8 * group, half_of_ue4m3(block.d[group]), 8, x + 16 * group);
}

}  // namespace ggufmill::reference
