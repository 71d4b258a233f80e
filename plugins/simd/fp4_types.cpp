// MXFP4 and NVFP4, with the same results as plugins/reference/fp4_types.cpp. The only reduction is a maximum, which
// does not depend on the order, so one block is processed at a time, with its weights in the lanes.

#include "plugins/simd/fp4_types.h"

#include <cstring>

#include "plugins/reference/fp4_scales.h"
#include "plugins/simd/nibble_book.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes);
constexpr int kPositive = 8;  // number of non-negative levels; the negative ones have the same magnitudes

// Twice the value of each level.
constexpr std::int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr NibbleBook kBook(kDoubled);

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

// The levels, multiplied by a scale.
class Steps {
 public:
  explicit Steps(float scale) {
    for (int level = 1; level < kPositive; ++level) values_[level] = floats(kDoubled[level] * scale);
  }

  // Returns, for each value, the nearest level; the first one on a tie. Levels of the opposite sign are never nearer
  // than level 0, and the distance to a level of the same sign is that of the magnitude to the positive level.
  Words nearest(Floats x) const {
    const Floats magnitude = hn::Abs(x);
    Floats least = magnitude;
    Words best = words(0);
    for (int level = 1; level < kPositive; ++level) {
      const Floats error = hn::Abs(values_[level] - magnitude);
      const Mask nearer = error < least;
      best = choose(nearer, words(static_cast<std::uint32_t>(level)), best);
      least = lesser(error, least);
    }
    const Words sign = hn::ShiftRight<28>(as_words(x)) & words(8);
    return best | choose(mask_of(best == words(0)), best, sign);
  }

 private:
  Floats values_[kPositive];
};

}  // namespace

void MXFP4::encode(const float* x, Block& block) {
  block.e = reference::e8m0_for(greatest_magnitude(x, 32));
  const Steps steps(reference::half_of_e8m0(block.e));
  for (int i = 0; i < 16; i += kStep) {
    const Words low = steps.nearest(hn::LoadU(kFloats, x + i));
    const Words high = steps.nearest(hn::LoadU(kFloats, x + 16 + i));
    store_bytes(low | hn::ShiftLeft<4>(high), block.qs + i);
  }
}

namespace {

// Smaller exponents give scales that are too small for ScaledBook.
constexpr std::uint8_t kMinExponent = 3;
static_assert(kE8m0Halves.values[kMinExponent] * kBookUnit / kBookUnit == kE8m0Halves.values[kMinExponent]);

void decode_tiny(const reference::MXFP4::Block& block, float* x) {
  const float scale = kE8m0Halves.values[block.e];
  for (int i = 0; i < 16; ++i) {
    x[i] = kDoubled[block.qs[i] & 0xf] * scale;
    x[16 + i] = kDoubled[block.qs[i] >> 4] * scale;
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
    const Steps steps(reference::half_of_ue4m3(block.d[group]));
    std::uint8_t levels[16];
    for (int i = 0; i < 16; i += kStep) store_bytes(steps.nearest(hn::LoadU(kFloats, x + i)), levels + i);
    std::uint64_t low, high;  // eight levels each; the shift does not carry between bytes
    std::memcpy(&low, levels, 8);
    std::memcpy(&high, levels + 8, 8);
    low |= high << 4;
    std::memcpy(block.qs + 8 * group, &low, 8);
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
