#pragma once
// A sum of doubles that is rounded once, when it is read: the same in whatever order and groups it was added up.

#include <array>
#include <cstddef>
#include <cstdint>

namespace ggufmill {

// A fixed-point number with a place for every bit of every double, and 77 bits above them against overflow. Not
// thread-safe.
// Source: U. Kulisch's long accumulator ("Computer Arithmetic and Validity", 2008), in two's complement.
class ExactSum {
 public:
  void add(double value);  // finite
  void add(const ExactSum& other);
  // The nearest double, ties to even; an infinity beyond them.
  double value() const;

  // What it is made of, for sums that are added up on several machines. Any words are a sum.
  static constexpr std::size_t kWords = 34;  // 2098 bits from 2^-1074 to 2^1023, a sign, and room
  using Words = std::array<std::uint64_t, kWords>;
  const Words& words() const { return words_; }
  void set(const Words& words) { words_ = words; }

 private:
  void add_at(std::size_t word, std::uint64_t low, std::uint64_t high);
  void subtract_at(std::size_t word, std::uint64_t low, std::uint64_t high);

  Words words_{};  // little end first; the lowest bit is worth 2^-1074
};

}  // namespace ggufmill
