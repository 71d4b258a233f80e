#pragma once
// What must be finite: decoded values, and the scales of written blocks.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>

#include "pipeline/core/types.h"

namespace ggufmill {

// Index of the first NaN or infinity; values.size() when there is none.
std::size_t first_not_finite(std::span<const float> values);

// Index of the first of `count` blocks (little-endian) with a scale that is NaN or infinite, as type.scales says where
// they lie; `count` when there is none. For F16 and other types of one element a block: the element itself.
std::size_t first_bad_block(const TypeInfo& type, const std::byte* blocks, std::size_t count);

// What is wrong with such a block: "NaN" or "infinity" of a number, "a scale that is not finite" of others.
const char* describe_bad_block(const TypeInfo& type, const std::byte* block);

// Counts what is not finite of one tensor, and knows the first of it. Thread-safe.
class NonfiniteCount {
 public:
  struct Sums {
    std::uint64_t blocks = 0;  // or numbers, of a type of one element a block
    std::uint64_t row = std::numeric_limits<std::uint64_t>::max(), column = 0;  // of the first
  };
  void add(std::uint64_t row, std::uint64_t column) {
    const std::lock_guard lock(mutex_);
    ++sums_.blocks;
    if (row > sums_.row || (row == sums_.row && column >= sums_.column)) return;
    sums_.row = row;
    sums_.column = column;
  }
  Sums sums() const {
    const std::lock_guard lock(mutex_);
    return sums_;
  }

 private:
  mutable std::mutex mutex_;
  Sums sums_;  // guarded by the mutex
};

}  // namespace ggufmill
