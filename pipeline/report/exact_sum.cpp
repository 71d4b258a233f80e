#include "pipeline/report/exact_sum.h"

#include <bit>
#include <cmath>

namespace ggufmill {
namespace {

constexpr int kLowestExponent = -1074;
constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
constexpr std::uint64_t kExponent = 0x7ff;

bool add_carry(std::uint64_t& to, std::uint64_t value, bool carry) {
  const bool first = __builtin_add_overflow(to, value, &to);
  return __builtin_add_overflow(to, std::uint64_t{carry}, &to) || first;
}

bool subtract_borrow(std::uint64_t& from, std::uint64_t value, bool borrow) {
  const bool first = __builtin_sub_overflow(from, value, &from);
  return __builtin_sub_overflow(from, std::uint64_t{borrow}, &from) || first;
}

}  // namespace

void ExactSum::add_at(std::size_t word, std::uint64_t low, std::uint64_t high) {
  bool carry = add_carry(words_[word], low, false);
  if (++word < kWords) carry = add_carry(words_[word], high, carry);
  while (carry && ++word < kWords) carry = add_carry(words_[word], 0, true);
}

void ExactSum::subtract_at(std::size_t word, std::uint64_t low, std::uint64_t high) {
  bool borrow = subtract_borrow(words_[word], low, false);
  if (++word < kWords) borrow = subtract_borrow(words_[word], high, borrow);
  while (borrow && ++word < kWords) borrow = subtract_borrow(words_[word], 0, true);
}

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t exponent = bits >> 52 & kExponent;
  const std::uint64_t mantissa = (bits & kFraction) | (exponent == 0 ? 0 : kHidden);
  const std::uint64_t place = exponent == 0 ? 0 : exponent - 1;  // position of the mantissa's lowest bit, above 2^-1074
  const unsigned shift = place % 64;
  const std::uint64_t high = shift == 0 ? 0 : mantissa >> (64 - shift);
  if (std::signbit(value))
    subtract_at(place / 64, mantissa << shift, high);
  else
    add_at(place / 64, mantissa << shift, high);
}

void ExactSum::add(const ExactSum& other) {
  bool carry = false;
  for (std::size_t i = 0; i < kWords; ++i) carry = add_carry(words_[i], other.words_[i], carry);
}

double ExactSum::value() const {
  const bool negative = words_[kWords - 1] >> 63;
  std::array<std::uint64_t, kWords> size{};
  bool borrow = false;
  for (std::size_t i = 0; i < kWords; ++i) {
    if (!negative) size[i] = words_[i];
    if (negative) borrow = subtract_borrow(size[i], words_[i], borrow);
  }
  std::size_t top = kWords;
  while (top > 0 && size[top - 1] == 0) --top;
  if (top == 0) return 0;
  // The 64 bits starting at the highest set bit; the bits below them only determine whether there is a remainder.
  const int zeros = std::countl_zero(size[top - 1]);
  const std::uint64_t next = top > 1 ? size[top - 2] : 0;
  std::uint64_t leading = zeros == 0 ? size[top - 1] : size[top - 1] << zeros | next >> (64 - zeros);
  bool more = zeros == 0 ? next != 0 : next << zeros != 0;
  for (std::size_t i = 0; i + 2 < top; ++i) more |= size[i] != 0;
  leading |= std::uint64_t{more};
  const int place = static_cast<int>(64 * (top - 1)) - zeros + kLowestExponent;
  const double magnitude = std::ldexp(static_cast<double>(leading), place);
  return negative ? -magnitude : magnitude;
}

}  // namespace ggufmill
