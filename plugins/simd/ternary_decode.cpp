// Decoders of TQ1_0 and TQ2_0.

#include "plugins/simd/bytes.h"
#include "plugins/simd/crumb_types.h"
#include "plugins/simd/crumbs.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes);

// Next base-3 digit of each byte, where a byte is a fraction of 256, and the rest of the byte.
struct Digits {
  Words next, rest;
  explicit Digits(Words bytes) {
    const Words tripled = bytes + bytes + bytes;
    next = hn::ShiftRight<8>(tripled);
    rest = tripled & words(0xff);
  }
};

// Unpacks `bytes` bytes of five digits each. Byte i holds elements i, i + bytes, i + 2 * bytes, ...
HWY_INLINE void unpack_digits(const std::uint8_t* in, int bytes, const Crumbs& values, float* x) {
  GGUFMILL_UNROLL
  for (int i = 0; i < bytes; i += kStep) {
    Words rest = load_bytes(in + i);
    GGUFMILL_UNROLL
    for (int n = 0; n < 5; ++n) {
      const Digits digits(rest);
      hn::StoreU(values.values(digits.next), kFloats, x + n * bytes + i);
      rest = digits.rest;
    }
  }
}

// Unpacks four bytes of four digits each. Digit n of byte b is element 4 * n + b.
HWY_INLINE void unpack_sixteen(const std::uint8_t* in, const Crumbs& values, float* x) {
  alignas(64) static constexpr std::uint32_t kPowers[16] = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
  alignas(64) static constexpr std::uint32_t kShifts[16] = {0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24};
  std::uint32_t four;
  std::memcpy(&four, in, 4);
  GGUFMILL_UNROLL
  for (int i = 0; i < 16; i += kStep) {
    const Words bytes = (words(four) >> hn::Load(kWords, kShifts + i)) & words(0xff);
    const Digits digits((bytes * hn::Load(kWords, kPowers + i)) & words(0xff));
    hn::StoreU(values.values(digits.next), kFloats, x + i);
  }
}

}  // namespace

void TQ1_0::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kElements) {
    const Crumbs values(load_half(block->d));
    unpack_digits(block->qs, 32, values, x);
    unpack_digits(block->qs + 32, 16, values, x + 160);
    unpack_sixteen(block->qh, values, x + 240);
  }
}

void TQ2_0::decode(const Block* block, std::uint64_t count, float* x) {
  for (; count > 0; --count, ++block, x += kElements) {
    const Crumbs values(load_half(block->d));
    GGUFMILL_UNROLL
    for (int i = 0; i < 64; i += kStep) {
      const Words bytes = load_bytes(block->qs + i);
      float* to = x + i / 32 * 128 + i % 32;
      hn::StoreU(values.values(bytes), kFloats, to);
      hn::StoreU(values.values(hn::ShiftRight<2>(bytes)), kFloats, to + 32);
      hn::StoreU(values.values(hn::ShiftRight<4>(bytes)), kFloats, to + 64);
      hn::StoreU(values.values(hn::ShiftRight<6>(bytes)), kFloats, to + 96);
    }
  }
}

}  // namespace ggufmill::simd
