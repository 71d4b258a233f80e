// Decoders of Q4_K and Q5_K.

#include <cstddef>

#include "plugins/simd/bytes.h"
#include "plugins/simd/group_floats.h"
#include "plugins/simd/k_types.h"
#include "plugins/simd/nibbles.h"
#include "plugins/simd/spread.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kGroups = 8;
constexpr int kGroup = 32;
constexpr int kStep = static_cast<int>(kLanes);

// Unpacks the codes of the groups: for each group, that of the scale and then that of the minimum.
template <class Block>
HWY_INLINE void unpack_codes(const Block& block, std::uint8_t* codes) {
  const hn::Full128<std::uint8_t> bytes{};
  const hn::Full128<std::uint32_t> fours{};
  // Groups 0 to 3 have six bits in one byte. In the other groups, scale and minimum have a nibble each in a shared
  // byte, and their upper two bits are at the top of the bytes of groups 0 to 3.
  alignas(16) static constexpr std::uint8_t kLow[16] = {4, 8, 5, 9, 6, 10, 7, 11, 12, 12, 13, 13, 14, 14, 15, 15};
  alignas(16) static constexpr std::uint8_t kHigh[16] = {4, 8, 5, 9, 6, 10, 7, 11, 4, 8, 5, 9, 6, 10, 7, 11};
  alignas(16) static constexpr std::uint32_t kLowBits[4] = {0x3f3f3f3f, 0x3f3f3f3f, 0x000f000f, 0x000f000f};
  alignas(16) static constexpr std::uint32_t kNibbleBits[4] = {0, 0, 0x0f000f00, 0x0f000f00};
  alignas(16) static constexpr std::uint32_t kHighBits[4] = {0, 0, 0x30303030, 0x30303030};
  static_assert(offsetof(Block, scales) == 4);
  const auto packed = hn::LoadU(bytes, bytes_from(block, 0));  // the field, and the halves before it
  const auto low = hn::BitCast(fours, hn::TableLookupBytes(packed, hn::Load(bytes, kLow)));
  const auto high = hn::BitCast(fours, hn::TableLookupBytes(packed, hn::Load(bytes, kHigh)));
  const auto nibbles = (low & hn::Load(fours, kLowBits)) | (hn::ShiftRight<4>(low) & hn::Load(fours, kNibbleBits));
  hn::StoreU(hn::BitCast(bytes, nibbles | (hn::ShiftRight<2>(high) & hn::Load(fours, kHighBits))), bytes, codes);
}

// Contains d * scale and dmin * minimum of the groups.
class GroupLines {
 public:
  template <class Block>
  HWY_INLINE void set(const Block& block) {
    std::uint8_t codes[2 * kGroups];
    unpack_codes(block, codes);
    const Floats units = load_halves(&block.d);
    values_.set([&](int i) { return units * to_floats(as_ints(load_bytes(codes + i))); });
  }

  Floats scale(int group) const { return values_[2 * group]; }
  Floats minimum(int group) const { return values_[2 * group + 1]; }
  // Returns the weights for levels.
  Floats operator()(int group, Ints levels) const { return scale(group) * to_floats(levels) - minimum(group); }

 private:
  GroupFloats<2 * kGroups> values_;
};

// Converts the nibbles of one of the two groups that share bytes to weights.
struct GroupValue {
  Floats scale, minimum;
  Floats operator()(Words levels) const { return scale * to_floats(as_ints(levels)) - minimum; }
};

HWY_INLINE void decode_block(const Q4_K::Block& block, const GroupLines& lines, float* x) {
  const auto nibbles = [&](int group) {
    return Nibbles<GroupValue>(GroupValue{lines.scale(group), lines.minimum(group)});
  };
  GGUFMILL_UNROLL
  for (int group = 0; group < kGroups; group += 2)
    decode_nibbles<kGroup>(block.qs + group / 2 * kGroup, nibbles(group), nibbles(group + 1), x + group * kGroup);
}

// Decodes five-bit levels. The elements belong to group `group` and to every second group after it.
HWY_INLINE void decode_fives(Words nibbles, Words fifth, const GroupLines& lines, int group, int element, float* x) {
  spread(merge_bits<0x10, 0x1f>(fifth, nibbles), [&](int part, Ints levels) {
    const int at = element + part * kStep;
    const int of = group + at / kGroup * 2;
    hn::StoreU(lines(of, levels), kFloats, x + of * kGroup + at % kGroup);
  });
}

HWY_INLINE void decode_block(const Q5_K::Block& block, const GroupLines& lines, float* x) {
  GGUFMILL_UNROLL
  for (int half = 0; half < 2; ++half) {  // half of the super-block
    const auto* qs = block.qs + 64 * half;
    GGUFMILL_UNROLL
    for (int byte = 0; byte < 64; byte += kWide) {
      const Words nibbles = load_wide(qs + byte), fifths = load_twice<2>(block.qh, byte);
      const int group = 4 * half;
      if (half == 0) {
        decode_fives(nibbles, hn::ShiftLeft<4>(fifths), lines, group, byte, x);
        decode_fives(hn::ShiftRight<4>(nibbles), hn::ShiftLeft<3>(fifths), lines, group + 1, byte, x);
      } else {
        decode_fives(nibbles, fifths, lines, group, byte, x);
        decode_fives(hn::ShiftRight<4>(nibbles), hn::ShiftRight<1>(fifths), lines, group + 1, byte, x);
      }
    }
  }
}

template <class Block>
void decode_blocks(const Block* blocks, std::uint64_t count, float* x) {
  decode_scaled<GroupLines, reference::kSuperBlock>(
      blocks, count, x, [](const Block& block, GroupLines& lines) { lines.set(block); },
      [](const Block& block, const GroupLines& lines, float* to) { decode_block(block, lines, to); });
}

}  // namespace

void Q4_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks(block, count, x); }

void Q5_K::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks(block, count, x); }

}  // namespace ggufmill::simd
