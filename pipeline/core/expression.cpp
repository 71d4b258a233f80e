#include "pipeline/core/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace ggufmill {
namespace {

// Torch's exponential for float32 vectors. Its results are not always the nearest float: it uses Sleef's expf, with an
// error of up to 1.0 units in the last place, computed with fused multiply-adds. Source of the method and the
// constants: SLEEF, sleefsp.c, xexpf (Boost Software License).
float sleef_exp(float x) {
  if (x < -104) return 0;
  if (x > 104) return INFINITY;
  const float q = std::nearbyintf(x * 1.442695040888963407359924681001892137426645954152985934135449406931f);
  float s = std::fmaf(q, -0.693145751953125f, x);
  s = std::fmaf(q, -1.428606765330187045e-06f, s);
  float u = 0.000198527617612853646278381f;
  for (const float c : {0.00139304355252534151077271f, 0.00833336077630519866943359f, 0.0416664853692054748535156f,
                        0.166666671633720397949219f, 0.5f})
    u = std::fmaf(u, s, c);
  u = 1.0f + std::fmaf(s * s, u, s);
  // Scales by two factors, so that neither exceeds the exponent range.
  const int power = static_cast<int>(q), half = power >> 1;
  return u * std::ldexp(1.0f, half) * std::ldexp(1.0f, power - half);
}

constexpr MapFunction kMapFunctions[] = {
    {"add", [](float value, float parameter) { return value + parameter; }},
    {"log_negated", [](float value, float) { return static_cast<float>(std::log(-static_cast<double>(value))); }},
    {"multiply", [](float value, float parameter) { return value * parameter; }},
    {"negate_exp", [](float value, float) { return -sleef_exp(value); }},
};

// A block of 32 elements. In a checkpoint: 16 bytes with two adjacent elements each, the first in the low bits, with
// the exponent stored separately. In GGUF: the exponent, then 16 bytes with elements i (low) and i + 16.
void repack_mxfp4(std::uint64_t blocks, const std::byte* const inputs[2], std::byte* into) {
  for (std::uint64_t b = 0; b < blocks; ++b, into += 17) {
    const auto* pairs = reinterpret_cast<const unsigned char*>(inputs[0]) + 16 * b;
    const auto element = [&](unsigned i) { return pairs[i / 2] >> (i % 2 * 4) & 15; };
    into[0] = inputs[1][b];
    for (unsigned i = 0; i < 16; ++i) into[1 + i] = static_cast<std::byte>(element(i) | element(i + 16) << 4);
  }
}

// A super-block of 64 elements. In a checkpoint: 32 bytes with two adjacent elements each, with the four scales stored
// separately. In GGUF: the scales without their sign, then, for every 16 elements, 8 bytes with elements i (low) and
// i + 8.
void repack_nvfp4(std::uint64_t blocks, const std::byte* const inputs[2], std::byte* into) {
  for (std::uint64_t b = 0; b < blocks; ++b, into += 36) {
    const auto* pairs = reinterpret_cast<const unsigned char*>(inputs[0]) + 32 * b;
    for (unsigned part = 0; part < 4; ++part) {
      const auto element = [&](unsigned i) { return pairs[8 * part + i / 2] >> (i % 2 * 4) & 15; };
      into[part] = inputs[1][4 * b + part] & std::byte{0x7f};
      for (unsigned i = 0; i < 8; ++i)
        into[4 + 8 * part + i] = static_cast<std::byte>(element(i) | element(i + 8) << 4);
    }
  }
}

constexpr RepackFunction kRepackFunctions[] = {{"mxfp4", "MXFP4", {16, 1}, repack_mxfp4},
                                               {"nvfp4", "NVFP4", {32, 4}, repack_nvfp4}};

Error broken(Operation operation, std::string what) {
  return usage_error(fmt::format("{}: {}", name_of(operation), std::move(what)));
}

bool is_byte(const TypeInfo& type) { return type.name == "I8" || type.name == "U8"; }

Status check_shape(Operation operation, const TypeInfo& type, const Shape& shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : shape.dims)
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > INT64_MAX)
      return broken(operation, fmt::format("{} exceeds 2^63 elements", describe(shape)));
  if (shape.columns() % type.block_elements != 0)
    return broken(operation, fmt::format("rows of {} elements are not a multiple of the block size {} of {}",
                                         shape.columns(), type.block_elements, type.name));
  if (const auto bytes = bytes_of(type, elements); !bytes) return broken(operation, bytes.error().what);
  return ok();
}

// Returns the node after checking that its type and shape are valid.
Result<ExpressionRef> made(Expression node) {
  BOOST_OUTCOME_TRY(check_shape(node.operation, *node.type, node.shape));
  return ExpressionRef(std::make_shared<const Expression>(std::move(node)));
}

Expression node_of(Operation operation, std::vector<ExpressionRef> inputs) {
  Expression node;
  node.operation = operation;
  node.type = inputs.front()->type;
  node.shape = inputs.front()->shape;
  node.inputs = std::move(inputs);
  return node;
}

Status check_alike(Operation operation, const std::vector<ExpressionRef>& inputs, std::uint32_t but_for_axis) {
  if (inputs.empty()) return broken(operation, "there are no inputs");
  for (const ExpressionRef& input : inputs) {
    if (input->type != inputs[0]->type)
      return broken(operation, fmt::format("inputs are {} and {}", inputs[0]->type->name, input->type->name));
    for (std::uint32_t d = 0; d < 4; ++d)
      if (d != but_for_axis && input->shape.dims[d] != inputs[0]->shape.dims[d])
        return broken(operation,
                      fmt::format("inputs are {} and {}", describe(inputs[0]->shape), describe(input->shape)));
  }
  return ok();
}

// Returns true if `order` is a permutation of 0 ... count - 1.
bool is_order(const std::vector<std::uint32_t>& order, std::size_t count) {
  std::vector<std::uint32_t> sorted = order;
  std::ranges::sort(sorted);
  if (sorted.size() != count) return false;
  for (std::uint32_t i = 0; i < count; ++i)
    if (sorted[i] != i) return false;
  return true;
}

}  // namespace

Shape without_last_ones(Shape shape) {
  shape.rank = std::max<std::uint32_t>(1, shape.rank);
  while (shape.rank > 1 && shape.dims[shape.rank - 1] == 1) --shape.rank;
  return shape;
}

std::string describe(const Shape& shape) {
  if (shape.rank == 0) return "scalar";
  std::string text = std::to_string(shape.dims[0]);
  for (std::uint32_t i = 1; i < shape.rank; ++i) text += fmt::format(" x {}", shape.dims[i]);
  return text;
}

std::string_view name_of(Operation operation) {
  constexpr std::string_view kNames[] = {"extent",       "stack",     "concat",  "slice", "reshape",
                                         "reorder_rows", "transpose", "cast",    "map",   "scale_blocks",
                                         "gather",       "repack",    "constant"};
  return kNames[static_cast<std::size_t>(operation)];
}

std::span<const MapFunction> map_functions() { return kMapFunctions; }

const MapFunction* find_map_function(std::string_view name) {
  const auto found = std::ranges::find(kMapFunctions, name, &MapFunction::name);
  return found == std::end(kMapFunctions) ? nullptr : found;
}

std::span<const RepackFunction> repack_functions() { return kRepackFunctions; }

const RepackFunction* find_repack_function(std::string_view name) {
  const auto found = std::ranges::find(kRepackFunctions, name, &RepackFunction::name);
  return found == std::end(kRepackFunctions) ? nullptr : found;
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
  if (expression.operation == Operation::kScaleBlocks)
    key += fmt::format("@{}x{}", expression.block[0], expression.block[1]);
  if (expression.repack) key += fmt::format("@{}", expression.repack->name);
  for (const float value : expression.values) key += fmt::format(" {:x}", std::bit_cast<std::uint32_t>(value));
  if (expression.inputs.empty()) return key;
  key += "(";
  for (const ExpressionRef& input : expression.inputs) key += key_of(*input, name_of_source) + ";";
  return key + ")";
}

namespace expressions {

Result<ExpressionRef> extent(const TypeInfo& type, const Shape& shape, Extent extent) {
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

Result<ExpressionRef> stack(std::vector<ExpressionRef> inputs) {
  BOOST_OUTCOME_TRY(check_alike(Operation::kStack, inputs, 4));
  for (const ExpressionRef& input : inputs)
    if (input->shape.rank != inputs[0]->shape.rank || input->shape.rank >= 4)
      return broken(Operation::kStack, "inputs must have the same rank, from 1 to 3");
  Expression node = node_of(Operation::kStack, std::move(inputs));
  node.shape.dims[node.shape.rank++] = node.inputs.size();
  return made(std::move(node));
}

Result<ExpressionRef> concat(std::vector<ExpressionRef> inputs, std::uint32_t axis) {
  BOOST_OUTCOME_TRY(check_alike(Operation::kConcat, inputs, axis));
  if (axis >= inputs[0]->shape.rank)
    return broken(Operation::kConcat, fmt::format("{} has no dimension {}", describe(inputs[0]->shape), axis));
  if (inputs.size() == 1) return inputs[0];
  Expression node = node_of(Operation::kConcat, std::move(inputs));
  node.axis = axis;
  node.shape.dims[axis] = 0;
  for (const ExpressionRef& input : node.inputs)
    if (__builtin_add_overflow(node.shape.dims[axis], input->shape.dims[axis], &node.shape.dims[axis]))
      return broken(Operation::kConcat, "the dimension would exceed 2^64");
  return made(std::move(node));
}

Result<ExpressionRef> slice(ExpressionRef input, std::uint32_t axis, std::uint64_t first, std::uint64_t count) {
  const Shape& shape = input->shape;
  if (axis >= shape.rank || first > shape.dims[axis] || count > shape.dims[axis] - first)
    return broken(Operation::kSlice,
                  fmt::format("{} from {} of dimension {} are outside {}", count, first, axis, describe(shape)));
  const std::uint64_t block = input->type->block_elements;
  if (axis == 0 && (first % block != 0 || count % block != 0))
    return broken(Operation::kSlice, fmt::format("columns {} to {} split a block of {} of {}", first, first + count,
                                                 input->type->name, block));
  if (count == shape.dims[axis]) return input;
  Expression node = node_of(Operation::kSlice, {std::move(input)});
  node.axis = axis;
  node.first = first;
  node.shape.dims[axis] = count;
  return made(std::move(node));
}

Result<ExpressionRef> reshape(ExpressionRef input, const Shape& shape) {
  if (shape == input->shape) return input;
  BOOST_OUTCOME_TRY(check_shape(Operation::kReshape, *input->type, shape));
  if (shape.elements() != input->shape.elements())
    return broken(Operation::kReshape, fmt::format("{} have {} elements, {} have {}", describe(input->shape),
                                                   input->shape.elements(), describe(shape), shape.elements()));
  if (const Extent* bytes = input->as_extent()) return extent(*input->type, shape, *bytes);
  if (input->operation == Operation::kReshape) input = input->inputs[0];
  if (shape == input->shape) return input;
  Expression node = node_of(Operation::kReshape, {std::move(input)});
  node.shape = shape;
  return made(std::move(node));
}

Result<ExpressionRef> reorder_rows(ExpressionRef input, std::vector<std::uint64_t> factors,
                                   std::vector<std::uint32_t> order) {
  std::uint64_t rows = 1;
  for (const std::uint64_t factor : factors)
    if (__builtin_mul_overflow(rows, factor, &rows)) rows = 0;
  if (rows != input->shape.dims[1] || rows == 0)
    return broken(Operation::kReorderRows,
                  fmt::format("{} rows are not a grid of {}", input->shape.dims[1], fmt::join(factors, " x ")));
  if (!is_order(order, factors.size()))
    return broken(Operation::kReorderRows,
                  fmt::format("{} is not a permutation of {} axes", fmt::join(order, ", "), factors.size()));
  if (std::ranges::is_sorted(order)) return input;
  Expression node = node_of(Operation::kReorderRows, {std::move(input)});
  node.factors = std::move(factors);
  node.order = std::move(order);
  return made(std::move(node));
}

Result<ExpressionRef> transpose(ExpressionRef input, std::vector<std::uint32_t> order) {
  if (!is_order(order, input->shape.rank))
    return broken(Operation::kTranspose, fmt::format("{} is not a permutation of the dimensions of {}",
                                                     fmt::join(order, ", "), describe(input->shape)));
  if (std::ranges::is_sorted(order)) return input;
  if (order[0] != 0 && input->type->block_elements != 1)
    return broken(Operation::kTranspose,
                  fmt::format("blocks of {} run along the rows and cannot be transposed", input->type->name));
  Expression node = node_of(Operation::kTranspose, {std::move(input)});
  for (std::size_t d = 0; d < order.size(); ++d) node.shape.dims[d] = node.inputs[0]->shape.dims[order[d]];
  node.order = std::move(order);
  return made(std::move(node));
}

Result<ExpressionRef> cast(ExpressionRef input, const TypeInfo& type) {
  if (input->type == &type) return input;
  if (type.type_class == TypeClass::kInteger || is_source_type(type))
    return broken(Operation::kCast, fmt::format("conversion to {} is not supported", type.name));
  Expression node = node_of(Operation::kCast, {std::move(input)});
  node.type = &type;
  return made(std::move(node));
}

Result<ExpressionRef> map(ExpressionRef input, const MapFunction& function, float parameter) {
  if (!input->type->is_f32())
    return broken(Operation::kMap, fmt::format("the input is {}, not F32", input->type->name));
  Expression node = node_of(Operation::kMap, {std::move(input)});
  node.map = &function;
  node.parameter = parameter;
  return made(std::move(node));
}

Result<ExpressionRef> scale_blocks(ExpressionRef input, ExpressionRef scales, std::uint64_t columns, std::uint64_t rows,
                                   ExpressionRef offsets) {
  if (columns == 0 || rows == 0)
    return broken(Operation::kScaleBlocks, "a block must have at least one column and one row");
  Shape needed = input->shape;
  needed.dims[0] = (needed.dims[0] + columns - 1) / columns;
  needed.dims[1] = (needed.dims[1] + rows - 1) / rows;
  std::vector<ExpressionRef> inputs{std::move(input), std::move(scales)};
  if (offsets) inputs.push_back(std::move(offsets));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]->type->is_f32())
      return broken(Operation::kScaleBlocks, fmt::format("an input is {}, not F32", inputs[i]->type->name));
    if (i > 0 && needed.dims != inputs[i]->shape.dims)
      return broken(Operation::kScaleBlocks,
                    fmt::format("{} in blocks of {} x {} need {} {}, not {}", describe(inputs[0]->shape), columns, rows,
                                describe(needed), i == 1 ? "scales" : "offsets", describe(inputs[i]->shape)));
  }
  Expression node = node_of(Operation::kScaleBlocks, std::move(inputs));
  node.block = {columns, rows};
  return made(std::move(node));
}

Result<ExpressionRef> gather(ExpressionRef input, ExpressionRef columns) {
  if (input->type->block_elements != 1)
    return broken(Operation::kGather, fmt::format("columns of {} cannot be gathered individually", input->type->name));
  if (input->shape.columns() > kGatheredColumns)
    return broken(Operation::kGather, fmt::format("rows have {} columns, more than the limit of {}",
                                                  input->shape.columns(), kGatheredColumns));
  if (columns->type->name != "I32" || columns->shape.rows() != 1)
    return broken(Operation::kGather, fmt::format("the column numbers are {} of {}, not a row of I32",
                                                  describe(columns->shape), columns->type->name));
  Expression node = node_of(Operation::kGather, {std::move(input), std::move(columns)});
  node.shape.dims[0] = node.inputs[1]->shape.columns();
  return made(std::move(node));
}

Result<ExpressionRef> repack(const RepackFunction& function, ExpressionRef first, ExpressionRef second) {
  Expression node = node_of(Operation::kRepack, {std::move(first), std::move(second)});
  node.type = &type_named(function.type);
  node.repack = &function;
  const std::uint64_t blocks = node.inputs[0]->shape.columns() / function.input_bytes[0];
  for (std::size_t i = 0; i < 2; ++i) {
    Shape expected = node.inputs[0]->shape;
    expected.dims[0] = blocks * function.input_bytes[i];
    if (!is_byte(*node.inputs[i]->type) || node.inputs[i]->shape.dims != expected.dims)
      return broken(node.operation, fmt::format("{} needs rows of {} bytes per block as input {}, not {} of {}",
                                                function.name, function.input_bytes[i], i,
                                                describe(node.inputs[i]->shape), node.inputs[i]->type->name));
  }
  node.shape.dims[0] = blocks * node.type->block_elements;
  return made(std::move(node));
}

Result<ExpressionRef> constant(const Shape& shape, std::vector<float> values) {
  Expression node;
  node.operation = Operation::kConstant;
  node.type = &type_named("F32");
  node.shape = shape;
  node.values = std::move(values);
  BOOST_OUTCOME_TRY(check_shape(node.operation, *node.type, shape));
  if (node.values.size() != shape.elements())
    return broken(node.operation, fmt::format("{} values for {}", node.values.size(), describe(shape)));
  return ExpressionRef(std::make_shared<const Expression>(std::move(node)));
}

}  // namespace expressions
}  // namespace ggufmill
