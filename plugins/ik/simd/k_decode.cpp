// Decoders of IQ2_K to IQ6_K.

#include "plugins/ik/simd/k_types.h"
#include "plugins/ik/simd/level_bytes.h"
#include "plugins/reference/iq_bits.h"

namespace ggufmill::simd {
namespace {

constexpr int kSubs = ik::kSubBlocks;
using Scales = SubScales<kSubs>;

template <class Block, class Code, std::size_t kSize>
HWY_INLINE void set(const Block& block, Scales& scales, const ik::Tables<kSize>& tables, const Code& code) {
  const Floats d = load_half(block.d);
  scales.scale.set([&](int i) { return d * to_floats(code(i)); });
  scales.set_shifts(block.extra.load(), tables);
}

template <class Block>
HWY_INLINE Ints scale_6(const Block& block, int i) {
  const Words high = word_of(reference::load_u32(block.scales_high), i, 2, 3);
  return (load_nibbles(block.scales_low, i, kSubs) | as_ints(hn::ShiftLeft<4>(high))) - ints(32);
}

void set_scales(const ik::IQ2_K::Block& block, Scales& scales) {
  set(block, scales, ik::kValues2, [&](int i) { return load_nibbles(block.scales, i, kSubs) - ints(8); });
}
void set_scales(const ik::IQ3_K::Block& block, Scales& scales) {
  set(block, scales, ik::kValues3, [&](int i) {
    const Ints code = load_nibbles(block.scales, i, kSubs), size = code + code + ints(1);
    const Words negative = word_of(block.negative.load(), i, 1, 1);
    return choose(mask_of(negative != words(0)), ints(0) - size, size);
  });
}
void set_scales(const ik::IQ4_K::Block& block, Scales& scales) {
  set(block, scales, ik::kValues4, [&](int i) { return scale_6(block, i); });
}
void set_scales(const ik::IQ5_K::Block& block, Scales& scales) {
  set(block, scales, ik::kValues5, [&](int i) { return scale_6(block, i); });
}
void set_scales(const ik::IQ6_K::Block& block, Scales& scales) {
  set(block, scales, ik::kValues6, [&](int i) { return load_signed(block.scales + i); });
}

void decode_block(const ik::IQ2_K::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_crumb(block.qs, [&](int i, ByteVector levels) { values.set(i, kBytes2[levels]); });
  scales.write(values, x);
}
void decode_block(const ik::IQ3_K::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_crumb(block.qs,
             [&](int i, ByteVector levels) { values.set(i, kBytes3[hn::Or(levels, high_bit<2>(block.qh, i))]); });
  scales.write(values, x);
}
void decode_block(const ik::IQ4_K::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_split_nibble(block.qs, [&](int i, auto levels) { values.set(i, kBytes4[levels]); });
  scales.write(values, x);
}
void decode_block(const ik::IQ5_K::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_nibble(block.qs,
              [&](int i, ByteVector levels) { values.set(i, kBytes5[hn::Or(levels, high_bit<4>(block.qh, i))]); });
  scales.write(values, x);
}
void decode_block(const ik::IQ6_K::Block& block, const Scales& scales, float* x) {
  ValueBytes levels;
  each_nibble(block.qs, [&](int i, ByteVector low) { levels.set(i, low); });
  each_crumb(block.qh, [&](int i, ByteVector high) {
    levels.set(i, hn::Or(load_levels(levels.at + i), bits_to<0, 3, 4>(high)));
  });
  GGUFMILL_UNROLL16
  for (int b = 0; b < kSubs; ++b)
    for (int i = b * ik::kSubBlock; i < (b + 1) * ik::kSubBlock; i += static_cast<int>(kLanes)) {
      const Floats q = to_floats(load_signed(levels.at + i));
      const Floats level = floats(-127.0f) + q * (floats(6.2568f) + q * (floats(-0.11218f) + q * floats(0.0011972f)));
      hn::StoreU(scales.scale[b] * (level + scales.shift[b]), kFloats, x + i);
    }
}

template <class Block>
void decode_blocks(const Block* block, std::uint64_t count, float* x) {
  decode_scaled<Scales, ik::kSuperBlock>(
      block, count, x, [](const Block& from, Scales& scales) { set_scales(from, scales); },
      [](const Block& from, const Scales& scales, float* to) { decode_block(from, scales, to); });
}

}  // namespace

void IQ2_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks(block, count, x); }
void IQ3_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks(block, count, x); }
void IQ4_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks(block, count, x); }
void IQ5_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks(block, count, x); }
void IQ6_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks(block, count, x); }

}  // namespace ggufmill::simd
