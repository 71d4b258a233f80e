#pragma once
// Decodes four-bit levels that are indices into a book of values.

#include "plugins/simd/bytes.h"
#include "plugins/simd/pick.h"
#include "plugins/simd/spread.h"

namespace ggufmill::simd {

// A book of 16 values.
struct NibbleBook {
  alignas(16) std::int8_t bytes[16];
  alignas(64) float floats[16];

  explicit constexpr NibbleBook(const std::int8_t* values) : bytes(), floats() {
    for (int i = 0; i < 16; ++i) bytes[i] = values[i], floats[i] = values[i];
  }
};

// Values can be multiplied by 1 / kBookUnit before they are scaled.
inline constexpr float kBookUnit = 0x1p-24f;

#if HWY_TARGET == HWY_AVX3

// The values of a book, multiplied by a scale. Multiplying the scale by kBookUnit must be exact.
class ScaledBook {
 public:
  ScaledBook(const NibbleBook& book, Floats scale) : values_(scale * hn::Load(kFloats, book.floats)) {}

  // Writes x for the low nibbles of 16 bytes, followed by the high ones.
  void decode(const std::uint8_t* qs, float* x) const {
    const Words bytes = load_bytes(qs);
    hn::StoreU(pick(values_, bytes), kFloats, x);
    hn::StoreU(pick(values_, hn::ShiftRight<4>(bytes)), kFloats, x + 16);
  }
  // Writes x for the low nibbles of eight bytes, followed by the high ones.
  void decode_eight(Words bytes, float* x) const {
    alignas(64) static constexpr std::uint32_t kShifts[16] = {0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4};
    hn::StoreU(pick(values_, bytes >> hn::Load(kWords, kShifts)), kFloats, x);
  }
  // Decodes 16 bytes: the first eight with `first`, then the others with `second`.
  static void decode_eights(const ScaledBook& first, const ScaledBook& second, const std::uint8_t* qs, float* x) {
    const Words bytes = load_bytes(qs);
    first.decode_eight(hn::ConcatLowerLower(kWords, bytes, bytes), x);
    second.decode_eight(hn::ConcatUpperUpper(kWords, bytes, bytes), x + 16);
  }

 private:
  Floats values_;
};

#else

class ScaledBook {
 public:
  ScaledBook(const NibbleBook& book, Floats scale)
      : book_(hn::LoadDup128(kSigned, book.bytes)), scale_(scale * floats(kBookUnit)) {}

  void decode(const std::uint8_t* qs, float* x) const {
    for (int first = 0; first < 32; first += kWide)
      spread_signed(values(nibble_bytes(qs, first)),
                    [&](int part, Ints level) { hn::StoreU(x_of(level), kFloats, x + first + part * kStep); });
  }
  static void decode_eights(const ScaledBook& first, const ScaledBook& second, const std::uint8_t* qs, float* x) {
    for (int at = 0; at < 32; at += kWide)
      spread_signed(first.values(eights(qs, at)), [&](int part, Ints level) {
        const int i = at + part * kStep;
        hn::StoreU((i < 16 ? first : second).x_of(level), kFloats, x + i);
      });
  }

 private:
  static constexpr int kStep = static_cast<int>(kLanes);
  static constexpr hn::Repartition<std::int8_t, decltype(kWords)> kSigned{};

  // Returns the low and then the high nibbles of the first eight bytes, followed by those of the other eight.
  template <class D = decltype(kWords)>
  static hn::Vec<D> eights(const std::uint8_t* qs, int first) {
    const hn::Full128<std::uint8_t> bytes{};
    const hn::Full128<std::uint64_t> halves{};
    const hn::Repartition<std::uint8_t, D> wide{};
    const auto low = hn::BitCast(halves, hn::LoadU(bytes, qs));
    const auto high = hn::ShiftRight<4>(low);
    const auto nibbles = [&](auto eight) { return hn::And(eight, hn::Set(halves, 0x0f0f0f0f0f0f0f0f)); };
    const auto of_first = hn::BitCast(bytes, nibbles(hn::InterleaveLower(halves, low, high)));
    const auto of_second = hn::BitCast(bytes, nibbles(hn::InterleaveUpper(halves, low, high)));
    if constexpr (hn::MaxLanes(D()) == 8)
      return hn::BitCast(D(), hn::Combine(wide, of_second, of_first));
    else
      return hn::BitCast(D(), first == 0 ? of_first : of_second);
  }

  Words values(Words levels) const {
    return hn::BitCast(kWords, hn::TableLookupBytes(book_, hn::BitCast(kSigned, levels)));
  }
  Floats x_of(Ints value) const { return to_floats(value) * scale_; }

  hn::Vec<decltype(kSigned)> book_;
  Floats scale_;  // scale of the values times 2^24
};

#endif

}  // namespace ggufmill::simd
