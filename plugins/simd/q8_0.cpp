// Q8_0. The only reduction is a maximum, which does not depend on the order, so one block is processed at a time, with
// its weights in the lanes.

#include "plugins/simd/bytes.h"
#include "plugins/simd/magnitude.h"
#include "plugins/simd/simple_types.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 32;
constexpr int kVectors = kCount / static_cast<int>(kLanes);
constexpr int kStep = static_cast<int>(kLanes);

}  // namespace

void Q8_0::encode(const float* x, Block& block) {
  const Floats d = floats(greatest_magnitude<kCount>(x)) / floats(127.0f);
  const Floats inverse = or_zero(differ(d, floats(0)), floats(1) / d);
  block.d.store(hn::GetLane(d));
  for (int v = 0; v < kVectors; ++v) {
    const Ints levels = to_ints(before_truncation(hn::LoadU(kFloats, x + v * kStep) * inverse));
    store_bytes(as_words(levels), block.qs + v * kStep);
  }
}

void Q8_0::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kCount) {
    const Floats d = load_half(block->d);
    GGUFMILL_UNROLL
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(to_floats(load_signed(block->qs + v * kStep)) * d, kFloats, x + v * kStep);
  }
}

}  // namespace ggufmill::simd
