#include "pipeline/core/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ggufmill {

Shape without_trailing_ones(Shape shape) {
  shape.rank = std::max<std::uint32_t>(1, shape.rank);
  while (shape.rank > 1 && shape.dims[shape.rank - 1] == 1) --shape.rank;
  return shape;
}

Result<std::uint64_t> bytes_of(const TypeInfo& type, const Shape& shape) {
  if (type.row_header_bytes == 0) return bytes_of(type, shape.elements());
  BOOST_OUTCOME_TRY(std::uint64_t bytes, bytes_of(type, shape.columns()));
  if (__builtin_mul_overflow(bytes, shape.rows(), &bytes))
    return input_error("", fmt::format("{} of {} exceed 2^64 bytes", describe(shape), type.name));
  return bytes;
}

std::string describe(const Shape& shape) {
  if (shape.rank == 0) return "scalar";
  std::string text = std::to_string(shape.dims[0]);
  for (std::uint32_t i = 1; i < shape.rank; ++i) text += fmt::format(" x {}", shape.dims[i]);
  return text;
}

void add_sources(const Expression& expression, std::vector<SourceRef>& sources) {
  if (const Extent* extent = expression.as_extent(); extent && std::ranges::count(sources, extent->source) == 0)
    sources.push_back(extent->source);
  for (const ExpressionRef& input : expression.inputs) add_sources(*input, sources);
}

const Extent* first_extent(const Expression& expression) {
  if (expression.as_extent()) return expression.as_extent();
  for (const ExpressionRef& input : expression.inputs)
    if (const Extent* extent = first_extent(*input)) return extent;
  return nullptr;
}

namespace {

bool is_same_extent(const Extent& a, const Extent& b) {
  if (a.offset != b.offset || a.bytes != b.bytes || a.big_endian != b.big_endian) return false;
  return a.source == b.source || (a.source && b.source && a.source->path == b.source->path);
}

// Bits decide, not values: NaN equals itself, and -0 differs from 0.
template <class Bits, class T>
bool has_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<Bits, T>, std::bit_cast<Bits, T>);
}

}  // namespace

bool has_same_values(const Expression& a, const Expression& b) {
  if (&a == &b) return true;
  return a.operation == b.operation && a.type == b.type && a.shape.dims == b.shape.dims &&
         is_same_extent(a.extent, b.extent) && a.axis == b.axis && a.first == b.first && a.factors == b.factors &&
         a.order == b.order && a.block == b.block && a.map == b.map &&
         std::bit_cast<std::uint32_t>(a.parameter) == std::bit_cast<std::uint32_t>(b.parameter) &&
         a.repack == b.repack && has_same_bits<std::uint64_t>(a.scales, b.scales) &&
         has_same_bits<std::uint32_t>(a.values, b.values) &&
         std::ranges::equal(a.inputs, b.inputs,
                            [](const ExpressionRef& x, const ExpressionRef& y) { return has_same_values(*x, *y); });
}

std::string key_of(const Expression& expression, const std::function<std::string(const SourceFile&)>& name_of_source) {
  std::string key =
      fmt::format("{}:{}[{},{},{},{}]", name_of(expression.operation), expression.type->name, expression.shape.dims[0],
                  expression.shape.dims[1], expression.shape.dims[2], expression.shape.dims[3]);
  if (const Extent* extent = expression.as_extent()) {
    key += fmt::format("@{}+{}{}", extent->offset, extent->bytes, extent->big_endian ? "B" : "L");
    if (extent->source) key += name_of_source ? name_of_source(*extent->source) : extent->source->path;
  }
  if (expression.operation == Operation::kConcat || expression.operation == Operation::kSlice)
    key += fmt::format("@{}+{}", expression.axis, expression.first);
  if (!expression.order.empty())
    key += fmt::format("@{}<{}", fmt::join(expression.factors, ","), fmt::join(expression.order, ","));
  if (expression.map)
    key += fmt::format("@{}({:#x})", expression.map->name, std::bit_cast<std::uint32_t>(expression.parameter));
  if (expression.operation == Operation::kScaleBlocks || expression.operation == Operation::kAddBlocks)
    key += fmt::format("@{}x{}", expression.block[0], expression.block[1]);
  for (const double scale : expression.scales) key += fmt::format("@{:x}", std::bit_cast<std::uint64_t>(scale));
  if (expression.repack) key += fmt::format("@{}", expression.repack->name);
  for (const float value : expression.values) key += fmt::format(" {:x}", std::bit_cast<std::uint32_t>(value));
  if (expression.inputs.empty()) return key;
  key += "(";
  for (const ExpressionRef& input : expression.inputs) key += key_of(*input, name_of_source) + ";";
  return key + ")";
}

}  // namespace ggufmill
