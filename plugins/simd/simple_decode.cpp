// Q4_0, Q4_1, Q5_0 and Q5_1 decoded.

#include "plugins/simd/fifth_bits.h"
#include "plugins/simd/nibbles.h"
#include "plugins/simd/simple_types.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 32;

// What levels of a block stand for.
struct Symmetric {
  Floats d;
  explicit Symmetric(const Q4_0::Block& block) : d(load_half(block.d)) {}
  Floats operator()(Words levels) const { return to_floats(as_ints(levels) - ints(8)) * d; }
};

struct Affine {
  Floats d, m;
  template <class Block>
  explicit Affine(const Block& block) : d(load_half(block.d)), m(load_half(block.m)) {}
  Floats operator()(Words levels) const { return to_floats(as_ints(levels)) * d + m; }
};

template <class Value, class Block>
HWY_INLINE void decode_nibble_blocks(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kCount) {
    const Nibbles<Value> nibbles{Value(*block)};
    decode_nibbles<kCount / 2>(block->qs, nibbles, nibbles, x);
  }
}

}  // namespace

void Q4_0::decode(const Block* block, std::uint64_t count, float* x) {
  decode_nibble_blocks<Symmetric>(block, count, x);
}

void Q4_1::decode(const Block* block, std::uint64_t count, float* x) { decode_nibble_blocks<Affine>(block, count, x); }

void Q5_0::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kCount) {
    const Floats d = load_half(block->d);
    each_signed_five(block->qs, block->qh, [&](int i, Floats level) { hn::StoreU(level * d, kFloats, x + i); });
  }
}

void Q5_1::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kCount) {
    const Affine value(*block);
    each_five(block->qs, block->qh,
              [&](int i, Floats level) { hn::StoreU(level * value.d + value.m, kFloats, x + i); });
  }
}

}  // namespace ggufmill::simd
