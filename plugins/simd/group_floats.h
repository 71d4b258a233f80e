#pragma once
// Per-group values of super-blocks, in memory. Broadcasting one of them to all lanes takes only a load and no vector
// operation.

#include <algorithm>

#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

template <int kCount>
class GroupFloats {
 public:
  // values(i) returns the values from i on, one per lane.
  template <class Values>
  HWY_INLINE void set(const Values& values) {
    GGUFMILL_UNROLL
    for (int i = 0; i < kCount; i += static_cast<int>(kLanes)) hn::Store(values(i), kFloats, values_ + i);
  }

  Floats operator[](int i) const { return floats(values_[i]); }

 private:
  alignas(64) float values_[kCount];
};

// Decodes super-blocks of kElements weights. For each one, calls set_scales(block, scales) with its own `Scales`
// object, and then decode(block, scales, x). The scales of several blocks are set before the first of them is read,
// because loading recently stored data is slow.
template <class Scales, int kElements, class Block, class SetScales, class Decode>
HWY_INLINE void decode_scaled(const Block* block, std::uint64_t count, float* x, const SetScales& set_scales,
                              const Decode& decode) {
  constexpr std::uint64_t kAhead = 8;
  Scales scales[kAhead];
  for (std::uint64_t done = 0; done < count; done += kAhead) {
    const std::uint64_t blocks = std::min(kAhead, count - done);
    for (std::uint64_t i = 0; i < blocks; ++i) set_scales(block[done + i], scales[i]);
    for (std::uint64_t i = 0; i < blocks; ++i) decode(block[done + i], scales[i], x + (done + i) * kElements);
  }
}

}  // namespace ggufmill::simd
