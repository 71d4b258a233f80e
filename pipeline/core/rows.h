#pragma once
// Rows of a tensor expression: the source bytes from which they are built, and the destination of each part. Pure.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill {

// Saturating arithmetic on sizes: results that exceed 64 bits are UINT64_MAX.
std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b);
std::uint64_t capped_product(std::uint64_t a, std::uint64_t b);
// Returns a / b, rounded up; b must not be 0.
std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b);

// A rectangular part of a tensor: along each dimension, `count` elements starting at `first`. Columns are complete
// blocks.
struct Box {
  std::array<std::uint64_t, 4> first{};
  std::array<std::uint64_t, 4> count{1, 1, 1, 1};
};

// Returns the box of rows [first, first + rows), which must lie within one matrix (dims[1] rows) of the shape.
Box box_of_rows(const Shape& shape, std::uint64_t first, std::uint64_t rows);

// Destination of the elements of a box: the byte offset of its first block, the distance in bytes between adjacent
// blocks along the columns, and between adjacent elements along the other dimensions.
struct Layout {
  std::uint64_t offset = 0;
  std::array<std::uint64_t, 4> step{};
};
// Returns the contiguous layout: block after block, row after row.
Layout packed_layout(const TypeInfo& type, const Box& box);

// Follows operations that only move elements down to the nodes that store or compute them. Calls `part` for each such
// node with the required box of that node and the destination of that box.
using PartVisitor = std::function<void(const Expression& node, const Box& box, const Layout& layout)>;
void for_each_part(const Expression& expression, const Box& box, const Layout& layout, const PartVisitor& part);

// Calls `run` for every run of contiguous bytes of an extent that a box covers, with the offset within the extent, the
// number of bytes, and the coordinates of the run's first element within the box.
using RunVisitor =
    std::function<void(std::uint64_t offset, std::uint64_t bytes, const std::array<std::uint64_t, 4>& at)>;
void for_each_run(const Expression& extent, const Box& box, const RunVisitor& run);

// A range of bytes of a source.
struct ByteRange {
  const SourceFile* source = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Returns all ranges that must be read to assemble a box, each byte once, ordered by source (in order of first use) and
// offset; adjacent ranges are merged.
std::vector<ByteRange> ranges_of(const Expression& expression, const Box& box);

// Upper bound on the result of ranges_of() for any box with `count` elements along each dimension. Saturates at 64
// bits.
struct ReadBound {
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
};
ReadBound read_bound(const Expression& expression, const std::array<std::uint64_t, 4>& count);

}  // namespace ggufmill
