#include <fmt/format.h>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

class ExtentOperation final : public TensorOperation {
 public:
  std::string_view name() const override { return "extent"; }
  void add_ranges(const Expression& node, const Box& box, std::vector<ByteRange>& ranges) const override {
    const Extent& extent = node.extent;
    for_each_run(node, box, [&](std::uint64_t offset, std::uint64_t bytes, const Index&) {
      ranges.push_back({extent.source.get(), extent.offset + offset, bytes});
    });
  }

  ReadBound read_bound(const Expression& node, const Index& count) const override {
    std::uint64_t elements = 1, runs = 1;
    bool whole = true;  // all lower dimensions are complete
    for (std::uint32_t d = 0; d < 4; ++d) {
      elements = capped_product(elements, count[d]);
      if (!whole) runs = capped_product(runs, count[d]);
      whole = whole && count[d] == node.shape.dims[d];
    }
    const std::uint64_t blocks = capped_product(ceil_div(elements, node.type->block_elements), node.type->block_bytes);
    const std::uint64_t headers =
        capped_product(capped_product(count[1], capped_product(count[2], count[3])), node.type->row_header_bytes);
    return {capped_sum(blocks, headers), runs};
  }

  Status put(const Expression& node, const Box& box, std::byte* into, const Layout& layout,
             RowMaterial& material) const override {
    const TypeInfo& type = *node.type;
    const std::uint64_t blocks = box.count[0] / type.block_elements,
                        row_bytes = ggufmill::row_bytes(type, box.count[0]);
    std::vector<std::byte> swapped;
    for_each_run(node, box, [&](std::uint64_t offset, std::uint64_t bytes, Index at) {
      const std::byte* from = material.find(*node.extent.source, node.extent.offset + offset);
      // A run may span several rows, which need not be adjacent at the destination.
      for (const std::byte* const end = from + bytes; from != end; from += row_bytes) {
        std::byte* place = into + layout.offset;
        for (std::uint32_t d = 1; d < 4; ++d) place += at[d] * layout.step[d];
        const std::byte* row = from;
        if (node.extent.big_endian) {
          swapped.assign(from, from + row_bytes);
          swap_words(type, box.count[0], swapped);
          row = swapped.data();
        }
        if (type.row_header_bytes != 0)
          std::memcpy(place, row, row_bytes);  // whole rows, see check_whole_rows()
        else
          scatter(row, blocks, type.block_bytes, place, layout.step[0]);
        for (std::uint32_t d = 1; d < 4 && ++at[d] == box.count[d]; ++d) at[d] = 0;
      }
    });
    return ok();
  }
};

}  // namespace

const TensorOperation& extent_operation() { return the_only<ExtentOperation>(); }

void for_each_run(const Expression& expression, const Box& box, const RunVisitor& run) {
  const std::uint64_t block = expression.type->block_elements, block_bytes = expression.type->block_bytes;
  std::uint32_t run_dims = 1;
  std::uint64_t bytes = row_bytes(*expression.type, box.count[0]);
  while (run_dims < 4 && box.count[run_dims - 1] == expression.shape.dims[run_dims - 1]) bytes *= box.count[run_dims++];
  Index at{};
  for (;;) {
    std::uint64_t offset = 0, size = block_bytes;
    for (std::uint32_t d = 0; d < 4; ++d) {
      offset += (box.first[d] + at[d]) / (d == 0 ? block : 1) * size;
      size = d == 0 ? row_bytes(*expression.type, expression.shape.dims[0]) : size * expression.shape.dims[d];
    }
    run(offset, bytes, at);
    std::uint32_t d = run_dims;
    while (d < 4 && ++at[d] == box.count[d]) at[d++] = 0;
    if (d >= 4) return;
  }
}

Result<ExpressionRef> expressions::extent(const TypeInfo& type, const Shape& shape, Extent extent) {
  Expression node;
  node.operation = Operation::kExtent;
  node.type = &type;
  node.shape = shape;
  node.extent = std::move(extent);
  BOOST_OUTCOME_TRY(check_shape(node.operation, type, shape));
  if (node.bytes() != node.extent.bytes)
    return broken(node.operation, fmt::format("{} of {} are {} bytes, not {}", describe(shape), type.name, node.bytes(),
                                              node.extent.bytes));
  if (node.extent.source && (node.extent.offset > node.extent.source->bytes ||
                             node.extent.bytes > node.extent.source->bytes - node.extent.offset))
    return broken(node.operation, fmt::format("{} bytes at byte {:#x} are beyond the {} bytes of the file",
                                              node.extent.bytes, node.extent.offset, node.extent.source->bytes));
  return ExpressionRef(std::make_shared<const Expression>(std::move(node)));
}

}  // namespace ggufmill
