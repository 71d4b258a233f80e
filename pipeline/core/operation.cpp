#include "pipeline/core/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ggufmill {
namespace {

// Columns computed at a time: whole blocks of every type, and few enough to stay in a cache.
constexpr std::uint64_t kColumnsAtOnce = 4096;

const TensorOperation& operation_of(Operation operation) {
  static const TensorOperation* const kOperations[] = {
      &extent_operation(),  &stack_operation(),        &concat_operation(),     &slice_operation(),
      &reshape_operation(), &reorder_rows_operation(), &transpose_operation(),  &cast_operation(),
      &map_operation(),     &scale_blocks_operation(), &gather_operation(),     &low_rank_operation(),
      &repack_operation(),  &constant_operation(),     &interleave_operation(), &add_blocks_operation(),
      &lookup_operation()};
  return *kOperations[static_cast<std::size_t>(operation)];
}

// Returns columns of a row of an input, in the memory they were read into if kernels can use them there; else they are
// assembled in `own`.
Result<const std::byte*> columns_of(const Expression& input, const Box& box, std::vector<std::byte>& own,
                                    RowMaterial& material) {
  if (const Extent* extent = input.as_extent(); extent && !extent->big_endian) {
    const std::byte* data = nullptr;
    for_each_run(input, box, [&](std::uint64_t offset, std::uint64_t, const Index&) {  // a single run
      data = material.find(*extent->source, extent->offset + offset);
    });
    const std::size_t alignment = input.type->block_elements == 1 ? input.type->block_bytes : alignof(float);
    if (reinterpret_cast<std::uintptr_t>(data) % alignment == 0) return data;
  }
  own.resize(row_bytes(*input.type, box.count[0]));
  BOOST_OUTCOME_TRY(put_rows(input, box, own.data(), packed_layout(*input.type, box), material));
  return own.data();
}

}  // namespace

const TensorOperation& operation_of(const Expression& node) { return operation_of(node.operation); }

std::string_view name_of(Operation operation) { return operation_of(operation).name(); }

Error broken(Operation operation, std::string what) {
  return usage_error(fmt::format("{}: {}", name_of(operation), std::move(what)));
}

Status check_whole_rows(Operation operation, const TypeInfo& type) {
  if (type.row_header_bytes == 0) return ok();
  return broken(operation, fmt::format("rows of {} have a header and cannot be divided or joined", type.name));
}

Status check_shape(Operation operation, const TypeInfo& type, const Shape& shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : shape.dims)
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > INT64_MAX)
      return broken(operation, fmt::format("{} exceeds 2^63 elements", describe(shape)));
  if (shape.columns() % type.block_elements != 0)
    return broken(operation, fmt::format("rows of {} elements are not a multiple of the block size {} of {}",
                                         shape.columns(), type.block_elements, type.name));
  if (const auto bytes = bytes_of(type, shape); !bytes) return broken(operation, bytes.error().what);
  if (shape.dims[1] % type.group_rows != 0)
    return broken(operation, fmt::format("{} rows are not a multiple of the {} that {} interleaves", shape.dims[1],
                                         type.group_rows, type.name));
  return ok();
}

bool is_order(const std::vector<std::uint32_t>& order, std::size_t count) {
  std::vector<std::uint32_t> sorted = order;
  std::ranges::sort(sorted);
  if (sorted.size() != count) return false;
  for (std::uint32_t i = 0; i < count; ++i)
    if (sorted[i] != i) return false;
  return true;
}

Expression node_of(Operation operation, std::vector<ExpressionRef> inputs) {
  Expression node;
  node.operation = operation;
  node.type = inputs.front()->type;
  node.shape = inputs.front()->shape;
  node.inputs = std::move(inputs);
  return node;
}

Result<ExpressionRef> made(Expression node) {
  if (node.operation != Operation::kStack && node.operation != Operation::kInterleave)
    for (const ExpressionRef& input : node.inputs)
      if (input->type->plain)
        return broken(node.operation, fmt::format("the rows of {} are interleaved; write them as {} first: quantize: "
                                                  "{{recipe: COPY, repack: plain}}",
                                                  input->type->name, input->type->plain->name));
  BOOST_OUTCOME_TRY(check_shape(node.operation, *node.type, node.shape));
  std::uint64_t nodes = 1;
  for (const ExpressionRef& input : node.inputs) {
    nodes += input->nodes;
    node.depth = std::max(node.depth, input->depth + 1);
  }
  if (nodes > Expression::kMaxNodes || node.depth > Expression::kMaxDepth)
    return broken(node.operation,
                  fmt::format("a tensor is made by more than {} operations, or by more than {} in a row",
                              Expression::kMaxNodes, Expression::kMaxDepth));
  node.nodes = static_cast<std::uint32_t>(nodes);
  return ExpressionRef(std::make_shared<const Expression>(std::move(node)));
}

void scatter(const std::byte* from, std::uint64_t count, std::size_t block_bytes, std::byte* into, std::uint64_t step) {
  if (step == block_bytes) {
    std::memcpy(into, from, count * block_bytes);
    return;
  }
  const auto copy = [&](auto word) {
    for (std::uint64_t i = 0; i < count; ++i) std::memcpy(into + i * step, from + i * sizeof word, sizeof word);
  };
  switch (block_bytes) {  // with a constant size, memcpy is a move instead of a call
    case 1:
      return copy(std::uint8_t{});
    case 2:
      return copy(std::uint16_t{});
    case 4:
      return copy(std::uint32_t{});
    case 8:
      return copy(std::uint64_t{});
    default:
      for (std::uint64_t i = 0; i < count; ++i) std::memcpy(into + i * step, from + i * block_bytes, block_bytes);
  }
}

ReadBound operator+(ReadBound a, ReadBound b) { return {capped_sum(a.bytes, b.bytes), capped_sum(a.ranges, b.ranges)}; }

ReadBound most_of(ReadBound a, ReadBound b) { return {std::max(a.bytes, b.bytes), std::max(a.ranges, b.ranges)}; }

// A slightly smaller box has to be checked too: part of a dimension may be split into more pieces than the complete
// dimension.
ReadBound bound_up_to(const Expression& input, const Index& most, const std::array<bool, 4>& may_be_less) {
  ReadBound bound = read_bound(input, most);
  for (std::uint32_t d = 0; d < 4; ++d) {
    const std::uint64_t step = d == 0 ? input.type->block_elements : 1, size = input.shape.dims[d];
    if (!may_be_less[d] || most[d] < size || size <= step) continue;
    Index less = most;
    less[d] = size - step;
    bound = most_of(bound, read_bound(input, less));
  }
  return bound;
}

void add_ranges(const Expression& expression, const Box& box, std::vector<ByteRange>& ranges) {
  for_each_part(expression, box, {}, [&](const Expression& node, const Box& part, const Layout&) {
    operation_of(node).add_ranges(node, part, ranges);
  });
}

Status put_rows(const Expression& expression, const Box& box, std::byte* into, const Layout& layout,
                RowMaterial& material) {
  Status status = ok();
  for_each_part(expression, box, layout, [&](const Expression& node, const Box& part, const Layout& place) {
    if (status) status = operation_of(node).put(node, part, into, place, material);
  });
  return status;
}

void ComputingOperation::add_ranges(const Expression& node, const Box& box, std::vector<ByteRange>& ranges) const {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    ggufmill::add_ranges(*node.inputs[i], input_box(node, i, box), ranges);
}

ReadBound ComputingOperation::read_bound(const Expression& node, const Index& count) const {
  ReadBound all;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) all = all + bound_of_input(node, i, count);
  return all;
}

ReadBound ComputingOperation::bound_of_input(const Expression& node, std::size_t input, const Index& count) const {
  return ggufmill::read_bound(*node.inputs[input], count);
}

Status ComputingOperation::put(const Expression& node, const Box& box, std::byte* into, const Layout& layout,
                               RowMaterial& material) const {
  const std::uint64_t block = node.type->block_elements, bytes = node.type->block_bytes;
  const bool scatters = layout.step[0] != bytes;  // otherwise, columns are computed in place
  std::vector<std::byte> buffer(scatters ? kColumnsAtOnce / block * bytes : 0);
  std::vector<std::vector<std::byte>> own(node.inputs.size());
  InputColumns inputs{std::vector<Box>(node.inputs.size()), std::vector<const std::byte*>(node.inputs.size())};
  const auto put_columns = [&](const Box& part, std::byte* place) -> Status {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      inputs.boxes[i] = input_box(node, i, part);
      BOOST_OUTCOME_TRY(inputs.data[i], columns_of(*node.inputs[i], inputs.boxes[i], own[i], material));
    }
    BOOST_OUTCOME_TRY(compute(node, part, inputs, scatters ? buffer.data() : place, material));
    if (scatters) scatter(buffer.data(), part.count[0] / block, bytes, place, layout.step[0]);
    return ok();
  };
  Status status = ok();
  for_each_row(box, [&](const Index& at) {
    std::byte* place = into + layout.offset;
    Box part = box;
    for (std::uint32_t d = 1; d < 4; ++d) {
      part.first[d] += at[d];
      part.count[d] = 1;
      place += at[d] * layout.step[d];
    }
    for (std::uint64_t done = 0; done < box.count[0] && status; done += part.count[0]) {
      part.first[0] = box.first[0] + done;
      // Stops at a multiple of kColumnsAtOnce, so that no block of an input is processed twice.
      const std::uint64_t end = (part.first[0] / kColumnsAtOnce + 1) * kColumnsAtOnce;
      part.count[0] = std::min(end - part.first[0], box.count[0] - done);
      status = put_columns(part, place + done / block * layout.step[0]);
    }
  });
  return status;
}

}  // namespace ggufmill
