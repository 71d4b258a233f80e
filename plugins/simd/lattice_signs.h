#pragma once
// The signs of a super-block of the IQ2 and IQ3 types: one byte per eight weights, or seven bits if the number of
// negative weights is even.

#include "plugins/simd/block_fields.h"
#include "plugins/simd/turn_signs.h"

namespace ggufmill::simd {

template <bool kEven>
class LatticeSigns {
 public:
  // Sets the fields from number i on, given one field per short.
  HWY_INLINE void set(int i, Shorts fields) {
    if constexpr (kEven) {
      Shorts parity = fields ^ hn::ShiftRight<4>(fields);
      parity = parity ^ hn::ShiftRight<2>(parity);
      parity = parity ^ hn::ShiftRight<1>(parity);
      fields = fields | hn::ShiftLeft<7>(parity & shorts(1));
    }
    const hn::Rebind<std::uint8_t, decltype(kShorts)> bytes{};
    hn::StoreU(hn::TruncateTo(bytes, fields), bytes, bits_ + i);
  }

  // Applies the signs to the magnitudes of elements from i on.
  HWY_INLINE Floats apply(Floats magnitudes, int i) const {
    std::uint32_t bits;
    std::memcpy(&bits, bits_ + i / 32 * 4, sizeof bits);
    return turn_signs(magnitudes, bits, i);
  }

 private:
  alignas(4) std::uint8_t bits_[32];
};

}  // namespace ggufmill::simd
