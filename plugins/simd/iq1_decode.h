#pragma once
// What the decoders of IQ1_S and IQ1_M share: values in eighths, with the shift, as bytes.

#include <cstring>

#include "plugins/reference/codebooks.h"
#include "plugins/simd/bytes.h"

namespace ggufmill::simd {

// The points of the book, made at the first call.
class Iq1Eighths {
 public:
  static const Iq1Eighths& get() {
    static const Iq1Eighths eighths;
    return eighths;
  }
  void copy_point(unsigned index, bool down, std::uint8_t* bytes) const { std::memcpy(bytes, bytes_[down][index], 8); }

 private:
  Iq1Eighths() {
    for (std::size_t index = 0; index < 2048; ++index) {
      for (std::size_t i = 0; i < 8; ++i) {
        const int value = 8 * reference::kIq1Values[reference::kIq1Book[index][i]];
        bytes_[0][index][i] = static_cast<std::uint8_t>(value + 1);
        bytes_[1][index][i] = static_cast<std::uint8_t>(value - 1);
      }
    }
  }

  std::uint8_t bytes_[2][2048][8];
};

// x = scale * (value + shift), for 16 of them.
inline void store_eighths(const std::uint8_t* bytes, float scale, float* x) {
  for (std::size_t i = 0; i < 16; i += kLanes)
    hn::StoreU(floats(scale) * (to_floats(load_signed(bytes + i)) * floats(0.125f)), kFloats, x + i);
}

}  // namespace ggufmill::simd
