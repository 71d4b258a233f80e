// Q4_K and Q5_K, with the same results as plugins/reference/q4_k.cpp, and with one super-block per lane.

#include "plugins/simd/k_types.h"
#include "plugins/simd/q4_k_encoder.h"

namespace ggufmill::simd {

void Q4_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  q4_k::encode_4_bits<q4_k::GroupLines>(batch, *packed);
}

void Q5_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  q4_k::encode_5_bits<q4_k::GroupLines>(batch, *packed);
}

}  // namespace ggufmill::simd
