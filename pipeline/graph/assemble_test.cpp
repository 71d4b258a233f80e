// Assembles random expressions by rows and compares them with a simple implementation that defines their meaning.

#include "pipeline/graph/assemble.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/interleaved.h"
#include "tests/support/catch.h"
#include "tests/support/needs.h"

using namespace ggufmill;

namespace {

using Bytes = std::vector<std::byte>;
using Index = std::array<std::uint64_t, 4>;

const Kernels& kernels() {
  static const auto loaded = Kernels::load({{}, "reference"}).value();
  return *loaded;
}

// A source whose bytes are small finite numbers in every type.
struct World {
  SourceRef source = std::make_shared<const SourceFile>(SourceFile{"source", 1 << 22, 0, 0});
  Bytes bytes = Bytes(1 << 22);
  std::uint64_t used = 0;
  std::mt19937_64 random;

  explicit World(std::uint64_t seed) : random(seed) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3f);
  }
  std::uint64_t below(std::uint64_t limit) { return random() % limit; }
  // Returns a row of numbers below `limit`.
  ExpressionRef numbers(std::uint64_t count, std::uint64_t limit) {
    const ExpressionRef leaf = this->leaf(type_named("I32"), {1, {count, 1, 1, 1}});
    const std::span<std::byte> place(bytes.data() + leaf->extent.offset, leaf->extent.bytes);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto number = static_cast<std::int32_t>(below(limit));
      std::memcpy(place.data() + i * sizeof number, &number, sizeof number);
    }
    if (leaf->extent.big_endian) swap_words(*leaf->type, leaf->shape.columns(), place);
    return leaf;
  }
  ExpressionRef leaf(const TypeInfo& type, const Shape& shape) {
    const std::uint64_t size = bytes_of(type, shape.elements()).value();
    const Extent extent{source, used, size, below(4) == 0};
    used += size + below(3) * 8;
    REQUIRE(used <= bytes.size());
    return expressions::extent(type, shape, extent).value();
  }
};

std::uint64_t block_of(const Expression& node, Index at) {
  const std::uint64_t columns = node.shape.dims[0] / node.type->block_elements;
  return at[0] / node.type->block_elements +
         columns * (at[1] + node.shape.dims[1] * (at[2] + node.shape.dims[2] * at[3]));
}

// Returns the input and its element from which element `at` of the result is taken.
std::pair<std::size_t, Index> element_before(const Expression& node, Index at) {
  switch (node.operation) {
    case Operation::kStack: {
      const std::uint64_t input = std::exchange(at[node.shape.rank - 1], 0);
      return {input, at};
    }
    case Operation::kConcat:
      for (std::size_t i = 0;; ++i) {
        if (at[node.axis] < node.inputs[i]->shape.dims[node.axis]) return {i, at};
        at[node.axis] -= node.inputs[i]->shape.dims[node.axis];
      }
    case Operation::kSlice:
      return at[node.axis] += node.first, std::pair(std::size_t{0}, at);
    case Operation::kReshape: {
      std::uint64_t element = 0, size = 1;
      for (std::size_t d = 0; d < 4; ++d) element += at[d] * size, size *= node.shape.dims[d];
      for (std::size_t d = 0; d < 4; ++d)
        at[d] = element % node.inputs[0]->shape.dims[d], element /= node.inputs[0]->shape.dims[d];
      return {0, at};
    }
    case Operation::kReorderRows: {
      std::vector<std::uint64_t> place(node.factors.size());
      for (std::size_t i = 0; i < place.size(); ++i) {
        place[node.order[i]] = at[1] % node.factors[node.order[i]];
        at[1] /= node.factors[node.order[i]];
      }
      at[1] = 0;
      for (std::size_t i = place.size(); i-- > 0;) at[1] = at[1] * node.factors[i] + place[i];
      return {0, at};
    }
    default: {  // kTranspose
      Index before{};
      for (std::size_t d = 0; d < node.order.size(); ++d) before[node.order[d]] = at[d];
      return {0, before};
    }
  }
}

Bytes plainly(const Expression& node, const World& world);

Bytes computed(const Expression& node, const World& world) {
  std::vector<Bytes> inputs;
  for (const ExpressionRef& input : node.inputs) inputs.push_back(plainly(*input, world));
  const std::uint64_t elements = node.shape.elements();
  Bytes result(node.bytes());
  auto* results = reinterpret_cast<float*>(result.data());
  const auto* values = reinterpret_cast<const float*>(inputs[0].data());
  if (node.operation == Operation::kMap) {
    for (std::uint64_t i = 0; i < elements; ++i) results[i] = node.map->apply(values[i], node.parameter);
  } else if (node.operation == Operation::kRepack) {
    const std::byte* const both[2] = {inputs[0].data(), inputs[1].data()};
    node.repack->apply(elements / node.type->block_elements, both, result.data());
  } else if (node.operation == Operation::kInterleave) {
    const TypeInfo& type = node.type->plain ? *node.type : *node.inputs[0]->type;
    const std::uint64_t row = node.row_bytes(), blocks = node.shape.columns() / type.block_elements;
    for (std::uint64_t first = 0; first < node.shape.rows(); first += type.group_rows) {
      std::vector<const std::byte*> from;
      std::vector<std::byte*> to;
      for (std::uint64_t k = first; k < first + type.group_rows; ++k) {
        from.push_back(inputs[0].data() + k * row);
        to.push_back(result.data() + k * row);
      }
      if (node.type->plain)
        Interleaving::of(type).interleave(from, blocks, to[0]);
      else
        Interleaving::of(type).separate(from[0], blocks, to);
    }
  } else if (node.operation == Operation::kGather) {
    const std::uint64_t bytes = node.type->block_bytes, columns = node.inputs[0]->shape.columns();
    for (std::uint64_t i = 0; i < elements; ++i) {
      std::int32_t from = 0;
      std::memcpy(&from, inputs[1].data() + i % node.shape.columns() * sizeof from, sizeof from);
      const std::uint64_t element = i / node.shape.columns() * columns + static_cast<std::uint64_t>(from);
      std::memcpy(result.data() + i * bytes, inputs[0].data() + element * bytes, bytes);
    }
  } else if (node.operation == Operation::kLowRank) {
    const std::uint64_t columns = node.shape.dims[0], rows = node.shape.dims[1];
    const auto floats = [&](std::size_t input) { return reinterpret_cast<const float*>(inputs[input].data()); };
    for (std::uint64_t i = 0; i < elements; ++i) {
      const std::size_t first = inputs.size() % 2;
      double sum = first == 1 ? values[i] : 0;
      for (std::size_t p = 0; p < node.scales.size(); ++p) {
        const std::uint64_t rank = node.inputs[first + 2 * p + 1]->shape.dims[0], matrix = i / columns / rows;
        const float* const a = floats(first + 2 * p) + matrix * columns * rank + i % columns;
        const float* const b = floats(first + 2 * p + 1) + i / columns * rank;
        double product = 0;
        for (std::uint64_t k = 0; k < rank; ++k) product += static_cast<double>(b[k]) * a[k * columns];
        sum += node.scales[p] * product;
      }
      results[i] = static_cast<float>(sum);
    }
  } else if (node.operation == Operation::kLookup) {
    const auto* table = reinterpret_cast<const float*>(inputs[1].data());
    const std::uint64_t each = node.inputs[1]->shape.columns() / 256;
    for (std::uint64_t i = 0; i < elements; ++i)
      results[i] = table[std::to_integer<std::uint64_t>(inputs[0][i / each]) * each + i % each];
  } else if (node.operation == Operation::kScaleBlocks || node.operation == Operation::kAddBlocks) {
    const auto* scales = reinterpret_cast<const float*>(inputs[1].data());
    const Expression& of_scales = *node.inputs[1];
    for (std::uint64_t i = 0; i < elements; ++i) {
      const Index at{i % node.shape.dims[0], i / node.shape.dims[0] % node.shape.dims[1],
                     i / node.shape.dims[0] / node.shape.dims[1], 0};
      const std::uint64_t block = block_of(of_scales, {at[0] / node.block[0], at[1] / node.block[1], at[2], 0});
      const float offset = node.inputs.size() > 2 ? reinterpret_cast<const float*>(inputs[2].data())[block] : 0;
      results[i] =
          node.operation == Operation::kAddBlocks ? values[i] + scales[block] : (values[i] - offset) * scales[block];
    }
  } else {
    std::vector<float> decoded(elements);
    const TypeInfo& from = *node.inputs[0]->type;
    if (from.name == "F32")
      std::memcpy(decoded.data(), inputs[0].data(), inputs[0].size());
    else
      REQUIRE(run_kernel(*kernels().decode(from.id),
                         {inputs[0].data(), decoded.data(), node.shape.rows(), node.shape.columns(), nullptr}, ""));
    if (node.type->name == "F32")
      std::memcpy(result.data(), decoded.data(), result.size());
    else
      REQUIRE(run_kernel(*kernels().encode(node.type->id),
                         {decoded.data(), result.data(), node.shape.rows(), node.shape.columns(), nullptr}, ""));
  }
  return result;
}

// Computes all of an expression, element by element.
Bytes plainly(const Expression& node, const World& world) {
  if (const Extent* extent = node.as_extent()) {
    Bytes bytes(world.bytes.begin() + static_cast<std::ptrdiff_t>(extent->offset),
                world.bytes.begin() + static_cast<std::ptrdiff_t>(extent->offset + extent->bytes));
    if (extent->big_endian) swap_words(*node.type, node.shape.columns(), bytes);
    return bytes;
  }
  if (node.operation == Operation::kConstant) {
    const auto bytes = std::as_bytes(std::span(node.values));
    return {bytes.begin(), bytes.end()};
  }
  if (node.operation >= Operation::kCast) return computed(node, world);
  std::vector<Bytes> inputs;
  for (const ExpressionRef& input : node.inputs) inputs.push_back(plainly(*input, world));
  Bytes result(node.bytes());
  Index at{};
  const std::uint64_t block = node.type->block_elements, bytes = node.type->block_bytes;
  for (at[3] = 0; at[3] < node.shape.dims[3]; ++at[3])
    for (at[2] = 0; at[2] < node.shape.dims[2]; ++at[2])
      for (at[1] = 0; at[1] < node.shape.dims[1]; ++at[1])
        for (at[0] = 0; at[0] < node.shape.dims[0]; at[0] += block) {
          const auto [input, before] = element_before(node, at);
          std::memcpy(result.data() + block_of(node, at) * bytes,
                      inputs[input].data() + block_of(*node.inputs[input], before) * bytes, bytes);
        }
  return result;
}

// Makes random expressions with `depth` operations.
class RandomExpression {
 public:
  explicit RandomExpression(World& world) : world_(world) {}

  ExpressionRef make(int depth) {
    if (depth == 0) return world_.leaf(any_type(), any_shape());
    for (;;)
      if (auto node = grown(make(depth - 1))) return std::move(node).value();
  }

 private:
  const TypeInfo& any_type() {
    static constexpr const char* kTypes[] = {"F32", "F16", "BF16", "F64", "Q8_0", "Q4_0", "I8", "U8"};
    return type_named(kTypes[world_.below(std::size(kTypes))]);
  }
  Shape any_shape() {
    Shape shape{static_cast<std::uint32_t>(1 + world_.below(4)), {32 * (1 + world_.below(3)), 1, 1, 1}};
    for (std::uint32_t d = 1; d < shape.rank; ++d) shape.dims[d] = 1 + world_.below(6);
    return shape;
  }
  ExpressionRef like(const Expression& node) { return world_.leaf(*node.type, node.shape); }

  // Blocks of 7 columns and 2 rows.
  static Shape of_blocks(Shape shape) {
    shape.dims[0] = (shape.dims[0] + 6) / 7;
    shape.dims[1] = (shape.dims[1] + 1) / 2;
    return shape;
  }

  std::vector<std::uint32_t> any_order(std::size_t count) {
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), world_.random);
    return order;
  }

  Result<ExpressionRef> grown(ExpressionRef node) {
    using namespace expressions;
    const Shape shape = node->shape;
    constexpr int kLast = static_cast<int>(Operation::kLowRank);  // of those without a special condition
    const auto choice = 1 + static_cast<int>(world_.below(kLast + 2));
    switch (choice == kLast + 1   ? Operation::kAddBlocks
            : choice == kLast + 2 ? Operation::kLookup
                                  : static_cast<Operation>(choice)) {
      case Operation::kStack:
        return stack({node, like(*node), node});
      case Operation::kConcat:
        return concat({like(*node), node, like(*node)}, static_cast<std::uint32_t>(world_.below(shape.rank)));
      case Operation::kSlice: {
        const auto axis = static_cast<std::uint32_t>(world_.below(shape.rank));
        const std::uint64_t unit = axis == 0 ? node->type->block_elements : 1, all = shape.dims[axis] / unit;
        const std::uint64_t first = world_.below(all), count = 1 + world_.below(all - first);
        return slice(node, axis, first * unit, count * unit);
      }
      case Operation::kReshape: {
        Shape other{2, {node->type->block_elements * (1 + world_.below(5)), 1, 1, 1}};
        other.dims[1] = shape.elements() / other.dims[0];
        return reshape(node, other);
      }
      case Operation::kReorderRows: {
        std::vector<std::uint64_t> factors;
        std::uint64_t rows = shape.dims[1];
        for (std::uint64_t f = 2; f <= rows && factors.size() < 2; ++f)
          if (rows % f == 0) factors.push_back(f), rows /= f;
        factors.push_back(rows);
        return reorder_rows(node, factors, any_order(factors.size()));
      }
      case Operation::kTranspose:
        return transpose(node, any_order(shape.rank));
      case Operation::kCast:
        return cast(node, type_named(std::array{"F32", "F16", "BF16", "Q8_0", "Q4_0"}[world_.below(5)]));
      case Operation::kMap:
        return map(node, *find_map_function("add"), 0.25f);
      case Operation::kLowRank: {
        Shape a = shape, b = shape;
        a.rank = b.rank = std::max(shape.rank, 2u);
        a.dims[1] = b.dims[0] = 1 + world_.below(9);
        return low_rank(world_.below(4) == 0 ? nullptr : node, world_.leaf(type_named("BF16"), a),
                        world_.leaf(type_named("F32"), b), 0.25);
      }
      case Operation::kGather:
        return gather(node, world_.numbers(32 * (1 + world_.below(4)), shape.dims[0]));
      case Operation::kAddBlocks: {
        return add_blocks(node, world_.leaf(type_named("F32"), of_blocks(shape)), 7, 2);
      }
      case Operation::kLookup: {
        const auto bytes = node->type->name == "U8" ? node : world_.leaf(type_named("U8"), shape);
        return lookup(bytes, world_.leaf(type_named("F32"), {1, {256 * (1 + world_.below(3)), 1, 1, 1}}));
      }
      default: {
        const Shape scales = of_blocks(shape);
        return scale_blocks(node, world_.leaf(type_named("F32"), scales), 7, 2,
                            scales.rows() % 2 == 0 ? world_.leaf(type_named("F32"), scales) : nullptr);
      }
    }
  }

  World& world_;
};

// Computes rows of an expression as an engine does.
Bytes by_rows(const Expression& expression, std::uint64_t first, std::uint64_t rows, const World& world) {
  const Box box = box_of_rows(expression.shape, first, rows);
  ReadRanges read(ranges_of(expression, box));
  const ReadBound bound = read_bound(expression, {expression.shape.columns(), rows, 1, 1});
  CHECK(read.bytes() <= bound.bytes);
  CHECK(read.ranges().size() <= bound.ranges);
  Bytes memory(read.bytes());
  read.set_memory(memory);
  for (std::size_t i = 0; i < read.ranges().size(); ++i)
    std::memcpy(read.memory(i).data(), world.bytes.data() + read.ranges()[i].offset, read.ranges()[i].bytes);
  Bytes result(rows * expression.row_bytes());
  const Status status = assemble(expression, box, read, kernels(), "t", result);
  REQUIRE(status);
  return result;
}

void check(const Expression& expression, World& world) {
  INFO(key_of(expression));
  const Bytes expected = plainly(expression, world);
  const std::uint64_t matrix = expression.shape.dims[1];
  Bytes made;
  for (std::uint64_t row = 0; row < expression.shape.rows();) {
    const std::uint64_t rows = std::min(1 + world.below(5), matrix - row % matrix);
    const Bytes part = by_rows(expression, row, rows, world);
    made.insert(made.end(), part.begin(), part.end());
    row += rows;
  }
  const bool same = made == expected;
  CHECK(same);
}

}  // namespace

TEST_CASE("random expressions by rows are what they mean, and read no more than their bound") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    World world(seed);
    CAPTURE(seed);
    check(*RandomExpression(world).make(static_cast<int>(seed % 5)), world);
  }
}

TEST_CASE("what is read of scattered rows and of cut parts has its bound") {
  World world(6);
  const TypeInfo &f32 = type_named("F32"), &f16 = type_named("F16");
  // Rows far from each other have different scales.
  const auto values = world.leaf(f32, {2, {3, 128, 1, 1}}), scales = world.leaf(f32, {2, {1, 2, 1, 1}});
  const auto scaled = expressions::scale_blocks(values, scales, 3, 64).value();
  check(*expressions::reorder_rows(scaled, {2, 64}, {1, 0}).value(), world);
  // Half a block of columns needs one block out of two, not both.
  const auto wide = expressions::cast(world.leaf(type_named("Q8_0"), {2, {64, 6, 1, 1}}), f32).value();
  check(*expressions::slice(wide, 0, 0, 25).value(), world);
  const auto joined =
      expressions::concat({world.leaf(f16, {2, {5, 45, 1, 1}}), world.leaf(f16, {2, {5, 45, 1, 1}})}, 0);
  check(*expressions::slice(joined.value(), 0, 3, 5).value(), world);
}

TEST_CASE("rows longer than what is computed at a time are the same") {
  World world(1);
  const Shape shape{2, {40000, 3, 1, 1}};
  auto node = expressions::cast(world.leaf(type_named("BF16"), shape), type_named("F32")).value();
  node = expressions::map(node, *find_map_function("add"), 1).value();
  check(*expressions::cast(node, type_named("Q8_0")).value(), world);
}

TEST_CASE("a sum with products of low rank is the same however long its rows are") {
  World world(1);
  const TypeInfo &f32 = type_named("F32"), &bf16 = type_named("BF16");
  for (const std::uint64_t rank : {1, 7, 300}) {
    const auto wide = world.leaf(bf16, {2, {5000, 3, 1, 1}}), a = world.leaf(bf16, {2, {5000, rank, 1, 1}}),
               b = world.leaf(f32, {2, {rank, 3, 1, 1}});
    const auto one = expressions::low_rank(wide, a, b, 0.7).value();
    check(*expressions::low_rank(one, a, b, -0.3).value(), world);
  }
}

TEST_CASE("the rows of query heads are permuted as llama's are") {
  World world(2);
  const auto heads = world.leaf(type_named("BF16"), {2, {64, 4 * 2 * 8, 1, 1}});
  const auto permuted =
      expressions::reorder_rows(heads, {8, 2, 4}, {1, 0, 2}).value();  // interleaves the halves of a head
  check(*permuted, world);
  const Bytes rows = by_rows(*permuted, 0, 3, world), plain = plainly(*heads, world);
  CHECK(std::memcmp(rows.data(), plain.data(), 128) == 0);
  CHECK(std::memcmp(rows.data() + 128, plain.data() + 8 * 128, 128) == 0);
  CHECK(std::memcmp(rows.data() + 256, plain.data() + 128, 128) == 0);
}

TEST_CASE("blocks of MXFP4 are put together from neighbours and exponents") {
  World world(3);
  const auto pairs = world.leaf(type_named("I8"), {2, {48, 4, 1, 1}}),
             scales = world.leaf(type_named("I8"), {2, {3, 4, 1, 1}});
  check(*expressions::repack(*find_repack_function("mxfp4"), pairs, scales).value(), world);
}

TEST_CASE("rows are interleaved and separated whichever rows are asked for") {
  GGUFMILL_NEEDS("Q4_K_R4");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(seed);
    for (const char* name : {"Q8_0_R8", "Q4_K_R4", "IQ3_XXS_R4"}) {
      const TypeInfo& type = *Types().find(name);
      const Shape shape{3, {2 * type.block_elements, 16, 3, 1}};
      const ExpressionRef plain = world.leaf(*type.plain, shape);
      const ExpressionRef made = expressions::interleave(plain, type).value();
      check(*made, world);
      Extent extent = plain->extent;
      extent.big_endian = false;
      const ExpressionRef separated = expressions::plain_rows(expressions::extent(type, shape, extent).value()).value();
      check(*separated, world);
      check(*expressions::slice(separated, 1, 3, 9).value(), world);
      check(*expressions::transpose(expressions::cast(separated, type_named("F32")).value(), {1, 0, 2}).value(), world);
    }
  }
}

TEST_CASE("interleaving and separating cancel each other, and other operations refuse interleaved rows") {
  GGUFMILL_NEEDS("Q4_K_R4");
  World world(1);
  const TypeInfo& type = *Types().find("Q4_K_R4");
  const ExpressionRef plain = world.leaf(*type.plain, {2, {256, 8, 1, 1}});
  const ExpressionRef made = expressions::interleave(plain, type).value();
  CHECK(expressions::plain_rows(made).value() == plain);
  CHECK_FALSE(expressions::slice(made, 1, 0, 4));
  CHECK_FALSE(expressions::concat({made, made}, 1));
  CHECK_FALSE(expressions::interleave(made, *Types().find("Q5_K_R4")));
  CHECK(expressions::cast(made, type_named("F32")).value()->inputs[0] == plain);
  CHECK(expressions::stack({made, made}).value()->type == &type);
  CHECK_FALSE(expressions::interleave(world.leaf(*type.plain, {2, {256, 6, 1, 1}}), type));
}

TEST_CASE("columns are gathered by index, and an invalid index is an error") {
  World world(5);
  const auto values = world.leaf(type_named("F16"), {2, {3, 4, 1, 1}});
  const auto numbers = world.numbers(10000, 3);
  const auto node = expressions::gather(values, numbers).value();
  check(*node, world);
  const Box box = box_of_rows(node->shape, 1, 1);
  ReadRanges read(ranges_of(*node, box));
  Bytes memory(read.bytes()), result(node->row_bytes());
  read.set_memory(memory);
  for (const auto& [number, what] : {std::pair(3, "3"), std::pair(-1, "-1")}) {
    for (std::size_t i = 0; i < read.ranges().size(); ++i)
      std::memset(read.memory(i).data(), 0, read.ranges()[i].bytes);
    const std::size_t last = read.ranges().size() - 1;
    const auto entry = static_cast<std::int32_t>(
        numbers->extent.big_endian ? __builtin_bswap32(static_cast<unsigned>(number)) : number);
    std::memcpy(read.memory(last).data() + 9000 * sizeof entry, &entry, sizeof entry);
    const Status status = assemble(*node, box, read, kernels(), "t", result);
    REQUIRE(!status);
    CHECK(status.error().code == ExitCode::kBadInput);
    CHECK(status.error().what == std::string("tensor 't': column 9000 takes entry ") + what + " of a table of 3");
  }
}

TEST_CASE("constants need no source") {
  World world(4);
  const auto constant = expressions::constant({1, {4, 1, 1, 1}}, {1, 2, 3, 4}).value();
  CHECK(ranges_of(*constant, box_of_rows(constant->shape, 0, 1)).empty());
  check(*expressions::stack({constant, constant}).value(), world);
}
