// TQ1_0 and TQ2_0, with the same results as plugins/reference/ternary_types.cpp. The only reduction is a maximum, which
// does not depend on the order, so one block is processed at a time, with its weights in the lanes.

#include "plugins/simd/crumb_types.h"

#include "plugins/simd/bytes.h"
#include "plugins/simd/magnitude.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 256;
constexpr int kStep = static_cast<int>(kLanes);

// The quotients of x and the greatest magnitude, plus one: base-3 digits, in the lowest byte of each word.
class Digits {
 public:
  Digits(const float* x, reference::StoredHalf& d) : x_(x) {
    const float magnitude = greatest_magnitude<kCount>(x);
    inverse_ = magnitude != 0 ? 1.0f / magnitude : 0.0f;
    d.store(magnitude);
  }

  // Returns the digits from element i on, one per lane of `d`.
  template <class D>
  hn::Vec<hn::RebindToUnsigned<D>> at(D d, int i) const {
    const auto sign_bit = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0x80000000u));
    const auto exact = hn::LoadU(d, x_ + i) * hn::Set(d, inverse_);
    const auto rounded = exact + hn::Or(hn::And(exact, sign_bit), hn::Set(d, 0x1.fffffep-2f));
    // Values that do not fit become 0, because the specification gives them a lowest byte of 0; that of 0x7fffffff is
    // not 0.
    const auto fits = hn::Abs(rounded) < hn::Set(d, 0x1p31f);
    const auto digit = hn::ConvertTo(hn::RebindToSigned<D>(), hn::IfThenElseZero(fits, rounded));
    return hn::BitCast(hn::RebindToUnsigned<D>(), digit) + hn::Set(hn::RebindToUnsigned<D>(), 1);
  }

 private:
  const float* x_;
  float inverse_;
};

// Packs one byte per lane of `d`, with kPerByte digits each. Byte i holds elements i, i + bytes, i + 2 * bytes, ...;
// the first of them is the most significant of five digits.
template <int kPerByte, class D>
HWY_INLINE void pack_step(D d, const Digits& digits, int first, int bytes, std::uint8_t* out) {
  const hn::RebindToUnsigned<D> unsigned_d{};
  auto number = hn::Zero(unsigned_d);
  for (int n = 0; n < 5; ++n) {
    number = number + number + number;
    if (n < kPerByte) number = number + (digits.at(d, first + n * bytes) & hn::Set(unsigned_d, 0xff));
  }
  number = number & hn::Set(unsigned_d, 0xff);
  // (number * 256 + 242) / 243; the multiplication gives the exact result for all 256 numbers.
  const auto thirteenths = number * hn::Set(unsigned_d, 13) + hn::Set(unsigned_d, 242);
  const auto fraction = number + hn::ShiftRight<20>(thirteenths * hn::Set(unsigned_d, 4316));
  const hn::Rebind<std::uint8_t, D> bytes_d{};
  hn::StoreU(hn::TruncateTo(bytes_d, fraction), bytes_d, out);
}

constexpr bool divides_by_243() {
  for (unsigned number = 0; number < 256; ++number)
    if (number + ((number * 13 + 242) * 4316 >> 20) != (number * 256 + 242) / 243) return false;
  return true;
}
static_assert(divides_by_243());

constexpr hn::Full128<float> kFour{};

}  // namespace

void TQ1_0::encode(const float* x, Block& block) {
  const Digits digits(x, block.d);
  for (int i = 0; i < 32; i += kStep) pack_step<5>(kFloats, digits, i, 32, block.qs + i);
  for (int i = 0; i < 16; i += kStep) pack_step<5>(kFloats, digits, 160 + i, 16, block.qs + 32 + i);
  pack_step<4>(kFour, digits, 240, 4, block.qh);
}

void TQ2_0::encode(const float* x, Block& block) {
  const Digits digits(x, block.d);
  for (int i = 0; i < 64; i += kStep) {
    const auto part = [&](int p) { return digits.at(kFloats, i / 32 * 128 + i % 32 + 32 * p) & words(3); };
    const Words byte = part(0) | hn::ShiftLeft<2>(part(1)) | hn::ShiftLeft<4>(part(2)) | hn::ShiftLeft<6>(part(3));
    store_bytes(byte, block.qs + i);
  }
}

}  // namespace ggufmill::simd
