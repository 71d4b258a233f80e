// Q6_0. The encoder has one block per lane, and the same sums in the same order as ik::Q6_0::encode_weighted().

#include "plugins/ik/simd/code_search.h"
#include "plugins/ik/simd/simple_types.h"
#include "plugins/simd/bytes.h"

namespace ggufmill::simd {
namespace {

constexpr int kLimit = 32, kCount = 32, kStep = static_cast<int>(kLanes);

}  // namespace

void Q6_0::decode(const Block* block, std::uint64_t count, float* x) {
  const hn::Full128<std::uint8_t> bytes{};
  const hn::Full128<std::uint16_t> wide{};
  const hn::Full128<std::uint64_t> halves{};
  const auto nibble = hn::Set(bytes, 15), two = hn::Set(bytes, 0x30);
  for (; count > 0; --count, ++block, x += kCount) {
    std::uint64_t stored = 0;
    std::memcpy(&stored, block->qh, sizeof stored);
    // Bits 4 and 5 of each byte are the high bits of levels 0 to 15 or 16 to 31.
    const auto qh = hn::Set(halves, stored);
    const auto high = hn::ConcatUpperLower(halves, qh, hn::ShiftLeft<4>(qh));
    const auto first = hn::BitCast(bytes, high), second = hn::BitCast(bytes, hn::ShiftRight<2>(high));
    const auto low = hn::LoadU(bytes, block->qs);
    const auto low_of_second = hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(wide, low)));
    alignas(16) std::uint8_t levels[kCount];
    hn::Store(hn::Or(hn::And(low, nibble), hn::And(first, two)), bytes, levels);
    hn::Store(hn::Or(hn::And(low_of_second, nibble), hn::And(second, two)), bytes, levels + 16);
    const Floats d = floats(block->d.load());
    GGUFMILL_UNROLL
    for (int j = 0; j < kCount; j += kStep)
      hn::StoreU(to_floats(as_ints(load_bytes(levels + j)) - ints(kLimit)) * d, kFloats, x + j);
  }
}

void Q6_0::encode(const Batch<1>& batch, LaneBlocks<Block>* blocks) {
  alignas(64) float x[kCount * kLanes], weights[kCount * kLanes];
  rows_to_lanes(batch.x, kCount, x);
  if (batch.weighted) rows_to_lanes(batch.importance, kCount, weights);
  const Floats spread = hn::LoadU(kFloats, batch.row_mean_square);
  for (int i = 0; i < kCount * kStep; i += kStep) {
    const Floats value = hn::Load(kFloats, x + i), square = value * value;
    const Floats weight = batch.weighted ? hn::Load(kFloats, weights + i) * hn::Sqrt(spread + square) : square;
    hn::Store(weight, kFloats, weights + i);
  }
  CodeSearch<kCount, kLimit> search;
  const Words d = floats_to_half(search.run(x, weights));
  LaneLevels<kCount> levels;
  for (int i = 0; i < kCount; ++i) levels.set(i, search.level(i));
  set_bytes(*blocks, 0, LaneBlocks<Block>::kWords, [&](int byte) {
    if (byte < 2) return hn::ShiftRightSame(d, 8 * byte) & words(255);
    if (byte < 10) {
      const auto high = [&](int i) { return hn::ShiftRight<4>(levels[byte - 2 + i]); };
      return high(0) | hn::ShiftLeft<2>(high(16)) | hn::ShiftLeft<4>(high(8)) | hn::ShiftLeft<6>(high(24));
    }
    if (byte < 26) return (levels[byte - 10] & words(15)) | hn::ShiftLeft<4>(levels[byte + 6] & words(15));
    return words(0);
  });
}

}  // namespace ggufmill::simd
