#pragma once
// A sum of doubles that is rounded only once, when it is read: independent of the order and grouping of the additions.

#include <array>
#include <cstddef>
#include <cstdint>

namespace ggufmill {

// A fixed-point number with a position for every bit of every double, and 77 more bits to prevent overflow. Not
// thread-safe.
// Source: U. Kulisch's long accumulator ("Computer Arithmetic and Validity", 2008), in two's complement.
class ExactSum {
 public:
  void add(double value);  // must be finite
  void add(const ExactSum& other);
  // Returns the nearest double, ties to even; infinity if the sum is out of range.
  double value() const;

  // The representation, for sums that are added up on several machines. Any words are a valid sum.
  static constexpr std::size_t kWords = 34;  // 2098 bits from 2^-1074 to 2^1023, a sign, and spare bits
  using Words = std::array<std::uint64_t, kWords>;
  const Words& words() const { return words_; }
  void set(const Words& words) { words_ = words; }

 private:
  void add_at(std::size_t word, std::uint64_t low, std::uint64_t high);
  void subtract_at(std::size_t word, std::uint64_t low, std::uint64_t high);

  Words words_{};  // least significant word first; the lowest bit is worth 2^-1074
};

}  // namespace ggufmill
