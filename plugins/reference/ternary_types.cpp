#include "plugins/reference/ternary_types.h"

#include <cmath>

#include "plugins/reference/crumbs.h"

namespace ggufmill::reference {
namespace {

constexpr int kCount = 256;

// Stores the greatest magnitude as the scale. The digits are the quotients of x and the scale, plus one.
void digits_of(const float* x, StoredHalf& d, std::uint8_t* digits) {
  float magnitude = 0;
  for (int i = 0; i < kCount; ++i) magnitude = magnitude > std::fabs(x[i]) ? magnitude : std::fabs(x[i]);
  const float inverse = magnitude != 0 ? 1.0f / magnitude : 0.0f;
  d.store(magnitude);
  for (int i = 0; i < kCount; ++i) digits[i] = static_cast<std::uint8_t>(round_to_int(x[i] * inverse) + 1);
}

// Packs `count` digits per byte. Byte i holds elements i, i + bytes, i + 2 * bytes, ...; the first of them is the most
// significant of five digits. The division rounds up, so that multiplication recovers the digits.
void pack_digits(const std::uint8_t* digits, int count, int bytes, std::uint8_t* out) {
  for (int i = 0; i < bytes; ++i) {
    unsigned number = 0;
    for (int n = 0; n < 5; ++n) number = number * 3 + (n < count ? digits[i + n * bytes] : 0u);
    out[i] = static_cast<std::uint8_t>(((number & 0xff) * 256 + 242) / 243);
  }
}

void unpack_digits(const std::uint8_t* in, int count, int bytes, float d, float* x) {
  static constexpr unsigned kPowers[5] = {1, 3, 9, 27, 81};
  for (int n = 0; n < count; ++n) {
    for (int i = 0; i < bytes; ++i) {
      const unsigned digit = (in[i] * kPowers[n] & 0xff) * 3 >> 8;
      x[n * bytes + i] = static_cast<float>(static_cast<int>(digit) - 1) * d;
    }
  }
}

}  // namespace

void TQ1_0::encode(const float* x, Block& block) {
  std::uint8_t digits[kCount];
  digits_of(x, block.d, digits);
  pack_digits(digits, 5, 32, block.qs);
  pack_digits(digits + 160, 5, 16, block.qs + 32);
  pack_digits(digits + 240, 4, 4, block.qh);
}

void TQ1_0::decode(const Block& block, float* x) {
  const float d = block.d.load();
  unpack_digits(block.qs, 5, 32, d, x);
  unpack_digits(block.qs + 32, 5, 16, d, x + 160);
  unpack_digits(block.qh, 4, 4, d, x + 240);
}

void TQ2_0::encode(const float* x, Block& block) {
  std::uint8_t digits[kCount];
  digits_of(x, block.d, digits);
  pack_crumbs(digits, 0, block.qs);
}

void TQ2_0::decode(const Block& block, float* x) {
  const float d = block.d.load();
  for (int i = 0; i < kCount; ++i) x[i] = static_cast<float>(static_cast<int>(crumb(block.qs, i)) - 1) * d;
}

}  // namespace ggufmill::reference
