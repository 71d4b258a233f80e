#pragma once
// Rows of a tensor expression: which bytes of which sources they are made of, and where each part of them goes. Pure.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill {

// Sizes; those beyond 64 bits are UINT64_MAX.
std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b);
std::uint64_t capped_product(std::uint64_t a, std::uint64_t b);
// Rounded up; b is not 0.
std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b);

// A part of a tensor that is whole along every dimension: `count` elements from `first` on. Columns are whole blocks.
struct Box {
  std::array<std::uint64_t, 4> first{};
  std::array<std::uint64_t, 4> count{1, 1, 1, 1};
};

// Rows [first, first + rows), which lie within one matrix (dims[1] rows) of the shape.
Box box_of_rows(const Shape& shape, std::uint64_t first, std::uint64_t rows);

// Where the elements of a box go: the byte of its first block, and the bytes from one block to the next along the
// columns, and from one element to the next along the other dimensions.
struct Layout {
  std::uint64_t offset = 0;
  std::array<std::uint64_t, 4> step{};
};
// One block after the other, row after row.
Layout packed_layout(const TypeInfo& type, const Box& box);

// What moves elements and changes none is followed down to the nodes that have or make them: `part` is called for each
// of these with the box that is wanted of it, and where that goes.
using PartVisitor = std::function<void(const Expression& node, const Box& box, const Layout& layout)>;
void for_each_part(const Expression& expression, const Box& box, const Layout& layout, const PartVisitor& part);

// The boxes of the inputs that make up a box of a node which computes its elements (cast, map, scale_blocks, gather,
// repack): one for each input. Rounded to whole blocks where the types' blocks differ.
std::vector<Box> input_boxes(const Expression& node, const Box& box);

// Calls `run` for every run of neighbouring bytes of an extent that a box covers: the offset within the extent, the
// bytes, and the coordinates in the box of the run's first element.
using RunVisitor =
    std::function<void(std::uint64_t offset, std::uint64_t bytes, const std::array<std::uint64_t, 4>& at)>;
void for_each_run(const Expression& extent, const Box& box, const RunVisitor& run);

// Bytes of a source.
struct ByteRange {
  const SourceFile* source = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// All that is read to make a box, each byte once, in the order of the sources (by first use) and their bytes; ranges
// that touch are one.
std::vector<ByteRange> ranges_of(const Expression& expression, const Box& box);

// The most that ranges_of() gives for any box of so many elements along each dimension. At the edge of 64 bits.
struct ReadBound {
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
};
ReadBound read_bound(const Expression& expression, const std::array<std::uint64_t, 4>& count);

}  // namespace ggufmill
