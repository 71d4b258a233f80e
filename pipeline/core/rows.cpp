#include "pipeline/core/rows.h"

#include <algorithm>
#include <unordered_map>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

bool is_empty(const Box& box) { return std::ranges::count(box.count, 0u) != 0; }

Index at_most(const Index& count, const Shape& shape) {
  Index least;
  for (std::uint32_t d = 0; d < 4; ++d) least[d] = std::min(count[d], shape.dims[d]);
  return least;
}

}  // namespace

std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

std::uint64_t capped_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

Box box_of_rows(const Shape& shape, std::uint64_t first, std::uint64_t rows) {
  const std::uint64_t matrix = first / shape.dims[1];
  Box box;
  box.first = {0, first % shape.dims[1], matrix % shape.dims[2], matrix / shape.dims[2]};
  box.count = {shape.dims[0], rows, 1, 1};
  return box;
}

Layout packed_layout(const TypeInfo& type, const Box& box) {
  Layout layout;
  layout.step[0] = type.block_bytes;
  layout.step[1] = row_bytes(type, box.count[0]);
  for (std::uint32_t d = 2; d < 4; ++d) layout.step[d] = layout.step[d - 1] * box.count[d - 1];
  return layout;
}

void for_each_part(const Expression& expression, const Box& box, const Layout& layout, const PartVisitor& part) {
  if (!is_empty(box)) operation_of(expression).follow(expression, box, layout, part);
}

std::vector<ByteRange> ranges_of(const Expression& expression, const Box& box) {
  std::vector<ByteRange> ranges;
  add_ranges(expression, box, ranges);
  std::unordered_map<const SourceFile*, std::size_t> order;  // index of each source
  for (const ByteRange& range : ranges) order.emplace(range.source, order.size());
  std::ranges::sort(ranges, {}, [&](const ByteRange& range) { return std::pair(order[range.source], range.offset); });
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    ByteRange& before = ranges[last];
    if (ranges[i].source == before.source && ranges[i].offset <= before.offset + before.bytes)
      before.bytes = std::max(before.offset + before.bytes, ranges[i].offset + ranges[i].bytes) - before.offset;
    else
      ranges[++last] = ranges[i];
  }
  if (!ranges.empty()) ranges.resize(last + 1);
  return ranges;
}

ReadBound read_bound(const Expression& expression, const std::array<std::uint64_t, 4>& count) {
  return operation_of(expression).read_bound(expression, at_most(count, expression.shape));
}

}  // namespace ggufmill
