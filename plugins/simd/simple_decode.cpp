// Decoders of Q4_0, Q4_1, Q5_0 and Q5_1.

#include "plugins/simd/fives.h"
#include "plugins/simd/nibbles.h"
#include "plugins/simd/simple_types.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 32;

// Values of the levels of a block.
template <int kZero>
struct Symmetric {
  Floats d;
  template <class Block>
  explicit Symmetric(const Block& block) : d(load_half(block.d)) {}
  Floats operator()(Words levels) const { return to_floats(as_ints(levels) - ints(kZero)) * d; }
};

struct Affine {
  Floats d, m;
  template <class Block>
  explicit Affine(const Block& block) {
    const Floats both = load_halves(&block.d);
    d = hn::DupEven(both);
    m = hn::DupOdd(both);
  }
  Floats operator()(Words levels) const { return to_floats(as_ints(levels)) * d + m; }
};

template <class Value, class Block>
HWY_INLINE void decode_nibble_blocks(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kCount) {
    const Nibbles<Value> nibbles{Value(*block)};
    decode_nibbles<kCount / 2>(block->qs, nibbles, nibbles, x);
  }
}

template <class Value, class Block>
HWY_INLINE void decode_five_blocks(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kCount) decode_fives(block->qs, block->qh, Value(*block), x);
}

}  // namespace

void Q4_0::decode(const Block* block, std::uint64_t count, float* x) {
  decode_nibble_blocks<Symmetric<8>>(block, count, x);
}

void Q4_1::decode(const Block* block, std::uint64_t count, float* x) { decode_nibble_blocks<Affine>(block, count, x); }

void Q5_0::decode(const Block* block, std::uint64_t count, float* x) {
  decode_five_blocks<Symmetric<16>>(block, count, x);
}

void Q5_1::decode(const Block* block, std::uint64_t count, float* x) { decode_five_blocks<Affine>(block, count, x); }

}  // namespace ggufmill::simd
