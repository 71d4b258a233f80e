#pragma once
// Decoding levels of four bits that stand for the values of a book.

#include "plugins/simd/bytes.h"
#include "plugins/simd/pick.h"

namespace ggufmill::simd {

// 16 values.
struct NibbleBook {
  alignas(16) std::int8_t bytes[16];
  alignas(64) float floats[16];

  explicit constexpr NibbleBook(const std::int8_t* values) : bytes(), floats() {
    for (int i = 0; i < 16; ++i) bytes[i] = values[i], floats[i] = values[i];
  }
};

#if HWY_TARGET == HWY_AVX3

// The values of a book under one scale.
class ScaledBook {
 public:
  ScaledBook(const NibbleBook& book, Floats scale) : values_(scale * hn::Load(kFloats, book.floats)) {}

  // x of the low nibbles of 16 bytes, and after them of the high ones.
  void decode(const std::uint8_t* qs, float* x) const {
    const Words bytes = load_bytes(qs);
    hn::StoreU(pick(values_, bytes), kFloats, x);
    hn::StoreU(pick(values_, hn::ShiftRight<4>(bytes)), kFloats, x + 16);
  }
  // x of eight bytes, likewise.
  void decode_eight(Words bytes, float* x) const {
    alignas(64) static constexpr std::uint32_t kShifts[16] = {0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4};
    hn::StoreU(pick(values_, bytes >> hn::Load(kWords, kShifts)), kFloats, x);
  }
  // The same of 16 bytes: the first eight, then the others.
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
  ScaledBook(const NibbleBook& book, Floats scale) : values_(hn::Load(kSigned, book.bytes)), scale_(scale) {}

  void decode(const std::uint8_t* qs, float* x) const {
    const Nibbles nibbles(qs);
    store(values(nibbles.low), x);
    store(values(nibbles.high), x + 16);
  }
  static void decode_eights(const ScaledBook& first, const ScaledBook& second, const std::uint8_t* qs, float* x) {
    const Nibbles nibbles(qs);
    const auto low = hn::BitCast(kEights, first.values(nibbles.low));
    const auto high = hn::BitCast(kEights, first.values(nibbles.high));
    first.store(hn::BitCast(kSigned, hn::InterleaveLower(kEights, low, high)), x);
    second.store(hn::BitCast(kSigned, hn::InterleaveUpper(kEights, low, high)), x + 16);
  }

 private:
  static constexpr hn::Full128<std::uint8_t> kBytes16{};
  static constexpr hn::Full128<std::int8_t> kSigned{};
  static constexpr hn::Full128<std::uint64_t> kEights{};
  using Signed = hn::Vec<decltype(kSigned)>;

  struct Nibbles {
    Signed low, high;
    explicit Nibbles(const std::uint8_t* qs) {
      const auto bytes = hn::LoadU(kBytes16, qs);
      low = hn::BitCast(kSigned, bytes & hn::Set(kBytes16, 0x0f));
      high = hn::BitCast(kSigned, hn::ShiftRight<4>(bytes));
    }
  };

  Signed values(Signed levels) const { return hn::TableLookupBytes(values_, levels); }
  void store(Signed values, float* x) const {
    alignas(16) std::uint8_t bytes[16];
    hn::Store(hn::BitCast(kBytes16, values), kBytes16, bytes);
    GGUFMILL_UNROLL
    for (std::size_t i = 0; i < 16; i += kLanes) hn::StoreU(scale_ * to_floats(load_signed(bytes + i)), kFloats, x + i);
  }

  Signed values_;
  Floats scale_;
};

#endif

}  // namespace ggufmill::simd
