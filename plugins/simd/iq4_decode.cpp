// Decoders of IQ4_NL and IQ4_XS.

#include "plugins/reference/codebooks.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/simd/group_floats.h"
#include "plugins/simd/iq4_types.h"
#include "plugins/simd/nibble_book.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kSub = 32;
constexpr int kSubBlocks = 8;

constexpr NibbleBook kBook(reference::kIq4Values);

using Scales = GroupFloats<kLanes == 16 ? 16 : kSubBlocks>;  // at least one full vector

// Computes the scales from six-bit values with an offset of 32, which are stored as nibbles and, separately, their
// upper two bits.
void set_scales(const Iq4Xs::Block& block, Scales& scales) {
  const Floats d = load_half(block.d);
  const Words nibbles = words(reference::load_u32(block.scales_l)), pairs = words(reference::load_u16(block.scales_h));
  scales.set([&](int i) {
    const Words at = hn::Iota(kWords, static_cast<std::uint32_t>(i));
    const Words low = (nibbles >> hn::ShiftLeft<2>(at)) & words(15);
    const Words high = (pairs >> (at + at)) & words(3);
    return d * to_floats(as_ints(low | hn::ShiftLeft<4>(high)) - ints(32));
  });
}

void decode_block(const Iq4Xs::Block& block, const Scales& scales, float* x) {
  GGUFMILL_UNROLL
  for (int sub = 0; sub < kSubBlocks; ++sub)
    ScaledBook(kBook, scales[sub]).decode(block.qs + kSub / 2 * sub, x + kSub * sub);
}

}  // namespace

void Iq4Nl::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kSub) ScaledBook(kBook, load_half(block->d)).decode(block->qs, x);
}

void Iq4Xs::decode(const Block* block, std::uint64_t count, float* x) {
  decode_scaled<Scales, kSub * kSubBlocks>(block, count, x, set_scales, decode_block);
}

}  // namespace ggufmill::simd
