#pragma once
// Random numbers that are the same on every machine: splitmix64 (Steele, Lea, Flood, 2014).

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ggufmill::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // Returns a number from 0 to `bound` - 1; `bound` is at least 1.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // Returns a number from `least` to `most`.
  std::uint64_t from(std::uint64_t least, std::uint64_t most) { return least + below(most - least + 1); }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  template <class List>
  const auto& pick_from(const List& values) {
    return values[static_cast<std::size_t>(below(values.size()))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace ggufmill::testing
