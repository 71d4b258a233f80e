// Q1_0 and Q2_0, with the same results as plugins/reference/bit_types.cpp. The scale of Q1_0 is a sum in element order,
// so each lane processes one block. The scale of Q2_0 is a maximum, which does not depend on the order, so one block is
// processed at a time, with its weights in the lanes.

#include "plugins/simd/crumb_types.h"

#include <cstring>

#include "plugins/simd/bytes.h"
#include "plugins/simd/crumbs.h"
#include "plugins/simd/flip_signs.h"
#include "plugins/simd/pack.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes);

// Returns 0, 1, 2, ... times `step`.
Words multiples(std::uint32_t step) { return hn::Iota(kWords, 0) * words(step); }

}  // namespace

void Q1_0::encode(const Batch<kSets>& batch, LaneBlocks<Block>* blocks) {
  constexpr int kCount = kElements;
  alignas(64) float x[kSets][kCount * kLanes];
  Floats sums[kSets];
  Words bits[kSets][kCount / 32];
  for (int set = 0; set < kSets; ++set) {
    rows_to_lanes(batch.x + set * kStep, kCount, x[set]);
    sums[set] = floats(0);
  }
  for (int word = 0; word < kCount / 32; ++word) {
    for (int set = 0; set < kSets; ++set) bits[set][word] = words(0);
    for (int i = 0; i < 32; ++i) {
      for (int set = 0; set < kSets; ++set) {
        const Floats value = hn::Load(kFloats, x[set] + (32 * word + i) * kStep);
        sums[set] = sums[set] + hn::Abs(value);
        const Floats bit = or_zero(value >= floats(0), as_floats(words(1u << i)));
        bits[set][word] = bits[set][word] | as_words(bit);
      }
    }
  }
  for (int set = 0; set < kSets; ++set) {
    Words carried = floats_to_half(sums[set] / floats(float{kCount}));
    for (int word = 0; word < kCount / 32; ++word) {
      blocks[set].set(word, carried | hn::ShiftLeft<16>(bits[set][word]));
      carried = hn::ShiftRight<16>(bits[set][word]);
    }
    blocks[set].set(kCount / 32, carried);
  }
}

void Q1_0::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block) {
    const Floats minus = hn::Neg(load_half(block->d));
    for (unsigned byte = 0; byte < kElements / 8; byte += 4, x += 32) {
      std::uint32_t bits;
      std::memcpy(&bits, block->qs + byte, sizeof bits);
      GGUFMILL_UNROLL
      for (int i = 0; i < 32; i += kStep) hn::StoreU(flip_signs(minus, bits, i), kFloats, x + i);
    }
  }
}

void Q2_0::encode(const float* x, Block& block) {
  constexpr int kCount = kElements;
  Floats greatest = floats(0);
  for (int i = 0; i < kCount; i += kStep) greatest = greater(hn::Abs(hn::LoadU(kFloats, x + i)), greatest);
  greatest = hn::MaxOfLanes(kFloats, greatest);
  const Floats inverse = or_zero(greatest > floats(0), floats(1) / greatest);
  block.d.store(hn::GetLane(greatest));
  std::uint8_t levels[kCount];
  for (int i = 0; i < kCount; i += kStep) {
    const Ints level = to_ints(before_truncation(hn::LoadU(kFloats, x + i) * inverse));
    store_bytes(as_words(clamp(level, -1, 2) + ints(1)), levels + i);
  }
  // The multiplication gathers the two bits of all four bytes of a word in its uppermost byte.
  for (int byte = 0; byte < kCount / 4; byte += kStep) {
    const Words four =
        hn::BitCast(kWords, hn::LoadU(hn::Repartition<std::uint8_t, decltype(kWords)>(), levels + 4 * byte));
    store_bytes(hn::ShiftRight<24>(four * words(0x01041040)), block.qs + byte);
  }
}

void Q2_0::decode(const Block* block, std::uint64_t count, float* x) {
  const Words shifts = multiples(2);
  for (; count > 0; --count, ++block) {
    const Crumbs crumbs(load_half(block->d));
    GGUFMILL_UNROLL
    for (unsigned i = 0; i < kElements; i += kStep, x += kLanes) {
      std::uint32_t four;
      std::memcpy(&four, block->qs + i / 16 * 4, 4);
      hn::StoreU(crumbs.values(words(four) >> (shifts + words(2 * (i % 16)))), kFloats, x);
    }
  }
}

}  // namespace ggufmill::simd
