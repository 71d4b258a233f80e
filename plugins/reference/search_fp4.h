#pragma once
// The search for the 4-bit floats: the codes of scales around the one that the reference encoder chooses are tried,
// that one first, and the code with the least weighted error is kept. Sums are in element order, without fused
// operations.

#include <cfloat>
#include <cstdint>

#include "plugins/reference/fp4_levels.h"
#include "plugins/reference/fp4_scales.h"
#include "plugins/reference/fp4_types.h"

namespace ggufmill::reference {

// Codes tried below and above the reference's.
struct Fp4Effort {
  int powers_below, powers_above;  // of MXFP4
  int codes_below, codes_above;    // of NVFP4; five above let 4 instead of 6 stand for the greatest magnitude
};
inline constexpr Fp4Effort kFp4Efforts[] = {{0, 1, 1, 1}, {2, 2, 4, 6}, {2, 2, 8, 9}};

inline float fp4_error(const float* x, const float* weights, int count, float scale) {
  float error = 0;
  for (int i = 0; i < count; ++i) {
    const float off = x[i] - kDoubledFp4[nearest_fp4(x[i], scale)] * scale;
    error += weights[i] * off * off;
  }
  return error;
}

// Returns the best code within `below` and `above` of `first` and from 1 to `most`, or -1 if no error is finite.
// `scale_of` returns the scale of a code.
template <class ScaleOf>
int best_fp4_code(const float* x, const float* weights, int count, int first, int below, int above, int most,
                  const ScaleOf& scale_of) {
  int best = -1;
  float least = FLT_MAX;
  const auto offer = [&](int code) {
    const float error = fp4_error(x, weights, count, scale_of(static_cast<std::uint8_t>(code)));
    if (error < least) least = error, best = code;
  };
  offer(first);
  for (int code = first - below; code <= first + above; ++code)
    if (code != first && code >= 1 && code <= most) offer(code);
  return best;
}

inline bool search_mxfp4(const float* x, const float* weights, std::uint32_t effort, MXFP4::Block& block) {
  const Fp4Effort& tries = kFp4Efforts[effort - 1];
  const int code = best_fp4_code(x, weights, 32, e8m0_for(greatest_magnitude(x, 32)), tries.powers_below,
                                 tries.powers_above, 254, half_of_e8m0);
  if (code < 0) return false;
  block.e = static_cast<std::uint8_t>(code);
  encode_fp4(x, half_of_e8m0(block.e), 16, block.qs);
  return true;
}

inline bool search_nvfp4(const float* x, const float* weights, std::uint32_t effort, NVFP4::Block& block) {
  const Fp4Effort& tries = kFp4Efforts[effort - 1];
  for (int group = 0; group < 4; ++group) {
    const float* values = x + 16 * group;
    const int code = best_fp4_code(values, weights + 16 * group, 16, to_ue4m3(greatest_magnitude(values, 16) / 6.0f),
                                   tries.codes_below, tries.codes_above, 0x7e, half_of_ue4m3);
    if (code < 0) return false;
    block.d[group] = static_cast<std::uint8_t>(code);
    encode_fp4(values, half_of_ue4m3(block.d[group]), 8, block.qs + 8 * group);
  }
  return true;
}

}  // namespace ggufmill::reference
