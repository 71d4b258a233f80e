#pragma once
// Tensor expressions: where the values of a tensor come from, and what is done to them before they are encoded. A small
// closed set of operations, each of which checks types and shapes when it is made, so that the shape of a tensor is
// always that of its values. Nothing is read here: pipeline/core/rows.h says which bytes some rows need, and
// pipeline/graph/assemble.h puts them together.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/types.h"

namespace ggufmill {

// Up to four dimensions; the first is the row length (columns), as in GGUF. Missing ones count as 1.
struct Shape {
  std::uint32_t rank = 0;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};

  std::uint64_t columns() const { return dims[0]; }
  std::uint64_t elements() const { return dims[0] * rows(); }  // checked against overflow when made
  std::uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  bool operator==(const Shape&) const = default;
};
std::string describe(const Shape& shape);  // "4096 x 128"
// Without the dimensions of 1 at its end, but with one at least: as ggml counts dimensions.
Shape without_last_ones(Shape shape);

// Something that bytes are read from, and what it was when its header was read: of this identity are all plans that
// read it. Immutable; shared by everything that refers to it.
struct SourceFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t header_hash = 0;  // XXH3 of its beginning, see ByteSource::describe()
  std::int64_t modified = 0;      // nanoseconds since 1970
};
using SourceRef = std::shared_ptr<const SourceFile>;

// A run of bytes of a source.
struct Extent {
  SourceRef source;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool big_endian = false;  // elements and scales are in the other byte order and are swapped when read
};

enum class Operation : std::uint8_t {
  kExtent,       // bytes of a source
  kStack,        // inputs of one shape, one after the other along a new last dimension
  kConcat,       // inputs one after the other along dimension `axis`
  kSlice,        // of dimension `axis` the part that begins at `first`
  kReshape,      // the same elements in the same order, in rows of another length
  kReorderRows,  // dimension 1 as a grid of `factors`, whose axes are taken in another order: what permuting the rows
                 // of query and key heads is, and regrouping heads
  kTranspose,    // dimensions in another order
  kCast,         // to another type, but an integer: decoded to F32, and encoded where that is not what is wanted
  kMap,          // F32: a named function of every value
  kScaleBlocks,  // F32: every value, less the offset of its block of rows and columns, times the block's scale
  kGather,       // of every row the columns whose numbers another tensor has: scales by a table of groups
  kRepack,       // blocks of one format made of the bytes of another, without a number changed
  kConstant,     // values that are computed in the header plane
};
std::string_view name_of(Operation operation);  // "reorder_rows"

// A function of every value of a tensor, in single precision.
struct MapFunction {
  std::string_view name;
  float (*apply)(float value, float parameter);
};
std::span<const MapFunction> map_functions();
const MapFunction* find_map_function(std::string_view name);  // null: there is none

// Blocks of `type` made of other bytes. Input i gives input_bytes[i] bytes for each block and is a tensor of I8 or U8.
struct RepackFunction {
  std::string_view name;
  std::string_view type;
  std::array<std::uint32_t, 2> input_bytes;
  // `inputs[i]`: blocks * input_bytes[i] bytes; `into`: whole blocks of the type.
  void (*apply)(std::uint64_t blocks, const std::byte* const inputs[2], std::byte* into);
};
std::span<const RepackFunction> repack_functions();
const RepackFunction* find_repack_function(std::string_view name);

struct Expression;
using ExpressionRef = std::shared_ptr<const Expression>;

// A node of an expression; immutable after making, so that expressions share parts. Made by the functions below alone.
struct Expression {
  Operation operation = Operation::kExtent;
  const TypeInfo* type = nullptr;     // of the result
  Shape shape;                        // of the result
  std::vector<ExpressionRef> inputs;  // in order; none of an extent and a constant

  Extent extent;                         // kExtent
  std::uint32_t axis = 0;                // kConcat, kSlice
  std::uint64_t first = 0;               // kSlice
  std::vector<std::uint64_t> factors;    // kReorderRows: of dimension 1 of the input, the fastest first
  std::vector<std::uint32_t> order;      // kReorderRows: the factors of the result; kTranspose: its dimensions
  std::array<std::uint64_t, 2> block{};  // kScaleBlocks: columns and rows of a block
  const MapFunction* map = nullptr;      // kMap
  float parameter = 0;                   // kMap
  const RepackFunction* repack = nullptr;
  std::vector<float> values;  // kConstant, F32

  std::uint64_t row_bytes() const { return shape.columns() / type->block_elements * type->block_bytes; }
  std::uint64_t bytes() const { return row_bytes() * shape.rows(); }
  // The one run of bytes that is all of it; null where it has to be put together.
  const Extent* as_extent() const { return operation == Operation::kExtent ? &extent : nullptr; }
};

// Every distinct source that an expression reads, in the order met.
void add_sources(const Expression& expression, std::vector<SourceRef>& sources);
// The first byte that is read of it, for an order of steps that follows the files; null where nothing is read.
const Extent* first_extent(const Expression& expression);
// The same text for two expressions exactly when they have the same values for the same reason. `name_of_source`: what
// a source is known by, its path where none is given.
std::string key_of(const Expression& expression,
                   const std::function<std::string(const SourceFile&)>& name_of_source = {});

// Each returns the simplest expression of that meaning: a reshaped extent is an extent. Errors (exit code 2, without a
// place) say which rule is broken: the caller adds the tensor's name.
namespace expressions {
Result<ExpressionRef> extent(const TypeInfo& type, const Shape& shape, Extent extent);
Result<ExpressionRef> stack(std::vector<ExpressionRef> inputs);
Result<ExpressionRef> concat(std::vector<ExpressionRef> inputs, std::uint32_t axis);
Result<ExpressionRef> slice(ExpressionRef input, std::uint32_t axis, std::uint64_t first, std::uint64_t count);
Result<ExpressionRef> reshape(ExpressionRef input, const Shape& shape);
// `factors`: of dimension 1, the fastest first; `order[i]`: which of them is the i-th of the result.
Result<ExpressionRef> reorder_rows(ExpressionRef input, std::vector<std::uint64_t> factors,
                                   std::vector<std::uint32_t> order);
// `order[i]`: which dimension of the input is dimension i of the result; as many as the input's rank.
Result<ExpressionRef> transpose(ExpressionRef input, std::vector<std::uint32_t> order);
Result<ExpressionRef> cast(ExpressionRef input, const TypeInfo& type);
Result<ExpressionRef> map(ExpressionRef input, const MapFunction& function, float parameter);
// `scales`: F32; one for each block of `columns` x `rows`, the last ones of a row or column may be cut. `offsets`: as
// many, or null: none.
Result<ExpressionRef> scale_blocks(ExpressionRef input, ExpressionRef scales, std::uint64_t columns, std::uint64_t rows,
                                   ExpressionRef offsets = nullptr);
// `columns`: I32, one row; the numbers are read with the rows, and one that is no column of the input is an error then.
// Rows of the input have kGatheredColumns at most, since they are read whole for every row of the result.
inline constexpr std::uint64_t kGatheredColumns = 1 << 14;
Result<ExpressionRef> gather(ExpressionRef input, ExpressionRef columns);
Result<ExpressionRef> repack(const RepackFunction& function, ExpressionRef first, ExpressionRef second);
Result<ExpressionRef> constant(const Shape& shape, std::vector<float> values);
}  // namespace expressions

}  // namespace ggufmill
