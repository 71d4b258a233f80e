#pragma once
// The signs of a super-block of the IQ2 and IQ3 types: a byte for eight weights, or seven bits where an even number is
// negative. With 16 lanes they become masks, else vectors of sign bits from a table.

#include "plugins/simd/block_fields.h"

namespace ggufmill::simd {

#if HWY_TARGET == HWY_AVX3

template <bool kEven>
class LatticeSigns {
 public:
  // From field i on, a field in each short.
  HWY_INLINE void set(int i, Shorts fields) {
    if constexpr (kEven) {
      Shorts parity = fields ^ hn::ShiftRight<4>(fields);
      parity = parity ^ hn::ShiftRight<2>(parity);
      parity = parity ^ hn::ShiftRight<1>(parity);
      fields = fields | hn::ShiftLeft<7>(parity & shorts(1));
    }
    constexpr hn::Half<decltype(kWideBytes)> bytes{};
    hn::StoreU(hn::TruncateTo(bytes, fields), bytes, bits_ + i);
  }

  // The magnitudes of elements i and after with their signs.
  HWY_INLINE Floats apply(Floats magnitudes, int i) const {
    __mmask16 negative;
    std::memcpy(&negative, bits_ + i / 8, sizeof negative);
    return Floats{_mm512_mask_xor_ps(magnitudes.raw, negative, magnitudes.raw, _mm512_set1_ps(-0.0f))};
  }

 private:
  std::uint8_t bits_[32];
};

#else

// Sign bits for eight weights by field.
template <bool kEven>
struct SignWords {
  static constexpr unsigned kFields = kEven ? 128 : 256;
  alignas(64) std::uint32_t values[8 * kFields] = {};

  constexpr SignWords() {
    for (unsigned field = 0; field < kFields; ++field) {
      unsigned negative = 0;
      for (unsigned i = 0; i < 8; ++i) {
        const bool last = kEven && i == 7;
        const bool set = last ? negative % 2 != 0 : (field >> i & 1) != 0;
        values[8 * field + i] = set ? 0x80000000u : 0;
        negative += set;
      }
    }
  }
};

template <bool kEven>
class LatticeSigns {
 public:
  HWY_INLINE void set(int i, Shorts fields) { hn::StoreU(hn::ShiftLeft<3>(fields), kShorts, places_ + i); }
  HWY_INLINE Floats apply(Floats magnitudes, int i) const {
    return as_floats(as_words(magnitudes) ^ load_pieces<8>(kWords, kWordsOf.values, places_, i));
  }

 private:
  static constexpr SignWords<kEven> kWordsOf{};
  std::uint16_t places_[32];  // in the table
};

#endif

}  // namespace ggufmill::simd
