#pragma once
// Checks that decoded values and the scales of encoded blocks are finite.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <string>

#include "pipeline/core/types.h"

namespace ggufmill {

// Returns the index of the first NaN or infinity; values.size() if there is none.
std::size_t first_not_finite(std::span<const float> values);

// The same for values that were decoded from little-endian `stored` ones of a type, which are checked in place of them
// if that is faster: a number of 16 bits is finite exactly if its decoded value is.
std::size_t first_not_finite(const TypeInfo& type, const std::byte* stored, std::span<const float> values);

// The exponent of an F32, as its upper 16 bits, from which on no block of the type represents a value; that of infinity
// if blocks represent all finite ones, or the type is not a built-in one. Sums of squares overflow for such values, so
// that encoders may write zeros in place of a block with an infinite scale.
std::uint16_t exponent_limit(const TypeInfo& type);

// Like first_not_finite(), but finds finite values with an exponent of `limit` or more as well, at the same cost.
std::size_t first_beyond(const TypeInfo& type, const std::byte* stored, std::span<const float> values,
                         std::uint16_t limit);

// Returns the index of the value with the largest magnitude, the first of several; 0 if there are none.
std::size_t largest_of(std::span<const float> values);

// Returns the advice for a value that is too large for a type.
std::string help_for_too_large(const TypeInfo& type);

// Returns the index of the first of `count` little-endian blocks with a scale that is NaN or infinite; `count` if there
// is none. type.fields describes the position of the scales. For F16 and other types with one element per block, the
// element itself is checked. Headers of rows are not.
std::size_t first_bad_block(const TypeInfo& type, const std::byte* blocks, std::size_t count);

// Does the same for little-endian rows of `columns` elements, or, for types without row headers, any number of blocks.
// Counts blocks from the first of `rows`, and looks from block `from` on. The first block of a row is bad as well if a
// scale of the row's header is.
std::size_t next_bad_block(const TypeInfo& type, std::uint64_t columns, std::span<const std::byte> rows,
                           std::size_t from = 0);

// Returns the bytes of `rows` that such a block makes unusable: those of the block, or of the row if its header is bad.
std::span<std::byte> bytes_of_bad_block(const TypeInfo& type, std::uint64_t columns, std::span<std::byte> rows,
                                        std::size_t block);

// Describes such a block: "NaN" or "infinity" for a number, "a scale that is not finite" for other types.
const char* describe_bad_block(const TypeInfo& type, const std::byte* block);

// Counts the values of one tensor that are not finite, and blocks with such a scale, and records the position of the
// first. Thread-safe.
class NonfiniteCount {
 public:
  struct Sums {
    std::uint64_t values = 0, blocks = 0;
    std::uint64_t row = std::numeric_limits<std::uint64_t>::max(), column = 0;  // of the first
  };
  void add_value(std::uint64_t row, std::uint64_t column) { add(&Sums::values, row, column); }
  void add_block(std::uint64_t row, std::uint64_t column) { add(&Sums::blocks, row, column); }
  Sums sums() const {
    const std::lock_guard lock(mutex_);
    return sums_;
  }

 private:
  void add(std::uint64_t Sums::*count, std::uint64_t row, std::uint64_t column) {
    const std::lock_guard lock(mutex_);
    ++(sums_.*count);
    if (row > sums_.row || (row == sums_.row && column >= sums_.column)) return;
    sums_.row = row;
    sums_.column = column;
  }

  mutable std::mutex mutex_;
  Sums sums_;  // guarded by mutex_
};

}  // namespace ggufmill
