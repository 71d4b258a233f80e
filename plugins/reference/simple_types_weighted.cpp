// Q4_0, Q4_1, Q5_0 and Q5_1 with importance. Source: ggml, src/ggml-quants.c (quantize_row_q4_0_impl and its siblings).

#include "plugins/reference/fit.h"
#include "plugins/reference/nibbles.h"
#include "plugins/reference/simple_types.h"
#include "plugins/reference/weights.h"

namespace ggufmill::reference {
namespace {

constexpr int kCount = 32;

struct Weights {
  float values[kCount];
  Weights(const float* x, const float* importance, float row_mean_square) {
    weigh(kCount, x, importance, row_mean_square, values);
  }
};

}  // namespace

void Q4_0::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  block.d.store(fit_symmetric(kCount, 8, x, weights.values, levels));
  pack_nibbles(levels, block.qs);
}

void Q4_1::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  const AffineFit fit = fit_affine(kCount, 15, x, weights.values, kWeightedSearch, levels);
  block.d.store(fit.scale);
  block.m.store(fit.minimum);
  pack_nibbles(levels, block.qs);
}

void Q5_0::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  block.d.store(fit_symmetric(kCount, 16, x, weights.values, levels));
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

void Q5_1::encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block) {
  const Weights weights(x, importance, row_mean_square);
  std::uint8_t levels[kCount];
  const AffineFit fit = fit_affine(kCount, 31, x, weights.values, kWeightedSearch, levels);
  block.d.store(fit.scale);
  block.m.store(fit.minimum);
  pack_nibbles(levels, block.qs);
  pack_fifth_bits(levels, block.qh);
}

}  // namespace ggufmill::reference
