// Decoders of IQ1_S and IQ1_M. A table contains the values of the points, including the shift, in eighths as signed
// bytes. The table positions and the scales are computed for an entire super-block at a time.

#include <cstddef>

#include "plugins/reference/codebooks.h"
#include "plugins/simd/block_fields.h"
#include "plugins/simd/bytes.h"
#include "plugins/simd/iq1_types.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr std::size_t kPoints = 2048;

// The points of the book shifted up, followed by those shifted down; built on the first call.
class Eighths {
 public:
  static const std::int8_t* get() {
    static const Eighths eighths;
    return eighths.values_[0];
  }

 private:
  Eighths() {
    for (std::size_t index = 0; index < kPoints; ++index) {
      for (std::size_t i = 0; i < 8; ++i) {
        const int value = 8 * reference::kIq1Values[reference::kIq1Book[index][i]];
        values_[index][i] = static_cast<std::int8_t>(value + 1);
        values_[kPoints + index][i] = static_cast<std::int8_t>(value - 1);
      }
    }
  }

  alignas(64) std::int8_t values_[2 * kPoints][8];
};

// Fields of a super-block; kSub weights share a scale.
template <int kSub>
struct Fields {
  static constexpr int kSubWeights = kSub;
  std::uint16_t points[32];      // position in the table
  SubFloats<256 / kSub> scales;  // scale of an eighth; exact even for the smallest half
};

template <class Fields>
HWY_INLINE void decode_fields(const Fields& fields, const std::int8_t* eighths, float* x) {
  const hn::Rebind<std::int8_t, decltype(kFloats)> bytes{};
  GGUFMILL_UNROLL
  for (int first = 0; first < 256; first += 32) {
    const FourPlaces places(fields.points + first / 8);
    GGUFMILL_UNROLL
    for (int i = 0; i < 32; i += static_cast<int>(kLanes)) {
      const Ints level = hn::PromoteTo(kInts, load_pieces<8>(bytes, eighths, places, i));
      hn::StoreU(fields.scales[(first + i) / Fields::kSubWeights] * to_floats(level), kFloats, x + first + i);
    }
  }
}

// Returns d * (2 * level + 1) / 8.
Floats scales_of(Floats d, Words levels) { return d * floats(0.125f) * to_floats(as_ints(levels + levels + words(1))); }

// Tables for the words of IQ1_S. Each word belongs to 32 weights and has 4 * 3 bits of the indices, 3 bits of the
// scale, and a bit that is set for a shift down.
struct Iq1SWords {
  alignas(64) std::uint8_t bytes[64];              // bytes of each group's word
  alignas(64) std::uint16_t factors[kShortLanes];  // move the first three of four fields to bit 8
  alignas(64) std::uint16_t masks[kShortLanes];

  constexpr Iq1SWords() : bytes(), factors(), masks() {
    for (int i = 0; i < 64; ++i) bytes[i] = static_cast<std::uint8_t>(i / 8 * 2 + i % 2);
    for (int i = 0; i < kShortLanes; ++i) {
      factors[i] = static_cast<std::uint16_t>(i % 4 == 3 ? 0 : 256 >> (3 * (i % 4)));
      masks[i] = i % 4 == 3 ? 0x700 : 0;
    }
  }
};

void set_fields(const Iq1S::Block& block, Fields<32>& fields) {
  static constexpr Iq1SWords kWordsOf;
  const auto source = hn::LoadDup128(kWideBytes, block.qh);
  for (int i = 0; i < 32; i += kShortLanes) {
    const auto bytes = hn::TableLookupBytes(source, hn::Load(kWideBytes, kWordsOf.bytes + 2 * i));
    const Shorts word = hn::BitCast(kShorts, bytes);
    const Shorts high = (word * hn::Load(kShorts, kWordsOf.factors)) & shorts(0x700);
    const Shorts last = hn::ShiftRight<1>(word) & hn::Load(kShorts, kWordsOf.masks);
    const Shorts down = hn::ShiftRight<4>(word) & shorts(0x800);
    const Shorts point = load_as_shorts(block.qs + i) | high | last | down;
    hn::StoreU(hn::ShiftLeft<3>(point), kShorts, fields.points + i);
  }
  fields.scales.set([&](int i) {
    return scales_of(load_half(block.d), hn::ShiftRight<12>(load_eight_shorts(block.qh, i)) & words(7));
  });
}

// Tables for the scales of IQ1_M: four 3-bit fields in each of the words, with a nibble of d on top.
struct Iq1MScales {
  alignas(64) std::uint8_t bytes[64];  // bytes of each sub-block's word; 0x80 gives a zero
  alignas(64) std::uint32_t shifts[16];

  constexpr Iq1MScales() : bytes(), shifts() {
    for (int i = 0; i < 64; ++i) bytes[i] = i % 4 < 2 ? static_cast<std::uint8_t>(8 + i / 16 * 2 + i % 2) : 0x80;
    for (std::uint32_t i = 0; i < 16; ++i) shifts[i] = 3 * (i % 4);
  }
};

Floats iq1_m_half(const std::uint8_t* scales) {
  std::uint64_t all;
  std::memcpy(&all, scales, sizeof all);
  return half_of_bits(
      static_cast<std::uint16_t>((all >> 12 & 0xf) | (all >> 24 & 0xf0) | (all >> 36 & 0xf00) | (all >> 48 & 0xf000)));
}

// The nibble of a group contains the three upper bits of its index and a bit that is set for a shift down.
void set_fields(const Iq1M::Block& block, Fields<16>& fields) {
  static constexpr Iq1MScales kScalesOf;
  constexpr std::size_t kScales = offsetof(Iq1M::Block, scales);
  each_index<4, 32>(block.qs, block.qh,
                    [&](int i, Shorts points) { hn::StoreU(hn::ShiftLeft<3>(points), kShorts, fields.points + i); });
  const Floats d = iq1_m_half(block.scales);
  const auto source = hn::LoadDup128(kWideBytes, bytes_from(block, kScales - 8));  // includes preceding bytes
  fields.scales.set([&](int i) {
    const auto bytes = hn::TableLookupBytesOr0(source, hn::Load(kWideBytes, kScalesOf.bytes + 4 * i));
    return scales_of(d, (hn::BitCast(kWords, bytes) >> hn::Load(kWords, kScalesOf.shifts + i)) & words(7));
  });
}

template <class Fields, class Block>
void decode_blocks(const Block* blocks, std::uint64_t count, float* x) {
  const std::int8_t* eighths = Eighths::get();
  decode_scaled<Fields, 256>(
      blocks, count, x, [](const Block& block, Fields& fields) { set_fields(block, fields); },
      [&](const Block&, const Fields& fields, float* to) { decode_fields(fields, eighths, to); });
}

}  // namespace

void Iq1S::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks<Fields<32>>(block, count, x); }

void Iq1M::decode(const Block* block, std::uint64_t count, float* x) { decode_blocks<Fields<16>>(block, count, x); }

}  // namespace ggufmill::simd
