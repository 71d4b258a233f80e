// Q8_0. The only reduction is a maximum, which does not depend on the order, so one block is processed at a time, with
// its weights in the lanes.

#include "plugins/simd/four_blocks.h"
#include "plugins/simd/magnitude.h"
#include "plugins/simd/simple_types.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 32;
constexpr int kVectors = kCount / static_cast<int>(kLanes);
constexpr int kStep = static_cast<int>(kLanes);

// Returns the greatest magnitudes of the lanes. They are compared as integers, which order like magnitudes, with NaNs
// above all numbers.
Floats greatest_of_lanes(const float* x) {
  Words greatest = as_words(hn::Abs(hn::LoadU(kFloats, x)));
  for (int v = 1; v < kVectors; ++v) greatest = hn::Max(greatest, as_words(hn::Abs(hn::LoadU(kFloats, x + v * kStep))));
  return as_floats(greatest);
}

Floats greater_bits(Floats a, Floats b) { return as_floats(hn::Max(as_words(a), as_words(b))); }

void put(const float* x, Floats inverse, Q8_0::Block& block) {
  Ints levels[kVectors];
  GGUFMILL_UNROLL
  for (int v = 0; v < kVectors; ++v)
    levels[v] = to_ints(before_truncation(hn::LoadU(kFloats, x + v * kStep) * inverse));
  store_32_bytes(levels, block.qs);
}

}  // namespace

bool Q8_0::encode_four(const float* x, Block* blocks) {
  const Floats greatest =
      reduce_four(greatest_of_lanes(x), greatest_of_lanes(x + kCount), greatest_of_lanes(x + 2 * kCount),
                  greatest_of_lanes(x + 3 * kCount), greater_bits);
  if (HWY_UNLIKELY(!are_usual(greatest))) return false;
  const Floats d = greatest / floats(127.0f);
  const Floats inverse = floats(1) / d;
  put(x, hn::Broadcast<0>(inverse), blocks[0]);
  put(x + kCount, hn::Broadcast<1>(inverse), blocks[1]);
  put(x + 2 * kCount, hn::Broadcast<2>(inverse), blocks[2]);
  put(x + 3 * kCount, hn::Broadcast<3>(inverse), blocks[3]);
  store_halves(d, blocks);
  return true;
}

void Q8_0::encode(const float* x, Block& block) {
  const Floats d = floats(greatest_magnitude<kCount>(x)) / floats(127.0f);
  const Floats inverse = inverse_of(d);
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
