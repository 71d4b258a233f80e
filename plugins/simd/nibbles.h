#pragma once
// Decodes four-bit levels, two per byte.

#include "plugins/simd/bytes.h"
#include "plugins/simd/pick.h"

namespace ggufmill::simd {

// Values of nibbles. value(levels) returns them, and depends only on the level. With 16 lanes, all values are computed
// once, and then looked up.
template <class Value>
class Nibbles {
 public:
  // low() and high() return the values of the low and the high nibbles of bytes, given one byte per word.
#if HWY_TARGET == HWY_AVX3
  explicit Nibbles(const Value& value) : values_(value(hn::Iota(kWords, 0))) {}
  Floats low(Words bytes) const { return pick(values_, bytes); }
  Floats high(Words bytes) const { return pick(values_, hn::ShiftRight<4>(bytes)); }

 private:
  Floats values_;
#else
  explicit Nibbles(const Value& value) : value_(value) {}
  Floats low(Words bytes) const { return value_(bytes & words(0xf)); }
  Floats high(Words bytes) const { return value_(hn::ShiftRight<4>(bytes)); }

 private:
  Value value_;
#endif
};

// Decodes kBytes bytes to x: the low nibbles, followed by the high ones.
template <int kBytes, class Low, class High>
HWY_INLINE void decode_nibbles(const std::uint8_t* bytes, const Nibbles<Low>& low, const Nibbles<High>& high,
                               float* x) {
  GGUFMILL_UNROLL
  for (int i = 0; i < kBytes; i += static_cast<int>(kLanes)) {
    const Words levels = load_bytes(bytes + i);
    hn::StoreU(low.low(levels), kFloats, x + i);
    hn::StoreU(high.high(levels), kFloats, x + kBytes + i);
  }
}

}  // namespace ggufmill::simd
