#pragma once
// Levels of four bits that stand for the values of a table of 16 signed bytes: decoded 16 at a time.

#include "plugins/simd/bytes.h"

namespace ggufmill::simd {

inline constexpr hn::Full128<std::uint8_t> k16Bytes{};
inline constexpr hn::Full128<std::int8_t> k16Signed{};
using SixteenSigned = hn::Vec<decltype(k16Signed)>;

struct NibbleValues {
  SixteenSigned low, high;  // of the low and of the high nibbles
};

// Of the nibbles of 16 bytes. `table`: 16 values.
inline NibbleValues nibble_values(const std::int8_t* table, const std::uint8_t* qs) {
  const auto values = hn::LoadU(k16Signed, table);
  const auto bytes = hn::LoadU(k16Bytes, qs);
  const auto low = bytes & hn::Set(k16Bytes, 0x0f);
  const auto high = hn::ShiftRight<4>(bytes);
  return {hn::TableLookupBytes(values, hn::BitCast(k16Signed, low)),
          hn::TableLookupBytes(values, hn::BitCast(k16Signed, high))};
}

// x = scale * value, for 16 of them.
template <class D = decltype(kInts)>
void store_scaled(SixteenSigned values, Floats scale, float* x) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    hn::StoreU(scale * to_floats(hn::PromoteTo(D(), values)), kFloats, x);
  } else {
    alignas(16) std::uint8_t bytes[16];
    hn::Store(hn::BitCast(k16Bytes, values), k16Bytes, bytes);
    for (std::size_t i = 0; i < 16; i += kLanes) hn::StoreU(scale * to_floats(load_signed(bytes + i)), kFloats, x + i);
  }
}

}  // namespace ggufmill::simd
