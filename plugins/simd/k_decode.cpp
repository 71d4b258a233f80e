// Decoders of Q2_K, Q3_K and Q6_K. They merge the fields of levels while four levels share a word (spread.h); then they
// scale each group of 16 weights individually.

#include <bit>
#include <cstddef>
#include <cstring>

#include "plugins/simd/bytes.h"
#include "plugins/simd/group_floats.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/spread.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kGroups = 16;
constexpr int kGroup = 16;
constexpr int kStep = static_cast<int>(kLanes);

using Scales = GroupFloats<kGroups>;

// x = d * scale * level - dmin * minimum.
struct Lines {
  Scales scales, minimums;
};

// Returns the first element that has bits in byte `byte`, in the layout that reference::crumb reads.
constexpr int first_of_crumbs(int byte) { return byte / 32 * 128 + byte % 32; }

// Decodes the levels in bits 2 * kQuarter and 2 * kQuarter + 1 of each byte.
template <int kQuarter>
HWY_INLINE void decode_quarter(Words bytes, const Lines& lines, int element, float* x) {
  const Words levels = hn::ShiftRight<2 * kQuarter>(bytes) & bytes_of(3);
  spread(levels, [&](int part, Ints level) {
    const int i = element + first_of_crumbs(part * kStep) + 32 * kQuarter;
    hn::StoreU(lines.scales[i / kGroup] * to_floats(level) - lines.minimums[i / kGroup], kFloats, x + i);
  });
}

HWY_INLINE void set_scales(const Q2_K::Block& block, Lines& lines) {
  const Floats d = load_half(block.d), dmin = load_half(block.dmin);
  const auto codes = [&](int i) { return load_bytes(block.scales + i); };
  lines.scales.set([&](int i) { return d * to_floats(as_ints(codes(i) & words(0xf))); });
  lines.minimums.set([&](int i) { return dmin * to_floats(as_ints(hn::ShiftRight<4>(codes(i)))); });
}

HWY_INLINE void decode_block(const Q2_K::Block& block, const Lines& lines, float* x) {
  GGUFMILL_UNROLL
  for (int byte = 0; byte < 64; byte += kWide) {
    const Words bytes = load_wide(block.qs + byte);
    const int element = first_of_crumbs(byte);
    decode_quarter<0>(bytes, lines, element, x);
    decode_quarter<1>(bytes, lines, element, x);
    decode_quarter<2>(bytes, lines, element, x);
    decode_quarter<3>(bytes, lines, element, x);
  }
}

// Unpacks the 16 six-bit scales, which have an offset of 32, to bytes. Their nibbles are in the first eight bytes,
// followed by four bytes with the upper two bits of four scales each.
HWY_INLINE void unpack_scales(const Q3_K::Block& block, std::uint8_t* scales) {
  const hn::Full128<std::uint8_t> bytes{};
  const hn::Full128<std::uint32_t> fours{};
  constexpr std::size_t kScales = offsetof(Q3_K::Block, scales);
  alignas(16) static constexpr std::uint8_t kNibbles[16] = {4, 5, 6, 7, 8, 9, 10, 11, 4, 5, 6, 7, 8, 9, 10, 11};
  alignas(16) static constexpr std::uint8_t kPairs[16] = {12, 13, 14, 15, 12, 13, 14, 15,
                                                          12, 13, 14, 15, 12, 13, 14, 15};
  alignas(16) static constexpr std::uint32_t kNibbleShifts[4] = {0, 0, 4, 4}, kPairShifts[4] = {0, 2, 4, 6};
  const auto packed = hn::LoadU(bytes, bytes_from(block, kScales - 4));  // starts four bytes before the field
  const auto nibbles = hn::BitCast(fours, hn::TableLookupBytes(packed, hn::Load(bytes, kNibbles)));
  const auto pairs = hn::BitCast(fours, hn::TableLookupBytes(packed, hn::Load(bytes, kPairs)));
  const auto low = (nibbles >> hn::Load(fours, kNibbleShifts)) & hn::Set(fours, 0x0f0f0f0f);
  const auto high = (pairs >> hn::Load(fours, kPairShifts)) & hn::Set(fours, 0x03030303);
  hn::StoreU(hn::BitCast(bytes, low | hn::ShiftLeft<4>(high)), bytes, scales);
}

// Returns the half times 2^kExponent; exact even for the smallest half.
template <int kExponent>
Floats scaled_half(const reference::StoredHalf& half) {
  return load_half(half) * floats(std::bit_cast<float>((127 + kExponent) << 23));
}

// Moves the levels, which have three bits and an offset of 4, to the top of bytes. Inverting the upper bit removes the
// offset and makes it the sign.
template <int kQuarter>
HWY_INLINE void decode_quarter(Words low, Words third, const Scales& scales, int element, float* x) {
  Words bits = low;
  if constexpr (kQuarter < 3) bits = hn::ShiftLeft<5 - 2 * kQuarter % 6>(low);
  if constexpr (kQuarter == 3) bits = hn::ShiftRight<1>(low);
  const Words levels = merge_bits<0x60, 0xe0, 0x80>(bits, hn::ShiftLeft<7 - kQuarter>(third));
  spread_signed(levels, [&](int part, Ints level) {
    const int i = element + first_of_crumbs(part * kStep) + 32 * kQuarter;
    hn::StoreU(scales[i / kGroup] * to_floats(level), kFloats, x + i);
  });
}

HWY_INLINE void set_scales(const Q3_K::Block& block, Scales& scales) {
  std::uint8_t bytes[kGroups];
  unpack_scales(block, bytes);
  const Floats d = scaled_half<-29>(block.d);
  scales.set([&](int i) { return d * to_floats(as_ints(load_bytes(bytes + i)) - ints(32)); });
}

HWY_INLINE void decode_block(const Q3_K::Block& block, const Scales& scales, float* x) {
  GGUFMILL_UNROLL
  for (int byte = 0; byte < 64; byte += kWide) {
    const Words low = load_wide(block.qs + byte), third = load_twice<4>(block.hmask, byte);
    const int element = first_of_crumbs(byte);
    decode_quarter<0>(low, third, scales, element, x);
    decode_quarter<1>(low, third, scales, element, x);
    decode_quarter<2>(low, third, scales, element, x);
    decode_quarter<3>(low, third, scales, element, x);
  }
}

// Decodes six-bit levels with an offset of 32, given a nibble in bits 2 to 5 and a pair in bits 6 and 7 of bytes.
HWY_INLINE void decode_sixes(Words nibbles, Words pairs, const Scales& scales, int element, float* x) {
  spread_signed(merge_bits<0xc0, 0xfc, 0x80>(pairs, nibbles), [&](int part, Ints level) {
    const int i = element + part * kStep;
    hn::StoreU(scales[i / kGroup] * to_floats(level), kFloats, x + i);
  });
}

HWY_INLINE void set_scales(const Q6_K::Block& block, Scales& scales) {
  const Floats d = scaled_half<-26>(block.d);
  scales.set([&](int i) { return d * to_floats(load_signed(block.scales + i)); });
}

HWY_INLINE void decode_block(const Q6_K::Block& block, const Scales& scales, float* x) {
  GGUFMILL_UNROLL
  for (int byte = 0; byte < 128; byte += kWide) {  // byte / 64 is the half of the super-block
    const Words nibbles = load_wide(block.ql + byte), pairs = load_twice<2>(block.qh + byte / 64 * 32, byte % 64);
    const int element = byte / 64 * 128 + byte % 64;
    decode_sixes(hn::ShiftLeft<2>(nibbles), hn::ShiftLeft<6>(pairs), scales, element, x);
    decode_sixes(hn::ShiftRight<2>(nibbles), hn::ShiftLeft<2>(pairs), scales, element + 64, x);
  }
}

template <class Scales, class Block>
void decode_blocks(const Block* blocks, std::uint64_t count, float* x) {
  decode_scaled<Scales, reference::kSuperBlock>(
      blocks, count, x, [](const Block& block, Scales& scales) { set_scales(block, scales); },
      [](const Block& block, const Scales& scales, float* to) { decode_block(block, scales, to); });
}

}  // namespace

void Q2_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks<Lines>(block, count, x); }

void Q3_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks<Scales>(block, count, x); }

void Q6_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks<Scales>(block, count, x); }

}  // namespace ggufmill::simd
