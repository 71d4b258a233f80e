// Decoders of IQ2_KS to IQ5_KS.

#include "plugins/ik/simd/ks_types.h"
#include "plugins/ik/simd/level_bytes.h"
#include "plugins/reference/iq_bits.h"

namespace ggufmill::simd {
namespace {

constexpr int kSubs = LaneScales::kCount;
using Scales = SubScales<kSubs>;

// Returns nibble b / 4 of byte b % 4, from number i on.
Words nibbles_of_four(const std::uint8_t* bytes, int i) {
  const Words at = hn::Iota(kWords, static_cast<std::uint32_t>(i));
  const Words shift = hn::ShiftLeft<3>(at & words(3)) + (at & words(4));
  return (words(reference::load_u32(bytes)) >> shift) & words(15);
}

void set_scales(float d, const ik::IQ2_KS::Block& block, Scales& scales) {
  const std::uint32_t extra = block.extra.load();
  scales.scale.set([&](int i) {
    const Words high = hn::ShiftLeft<4>(word_of(extra >> 8, i, 1, 1));
    return floats(d) * to_floats((load_nibbles(block.scales, i, kSubs) | as_ints(high)) - ints(16));
  });
  scales.set_shifts(extra, ik::kValues2);
}
void set_scales(float d, const ik::IQ3_KS::Block& block, Scales& scales) {
  const std::uint32_t extra = block.extra.load();
  scales.scale.set([&](int i) {
    const Words code = nibbles_of_four(block.scales, i) | hn::ShiftLeft<4>(word_of(extra, i, 1, 1));
    return floats(d) * to_floats(as_ints(code) - ints(16));
  });
  scales.set_shifts(extra >> 8, ik::kValues3);
}
template <class Block, std::size_t kSize>
void set_scales_7(float d, const Block& block, const ik::Tables<kSize>& tables, Scales& scales) {
  std::uint64_t codes = 0;
  static_assert(sizeof codes == sizeof block.scales);
  std::memcpy(&codes, block.scales, sizeof codes);
  const Floats by = floats(tables.shifted[0] - tables.plain[0]);
  scales.scale.set([&](int i) { return floats(d) * to_floats(as_ints(bytes_of(codes, i) & words(254)) - ints(127)); });
  scales.shift.set([&](int i) { return to_floats(as_ints(bytes_of(codes, i) & words(1))) * by; });
}
void set_scales(float d, const ik::IQ4_KS::Block& block, Scales& scales) {
  set_scales_7(d, block, ik::kValues4, scales);
}
void set_scales(float d, const ik::IQ5_KS::Block& block, Scales& scales) {
  set_scales_7(d, block, ik::kValues5, scales);
}

void decode_block(const ik::IQ2_KS::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_crumb(block.qs, [&](int i, ByteVector levels) { values.set(i, kBytes2[levels]); });
  scales.write(values, x);
}
void decode_block(const ik::IQ3_KS::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_crumb(block.qs,
             [&](int i, ByteVector levels) { values.set(i, kBytes3[hn::Or(levels, high_bit<2>(block.qh, i))]); });
  scales.write(values, x);
}
void decode_block(const ik::IQ4_KS::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_split_nibble(block.qs, [&](int i, auto levels) { values.set(i, kBytes4[levels]); });
  scales.write(values, x);
}
void decode_block(const ik::IQ5_KS::Block& block, const Scales& scales, float* x) {
  ValueBytes values;
  each_nibble(block.qs,
              [&](int i, ByteVector levels) { values.set(i, kBytes5[hn::Or(levels, high_bit<4>(block.qh, i))]); });
  scales.write(values, x);
}

template <class Block>
void decode_blocks(float d, const Block* block, std::uint64_t count, float* x) {
  decode_scaled<Scales, kSuperBlock>(
      block, count, x, [d](const Block& from, Scales& scales) { set_scales(d, from, scales); },
      [](const Block& from, const Scales& scales, float* to) { decode_block(from, scales, to); });
}

}  // namespace

void IQ2_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  decode_blocks(header.d.load(), blocks, count, x);
}
void IQ3_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  decode_blocks(header.d.load(), blocks, count, x);
}
void IQ4_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  decode_blocks(header.d.load(), blocks, count, x);
}
void IQ5_KS::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  decode_blocks(header.d.load(), blocks, count, x);
}

}  // namespace ggufmill::simd
