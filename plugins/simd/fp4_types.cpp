// MXFP4 and NVFP4, with the same results as plugins/reference/fp4_types.cpp. The only reduction is a maximum, which
// does not depend on the order, so one block is processed at a time, with its weights in the lanes.

#include "plugins/simd/iq4_types.h"

#include "plugins/reference/fp4_scales.h"
#include "plugins/simd/fp4_steps.h"
#include "plugins/simd/nibble_book.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes);
constexpr NibbleBook kBook(kDoubledFp4);

// Table of a function's values for all bytes.
template <float (*kFunction)(std::uint8_t)>
struct OfBytes {
  float values[256] = {};
  constexpr OfBytes() {
    for (unsigned byte = 0; byte < 256; ++byte) values[byte] = kFunction(static_cast<std::uint8_t>(byte));
  }
};

constexpr OfBytes<reference::half_of_e8m0> kE8m0Halves;
constexpr OfBytes<reference::half_of_ue4m3> kUe4m3Halves;

float greatest_magnitude(const float* x, int count) {
  Floats greatest = floats(0);
  for (int i = 0; i < count; i += kStep) greatest = greater(hn::Abs(hn::LoadU(kFloats, x + i)), greatest);
  return hn::GetLane(hn::MaxOfLanes(kFloats, greatest));
}

}  // namespace

void MXFP4::encode(const float* x, Block& block) {
  block.e = reference::e8m0_for(greatest_magnitude(x, 32));
  put_fp4_of_32(x, reference::half_of_e8m0(block.e), block.qs);
}

namespace {

// Smaller exponents give scales that are too small for ScaledBook.
constexpr std::uint8_t kMinExponent = 3;
static_assert(kE8m0Halves.values[kMinExponent] * kBookUnit / kBookUnit == kE8m0Halves.values[kMinExponent]);

void decode_tiny(const reference::MXFP4::Block& block, float* x) {
  const float scale = kE8m0Halves.values[block.e];
  for (int i = 0; i < 16; ++i) {
    x[i] = kDoubledFp4[block.qs[i] & 0xf] * scale;
    x[16 + i] = kDoubledFp4[block.qs[i] >> 4] * scale;
  }
}

}  // namespace

void MXFP4::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kElements) {
    if (HWY_UNLIKELY(block->e < kMinExponent))
      decode_tiny(*block, x);
    else
      ScaledBook(kBook, floats(kE8m0Halves.values[block->e])).decode(block->qs, x);
  }
}

void NVFP4::encode(const float* x, Block& block) {
  for (int group = 0; group < 4; ++group, x += 16) {
    block.d[group] = reference::to_ue4m3(greatest_magnitude(x, 16) / 6.0f);
    put_fp4_of_16(x, reference::half_of_ue4m3(block.d[group]), block.qs + 8 * group);
  }
}

void NVFP4::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block) {
    GGUFMILL_UNROLL
    for (int pair = 0; pair < 2; ++pair, x += 32) {
      const auto scaled = [&](int group) {
        return ScaledBook(kBook, floats(kUe4m3Halves.values[block->d[2 * pair + group]]));
      };
      ScaledBook::decode_eights(scaled(0), scaled(1), block->qs + 16 * pair, x);
    }
  }
}

}  // namespace ggufmill::simd
