#include "pipeline/core/interleaved.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

// Returns the interleaved one of the two types.
const TypeInfo& interleaved_type(const Expression& node) {
  return node.type->plain ? *node.type : *node.inputs[0]->type;
}

// The rows of a box that are in complete groups: the first, and their number.
struct GroupedRows {
  GroupedRows(std::uint64_t group_rows, std::uint64_t row, std::uint64_t rows)
      : first(row / group_rows * group_rows), count(ceil_div(row + rows, group_rows) * group_rows - first) {}
  std::uint64_t first, count;
};

// Reads complete groups, whichever rows of them are wanted. Both sides have rows of the same size.
class InterleaveOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "interleave"; }

  void add_ranges(const Expression& node, const Box& box, std::vector<ByteRange>& ranges) const override {
    ggufmill::add_ranges(*node.inputs[0], input_box(node, box), ranges);
  }

  ReadBound read_bound(const Expression& node, const Index& count) const override {
    const std::uint64_t group_rows = interleaved_type(node).group_rows;
    Index of_input = count;
    of_input[0] = node.shape.dims[0];
    of_input[1] = std::min(GroupedRows(group_rows, group_rows - 1, count[1]).count, node.shape.dims[1]);
    ReadBound bound = bound_up_to(*node.inputs[0], of_input, {false, count[1] < node.shape.dims[1], false, false});
    // A worker may need memory for the rows of a group on both sides.
    bound.bytes = capped_sum(bound.bytes, capped_product(2 * group_rows, node.row_bytes()));
    return bound;
  }

  Status put(const Expression& node, const Box& box, std::byte* into, const Layout& layout,
             RowMaterial& material) const override {
    for (std::uint64_t i = 0; i < box.count[3]; ++i)
      for (std::uint64_t j = 0; j < box.count[2]; ++j) {
        Box matrix = box;
        matrix.first[2] += j, matrix.first[3] += i;
        matrix.count[2] = matrix.count[3] = 1;
        std::byte* const place = into + layout.offset + j * layout.step[2] + i * layout.step[3];
        BOOST_OUTCOME_TRY(put_matrix(node, matrix, place, layout, material));
      }
    return ok();
  }

 private:
  static Box input_box(const Expression& node, const Box& box) {
    const GroupedRows rows(interleaved_type(node).group_rows, box.first[1], box.count[1]);
    Box whole = box;
    whole.first[0] = 0;
    whole.count[0] = node.shape.dims[0];
    whole.first[1] = rows.first;
    whole.count[1] = rows.count;
    return whole;
  }

  // `place`: of the first row.
  static Status put_matrix(const Expression& node, const Box& box, std::byte* place, const Layout& layout,
                           RowMaterial& material) {
    const std::uint64_t row_bytes = node.row_bytes(), group_rows = interleaved_type(node).group_rows;
    std::vector<std::byte> read, made(group_rows * row_bytes);
    Box group = input_box(node, box);
    const std::uint64_t end = group.first[1] + group.count[1];
    for (group.count[1] = group_rows; group.first[1] != end; group.first[1] += group_rows) {
      BOOST_OUTCOME_TRY(const std::byte* from, rows_of(*node.inputs[0], group, read, material));
      rearrange(node, from, made.data());
      for (std::uint64_t k = 0; k < group_rows; ++k) {
        const std::uint64_t row = group.first[1] + k;
        if (row < box.first[1] || row >= box.first[1] + box.count[1]) continue;
        put_row(node, box, made.data() + k * row_bytes, place + (row - box.first[1]) * layout.step[1], layout);
      }
    }
    return ok();
  }

  static void put_row(const Expression& node, const Box& box, const std::byte* row, std::byte* place,
                      const Layout& layout) {
    const TypeInfo& type = *node.type;
    if (box.count[0] == node.shape.dims[0] && layout.step[0] == type.block_bytes) {
      std::memcpy(place, row, node.row_bytes());
      return;
    }
    const std::byte* const first = row + box.first[0] / type.block_elements * type.block_bytes;
    scatter(first, box.count[0] / type.block_elements, type.block_bytes, place, layout.step[0]);
  }

  // Returns the adjacent rows of a group, in the memory they were read into if they are adjacent there; else assembled
  // in `own`.
  static Result<const std::byte*> rows_of(const Expression& input, const Box& group, std::vector<std::byte>& own,
                                          RowMaterial& material) {
    if (const Extent* extent = input.as_extent(); extent && !extent->big_endian) {
      const std::byte* data = nullptr;
      for_each_run(input, group, [&](std::uint64_t offset, std::uint64_t, const Index&) {  // a single run
        data = material.find(*extent->source, extent->offset + offset);
      });
      return data;
    }
    own.resize(group.count[1] * input.row_bytes());
    BOOST_OUTCOME_TRY(put_rows(input, group, own.data(), packed_layout(*input.type, group), material));
    return own.data();
  }

  static void rearrange(const Expression& node, const std::byte* from, std::byte* to) {
    const TypeInfo& type = interleaved_type(node);
    const std::uint64_t row_bytes = node.row_bytes(), blocks = node.shape.columns() / type.block_elements;
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> targets;
    for (std::uint32_t k = 0; k < type.group_rows; ++k) {
      sources.push_back(from + k * row_bytes);
      targets.push_back(to + k * row_bytes);
    }
    if (node.type->plain)
      Interleaving::of(type).interleave(sources, blocks, to);
    else
      Interleaving::of(type).separate(from, blocks, targets);
  }
};

}  // namespace

const TensorOperation& interleave_operation() { return the_only<InterleaveOperation>(); }

Result<ExpressionRef> expressions::interleave(ExpressionRef input, const TypeInfo& type) {
  if (input->type == &type) return input;
  if (&plain_type(type) != &plain_type(*input->type))
    return broken(Operation::kInterleave,
                  fmt::format("{} and {} do not have the same rows", input->type->name, type.name));
  if (input->operation == Operation::kInterleave) return interleave(input->inputs[0], type);
  Expression node = node_of(Operation::kInterleave, {std::move(input)});
  node.type = &type;
  return made(std::move(node));
}

Result<ExpressionRef> expressions::plain_rows(ExpressionRef input) {
  const TypeInfo& plain = plain_type(*input->type);
  return interleave(std::move(input), plain);
}

}  // namespace ggufmill
