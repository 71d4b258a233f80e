#pragma once
// The operations of tensor expressions. Each is a class in its own file in pipeline/core/operations, beside the
// function of namespace `expressions` that checks its inputs and determines its type and shape. The class knows which
// bytes a part of the result needs, how many they can be at most, and how the part is made.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/rows.h"

namespace ggufmill {

using Index = std::array<std::uint64_t, 4>;

// Supplies what rows are made from: the bytes of sources, and conversions between types. Not thread-safe.
class RowMaterial {
 public:
  virtual ~RowMaterial() = default;
  // Returns the bytes at `offset` of a source, which must be in the ranges read.
  virtual const std::byte* find(const SourceFile& source, std::uint64_t offset) = 0;
  virtual Status decode(const TypeInfo& from, const std::byte* row, std::uint64_t columns, float* into) = 0;
  virtual Status encode(const TypeInfo& to, const float* row, std::uint64_t columns, std::byte* into) = 0;
  virtual const std::string& tensor() const = 0;  // its name, for messages
  // Called by an operation whose result would hide that a value is NaN or infinite: `values` are those of its input,
  // and the place is that in its result. Returns true if the operation has to take 0 instead, false if it has to take
  // the value. Fails if such values are errors.
  virtual Result<bool> replaces_nonfinite(const Expression& /*values*/, std::uint64_t /*row*/, std::uint64_t /*column*/,
                                          float /*value*/) {
    return false;
  }
};

// All functions are thread-safe.
class TensorOperation {
 public:
  virtual ~TensorOperation() = default;
  virtual std::string_view name() const = 0;  // as in plans: "reorder_rows"

  // For operations that only move elements: calls for_each_part() for the parts of the inputs that `box` consists of.
  // The others pass `box` to `part`.
  virtual void follow(const Expression& node, const Box& box, const Layout& layout, const PartVisitor& part) const {
    part(node, box, layout);
  }
  // Appends the ranges needed for a part that follow() has passed on.
  virtual void add_ranges(const Expression&, const Box&, std::vector<ByteRange>&) const {}
  // See ggufmill::read_bound(); `count` is within the shape.
  virtual ReadBound read_bound(const Expression& node, const Index& count) const = 0;
  // Writes a part that follow() has passed on. Fails with exit code 4 for values that cannot be represented.
  virtual Status put(const Expression&, const Box&, std::byte*, const Layout&, RowMaterial&) const { return ok(); }
};
const TensorOperation& operation_of(const Expression& node);

// Some columns of one row of every input of a computed part. All blocks of an input are complete.
struct InputColumns {
  std::vector<Box> boxes;
  std::vector<const std::byte*> data;
  const float* values(std::size_t input) const { return reinterpret_cast<const float*>(data[input]); }
};

// Operations that compute their elements.
class ComputingOperation : public TensorOperation {
 public:
  void add_ranges(const Expression& node, const Box& box, std::vector<ByteRange>& ranges) const final;
  ReadBound read_bound(const Expression& node, const Index& count) const final;
  // Computes row by row, some columns at a time, in buffers of that size, however long the row is.
  Status put(const Expression& node, const Box& box, std::byte* into, const Layout& layout,
             RowMaterial& material) const final;

 protected:
  // Returns the part of input `input` that is needed for `box`, rounded to complete blocks.
  virtual Box input_box(const Expression&, std::size_t /*input*/, const Box& box) const { return box; }
  virtual ReadBound bound_of_input(const Expression& node, std::size_t input, const Index& count) const;
  // Computes part of one row; `result` is contiguous.
  virtual Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                         RowMaterial& material) const = 0;
};

// Collects the ranges of a box, unordered.
void add_ranges(const Expression& expression, const Box& box, std::vector<ByteRange>& ranges);
// Writes the elements of a box to `into`.
Status put_rows(const Expression& expression, const Box& box, std::byte* into, const Layout& layout,
                RowMaterial& material);
// Copies `count` contiguous blocks to locations `step` bytes apart.
void scatter(const std::byte* from, std::uint64_t count, std::size_t block_bytes, std::byte* into, std::uint64_t step);

ReadBound operator+(ReadBound a, ReadBound b);
ReadBound most_of(ReadBound a, ReadBound b);
// Bound for a box of at most `most` elements, which may have fewer elements along each dimension d with may_be_less[d].
ReadBound bound_up_to(const Expression& input, const Index& most, const std::array<bool, 4>& may_be_less);

// Calls f with the position of each row of a box, relative to its first.
template <class F>
void for_each_row(const Box& box, const F& f) {
  Index at{};
  for (at[3] = 0; at[3] < box.count[3]; ++at[3])
    for (at[2] = 0; at[2] < box.count[2]; ++at[2])
      for (at[1] = 0; at[1] < box.count[1]; ++at[1]) f(at);
}

// For the functions that create expressions: an error of an operation, checks, a node with the type and shape of its
// first input, and a node that was checked.
Error broken(Operation operation, std::string what);
// Fails for a type whose rows have a header, which an operation that reads or makes parts of rows cannot take.
Status check_whole_rows(Operation operation, const TypeInfo& type);
Status check_shape(Operation operation, const TypeInfo& type, const Shape& shape);
bool is_order(const std::vector<std::uint32_t>& order, std::size_t count);  // a permutation of 0 ... count - 1
Expression node_of(Operation operation, std::vector<ExpressionRef> inputs);
Result<ExpressionRef> made(Expression node);

// Operations have no state: there is one object of each class.
template <class Class>
const TensorOperation& the_only() {
  static const Class kOperation;
  return kOperation;
}
const TensorOperation& extent_operation();
const TensorOperation& stack_operation();
const TensorOperation& concat_operation();
const TensorOperation& slice_operation();
const TensorOperation& reshape_operation();
const TensorOperation& reorder_rows_operation();
const TensorOperation& transpose_operation();
const TensorOperation& cast_operation();
const TensorOperation& map_operation();
const TensorOperation& scale_blocks_operation();
const TensorOperation& gather_operation();
const TensorOperation& low_rank_operation();
const TensorOperation& repack_operation();
const TensorOperation& constant_operation();
const TensorOperation& interleave_operation();
const TensorOperation& add_blocks_operation();
const TensorOperation& lookup_operation();

}  // namespace ggufmill
