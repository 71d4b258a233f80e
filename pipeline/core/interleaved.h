#pragma once
// Types whose rows are interleaved: groups of 4 or 8 rows of another type, the plain one, are stored together, so that
// a processor multiplies them side by side. A group has the bytes of its rows: first their headers, then one block
// after another, and in each the bits of the blocks of all rows, rearranged. Values do not change, and back is always
// possible. Families of types (type_family.h) have such types and know their arrangement.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "pipeline/core/types.h"

namespace ggufmill {

// A type of this kind, and the type whose rows it has, with its blocks.
struct InterleavedType {
  TypeId id;
  std::string_view name, plain;
  std::uint32_t rows;  // of a group
  std::uint32_t block_elements, block_bytes, row_header_bytes;
  // Not empty if files have the rows only in groups: the type of tensors whose rows are not interleaved. Else that is
  // the plain one.
  std::string_view ungrouped = {};
};
// Returns those of all families.
std::span<const InterleavedType> interleaved_types();

// A type that is named like an interleaved one, but is none: its bits are not those of other rows.
struct NotInterleaved {
  TypeId id;
  std::string_view name, why;
};

// Moves some bits of a block of one row to the block of a group, or back. Bits lie in bytes at the same distance on
// both sides, and are shifted by the same number.
struct BitMove {
  std::uint16_t row = 0;     // of the group
  std::uint16_t plain = 0;   // offset of the first byte in the row's block
  std::uint16_t group = 0;   // offset of the first byte in the group's block
  std::uint16_t bytes = 0;   // number of bytes; all are moved alike
  std::int8_t shift = 0;     // of a byte of the row to the left, or if negative to the right
  std::uint8_t mask = 0xff;  // of the bits in a byte of the group
};

// Sign codes of 7 bits that are summed up on the way: bit i of the group's code is the sum, modulo 2, of bits 0 to i of
// the row's. They are the upper bits of words of the group's block.
struct SignCodes {
  std::uint16_t offset = 0, count = 0;
  std::uint16_t bytes = 0;  // of a word, 1 or 2
};

// The arrangement of one interleaved type. Immutable; all functions are thread-safe and read and write exactly the
// bytes of complete groups.
class Interleaving {
 public:
  // `type` must be interleaved.
  static const Interleaving& of(const TypeInfo& type);

  // `rows[k]`: row k of the group, of the plain type, with `blocks` blocks. `group`: all bytes of the group, which
  // overlap none of the rows.
  void interleave(std::span<const std::byte* const> rows, std::uint64_t blocks, std::byte* group) const;
  void separate(const std::byte* group, std::uint64_t blocks, std::span<std::byte* const> rows) const;

 private:
  explicit Interleaving(const InterleavedType& type);

  std::uint32_t rows_, header_bytes_, block_bytes_;  // of the plain type
  std::vector<BitMove> moves_;
  SignCodes signs_;
};

// The layout of a type: moves of single bits to at most 8 of them, and sign codes.
struct InterleavedLayout {
  std::vector<BitMove> moves;
  SignCodes signs;
};
// Returns the layout of a plain type in groups of `rows` rows; aborts the program for types that no family has.
InterleavedLayout interleaved_layout(std::string_view plain, std::uint32_t rows);

}  // namespace ggufmill
