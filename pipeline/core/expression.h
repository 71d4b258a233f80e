#pragma once
// Tensor expressions: the origin of a tensor's values, and the operations applied to them before they are encoded. A
// small closed set of operations (operation.h). Each one checks types and shapes when it is created, so that the shape
// of a tensor always matches its values. Nothing is read here: rows.h determines the bytes that a range of rows needs,
// and pipeline/graph/assemble.h assembles them.

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
#include "pipeline/core/lifetime.h"
#include "pipeline/core/types.h"

namespace ggufmill {

// Up to four dimensions; the first is the row length (columns), as in GGUF. Missing dimensions count as 1.
struct Shape {
  std::uint32_t rank = 0;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};

  std::uint64_t columns() const { return dims[0]; }
  std::uint64_t elements() const { return dims[0] * rows(); }  // checked for overflow on creation
  std::uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  bool operator==(const Shape&) const = default;
};
std::string describe(const Shape& shape);  // "4096 x 128"
// Returns the size of a tensor in bytes. Fails if its rows do not form complete blocks or if the size overflows 64
// bits.
Result<std::uint64_t> bytes_of(const TypeInfo& type, const Shape& shape);
// Returns the bytes of a row of `shape` in `type`.
inline std::uint64_t row_bytes(const TypeInfo& type, const Shape& shape) { return row_bytes(type, shape.columns()); }
// Returns the shape without trailing dimensions of 1, but with at least one dimension: the way ggml counts dimensions.
Shape without_trailing_ones(Shape shape);

// A file or other source of bytes, as it was when its header was read. Its identity is part of the identity of all
// plans that read it. Immutable; shared by everything that refers to it.
struct SourceFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t header_hash = 0;  // XXH3 of the beginning, see ByteSource::describe()
  std::int64_t modified = 0;      // nanoseconds since 1970
};
using SourceRef = std::shared_ptr<const SourceFile>;

// A contiguous range of bytes of a source.
struct Extent {
  SourceRef source;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool big_endian = false;  // elements and scales are in the other byte order and are swapped when read
};

enum class Operation : std::uint8_t {
  kExtent,       // bytes of a source
  kStack,        // inputs of equal shape, stacked along a new last dimension
  kConcat,       // inputs concatenated along dimension `axis`
  kSlice,        // the part of dimension `axis` that begins at `first`
  kReshape,      // the same elements in the same order, with another shape
  kReorderRows,  // dimension 1 as a grid of `factors`, with its axes permuted: covers the permutation of the rows of
                 // query and key heads, and the regrouping of heads
  kTranspose,    // permuted dimensions
  kCast,         // to another, non-integer type: decoded to F32, then encoded unless F32 is the target
  kMap,          // F32: a named function of each value
  kScaleBlocks,  // F32: (value - offset) * scale, with an offset and a scale per block of rows and columns
  kGather,       // for each row, the columns whose indices another tensor lists: scales by a table of groups
  kLowRank,      // F32: the sum of a tensor and of products of two smaller matrices: adapters
  kRepack,       // blocks of one format built from the bytes of another, with unchanged values
  kConstant,     // values computed in the header plane
  kInterleave,   // the same rows in groups (interleaved.h), or such rows separated
  kAddBlocks,    // F32: value + addend, with an addend per block of rows and columns
  kLookup,       // F32: the entries of a table for each byte
};
std::string_view name_of(Operation operation);  // "reorder_rows"

// A function applied to each value of a tensor, in single precision.
struct MapFunction {
  std::string_view name;
  float (*apply)(float value, float parameter);
};
std::span<const MapFunction> map_functions();
const MapFunction* find_map_function(std::string_view name);  // null if unknown

// Builds blocks of `type` from other bytes. Input i supplies input_bytes[i] bytes per block and is a tensor of type I8
// or U8.
struct RepackFunction {
  std::string_view name;
  std::string_view type;
  std::array<std::uint32_t, 2> input_bytes;
  // `inputs[i]`: blocks * input_bytes[i] bytes; `into`: complete blocks of the type.
  void (*apply)(std::uint64_t blocks, const std::byte* const inputs[2], std::byte* into);
};
std::span<const RepackFunction> repack_functions();
const RepackFunction* find_repack_function(std::string_view name);

struct Expression;
using ExpressionRef = std::shared_ptr<const Expression>;

// A node of an expression. Immutable once created, so that expressions can share parts. Created only by the functions
// below.
struct Expression {
  Operation operation = Operation::kExtent;
  const TypeInfo* type = nullptr;     // type of the result
  Shape shape;                        // shape of the result
  std::vector<ExpressionRef> inputs;  // in order; empty for an extent or a constant

  Extent extent;                         // kExtent
  std::uint32_t axis = 0;                // kConcat, kSlice
  std::uint64_t first = 0;               // kSlice
  std::vector<std::uint64_t> factors;    // kReorderRows: factors of the input's dimension 1, fastest first
  std::vector<std::uint32_t> order;      // kReorderRows: factors of the result; kTranspose: its dimensions
  std::array<std::uint64_t, 2> block{};  // kScaleBlocks, kAddBlocks: columns and rows of a block
  const MapFunction* map = nullptr;      // kMap
  float parameter = 0;                   // kMap
  std::vector<double> scales;            // kLowRank: the factor of each product
  const RepackFunction* repack = nullptr;
  std::vector<float> values;  // kConstant, F32

  // Set when a node is created, which fails beyond these limits, so that walks over an expression end.
  static constexpr std::uint32_t kMaxNodes = 1 << 18, kMaxDepth = 1024;
  std::uint32_t nodes = 1;  // of the expression; one that is used several times counts each time
  std::uint32_t depth = 1;  // nodes between the result and the farthest source, both included

  std::uint64_t row_bytes() const { return ggufmill::row_bytes(*type, shape); }
  std::uint64_t grain_bytes() const { return ggufmill::grain_bytes(*type, shape.columns()); }
  std::uint64_t bytes() const { return row_bytes() * shape.rows(); }
  // Returns the single extent that holds the entire tensor; null if the tensor has to be assembled.
  const Extent* as_extent() const GGUFMILL_OUTLIVES_RESULT {
    return operation == Operation::kExtent ? &extent : nullptr;
  }
};

// Appends every distinct source that an expression reads, in the order of first use.
void add_sources(const Expression& expression, std::vector<SourceRef>& sources);
// Returns the first extent that the expression reads, for ordering steps by file position; null if nothing is read.
const Extent* first_extent(GGUFMILL_OUTLIVES_RESULT const Expression& expression);
// Returns true if two expressions compute the same values in the same way, compared member by member: the same
// operations on the same bytes of the sources with the same paths.
bool has_same_values(const Expression& a, const Expression& b);
// Returns a key that is equal for two expressions exactly if they compute the same values in the same way.
// `name_of_source` returns the name under which a source appears in the key; without it, the path is used.
std::string key_of(const Expression& expression,
                   const std::function<std::string(const SourceFile&)>& name_of_source = {});

// Each function returns the simplest expression with the requested meaning: for example, reshaping an extent returns an
// extent. Errors (exit code 2, without a place) state which rule is broken; the caller adds the tensor's name.
namespace expressions {
Result<ExpressionRef> extent(const TypeInfo& type, const Shape& shape, Extent extent);
Result<ExpressionRef> stack(std::vector<ExpressionRef> inputs);
Result<ExpressionRef> concat(std::vector<ExpressionRef> inputs, std::uint32_t axis);
Result<ExpressionRef> slice(ExpressionRef input, std::uint32_t axis, std::uint64_t first, std::uint64_t count);
Result<ExpressionRef> reshape(ExpressionRef input, const Shape& shape);
// `factors`: factors of dimension 1, fastest first; `order[i]`: the factor that becomes the i-th of the result.
Result<ExpressionRef> reorder_rows(ExpressionRef input, std::vector<std::uint64_t> factors,
                                   std::vector<std::uint32_t> order);
// `order[i]`: the input dimension that becomes dimension i of the result; has as many entries as the input's rank.
Result<ExpressionRef> transpose(ExpressionRef input, std::vector<std::uint32_t> order);
Result<ExpressionRef> cast(ExpressionRef input, const TypeInfo& type);
Result<ExpressionRef> map(ExpressionRef input, const MapFunction& function, float parameter);
// `scales`: F32, one for each block of `columns` x `rows`; the last blocks of a row or column may be partial.
// `offsets`: as many as scales, or null for none.
Result<ExpressionRef> scale_blocks(ExpressionRef input, ExpressionRef scales, std::uint64_t columns, std::uint64_t rows,
                                   ExpressionRef offsets = nullptr);
// `addends`: as the scales above.
Result<ExpressionRef> add_blocks(ExpressionRef input, ExpressionRef addends, std::uint64_t columns, std::uint64_t rows);
// Makes F32 values of bytes (U8): `table` is one F32 row with the same number of values for each of the 256 bytes,
// which follow each other in the result as many columns. At most kLookedUp values for each byte.
inline constexpr std::uint64_t kLookedUp = 8;
Result<ExpressionRef> lookup(ExpressionRef bytes, ExpressionRef table);
// `columns`: I32, one row. The indices are read together with the rows; an index that is not a column of the input is
// reported as an error then. Input rows have at most kGatheredColumns columns, since they are read in full for every
// row of the result.
inline constexpr std::uint64_t kGatheredColumns = 1 << 14;
Result<ExpressionRef> gather(ExpressionRef input, ExpressionRef columns);
// input + scale * B A, with A of {columns, r} and B of {r, rows}, and one such pair for each matrix. `input`: null for
// the product alone. Sums and products are in double precision and rounded once to F32, also if the input is itself
// such a sum. A pair has at most kMaxLowRank rows and columns r, since A is read in full for all rows of the result.
inline constexpr std::uint64_t kMaxLowRank = 1 << 12;
Result<ExpressionRef> low_rank(ExpressionRef input, ExpressionRef a, ExpressionRef b, double scale);
Result<ExpressionRef> repack(const RepackFunction& function, ExpressionRef first, ExpressionRef second);
Result<ExpressionRef> constant(const Shape& shape, std::vector<float> values);
// The same rows, interleaved or separated: the types must have the same plain type. Other operations than a stack
// refuse interleaved inputs, except for a cast, which separates them.
Result<ExpressionRef> interleave(ExpressionRef input, const TypeInfo& type);
// Returns the input with separated rows, if it has interleaved ones.
Result<ExpressionRef> plain_rows(ExpressionRef input);
}  // namespace expressions

}  // namespace ggufmill
