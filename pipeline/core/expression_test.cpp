#include "pipeline/core/expression.h"

#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::expressions;

namespace {

const TypeInfo& type(const char* name) { return type_named(name); }

ExpressionRef leaf(const char* name, std::vector<std::uint64_t> dims, std::uint64_t offset = 0) {
  Shape shape{static_cast<std::uint32_t>(dims.size()), {1, 1, 1, 1}};
  std::copy(dims.begin(), dims.end(), shape.dims.begin());
  static const auto source = std::make_shared<const SourceFile>(SourceFile{"model", 1ull << 40, 0, 0});
  return extent(type(name), shape, {source, offset, bytes_of(type(name), shape.elements()).value()}).value();
}

std::string shape(const Result<ExpressionRef>& expression) {
  return expression ? describe(expression.value()->shape) : expression.error().what;
}

}  // namespace

TEST_CASE("an extent has the bytes of its type and shape, within its source") {
  const auto source = std::make_shared<const SourceFile>(SourceFile{"model", 100, 0, 0});
  const Shape four{1, {4, 1, 1, 1}};
  CHECK(extent(type("F32"), four, {source, 84, 16}));
  CHECK(shape(extent(type("F32"), four, {source, 85, 16})) ==
        "extent: 16 bytes at byte 0x55 are beyond the 100 bytes of the file");
  CHECK(shape(extent(type("F32"), four, {source, 0, 15})) == "extent: 4 of F32 are 16 bytes, not 15");
  CHECK(shape(extent(type("Q8_0"), four, {source, 0, 17})) ==
        "extent: rows of 4 elements are not a multiple of the block size 32 of Q8_0");
}

TEST_CASE("a stack adds one dimension to inputs of equal type and shape") {
  CHECK(shape(stack({leaf("F16", {8, 3}), leaf("F16", {8, 3})})) == "8 x 3 x 2");
  CHECK(shape(stack({leaf("F16", {8, 3}), leaf("F16", {8, 4})})) == "stack: inputs are 8 x 3 and 8 x 4");
  CHECK(shape(stack({leaf("F16", {8, 3}), leaf("F32", {8, 3})})) == "stack: inputs are F16 and F32");
  CHECK(shape(stack({})) == "stack: there are no inputs");
  CHECK(shape(stack({leaf("F16", {2, 2, 2, 2})})) == "stack: inputs must have the same rank, from 1 to 3");
}

TEST_CASE("an expression that doubles itself is refused before it becomes too large to walk over") {
  Result<ExpressionRef> doubled = leaf("F16", {8, 1});
  for (int i = 0; i < 24 && doubled; ++i) doubled = concat({doubled.value(), doubled.value()}, 1);
  CHECK(shape(doubled) == "concat: a tensor is made by more than 262144 operations, or by more than 1024 in a row");
}

TEST_CASE("a chain of operations is refused before it becomes too deep to walk down") {
  Result<ExpressionRef> chain = leaf("F32", {8, 2});
  for (int i = 0; i < 2000 && chain; ++i) chain = concat({chain.value(), leaf("F32", {8, 1})}, 1);
  CHECK_FALSE(chain);
}

TEST_CASE("expressions have the same values if they do the same to the same bytes, whatever their nodes") {
  const auto made = [](std::uint64_t offset) { return slice(leaf("F16", {8, 3}, offset), 1, 1, 2).value(); };
  CHECK(has_same_values(*made(0), *made(0)));
  CHECK_FALSE(has_same_values(*made(0), *made(48)));
  CHECK_FALSE(has_same_values(*made(0), *slice(leaf("F16", {8, 3}), 1, 0, 2).value()));
  CHECK_FALSE(has_same_values(*made(0), *leaf("F16", {8, 2}, 16)));
}

TEST_CASE("concatenation adds up one dimension") {
  CHECK(shape(concat({leaf("F16", {8, 3}), leaf("F16", {8, 5})}, 1)) == "8 x 8");
  CHECK(shape(concat({leaf("Q8_0", {32, 3}), leaf("Q8_0", {64, 3})}, 0)) == "96 x 3");
  CHECK(shape(concat({leaf("F16", {8, 3}), leaf("F16", {9, 5})}, 1)) == "concat: inputs are 8 x 3 and 9 x 5");
  CHECK(shape(concat({leaf("F16", {8})}, 1)) == "concat: 8 has no dimension 1");
}

TEST_CASE("a slice is within its dimension and does not split a block") {
  CHECK(shape(slice(leaf("F16", {8, 3}), 1, 1, 2)) == "8 x 2");
  CHECK(shape(slice(leaf("Q8_0", {96, 3}), 0, 32, 64)) == "64 x 3");
  CHECK(shape(slice(leaf("Q8_0", {96, 3}), 0, 16, 64)) == "slice: columns 16 to 80 split a block of Q8_0 of 32");
  CHECK(shape(slice(leaf("F16", {8, 3}), 1, 2, 2)) == "slice: 2 from 2 of dimension 1 are outside 8 x 3");
  CHECK(shape(slice(leaf("F16", {8, 3}), 2, 0, 1)) == "slice: 1 from 0 of dimension 2 are outside 8 x 3");
}

TEST_CASE("a reshaped extent is an extent with the same number of elements") {
  const auto reshaped = reshape(leaf("F16", {8, 3}), {1, {24, 1, 1, 1}});
  REQUIRE(reshaped);
  CHECK(reshaped.value()->as_extent() != nullptr);
  CHECK(shape(reshape(leaf("F16", {8, 3}), {1, {25, 1, 1, 1}})) == "reshape: 8 x 3 have 24 elements, 25 have 25");
  CHECK(shape(reshape(leaf("Q8_0", {32, 3}), {2, {48, 2, 1, 1}})) ==
        "reshape: rows of 48 elements are not a multiple of the block size 32 of Q8_0");
}

TEST_CASE("rows are reordered as a grid") {
  CHECK(shape(reorder_rows(leaf("Q8_0", {32, 12}), {3, 2, 2}, {0, 2, 1})) == "32 x 12");
  CHECK(shape(reorder_rows(leaf("F16", {8, 12}), {5, 2}, {1, 0})) == "reorder_rows: 12 rows are not a grid of 5 x 2");
  CHECK(shape(reorder_rows(leaf("F16", {8, 12}), {6, 2}, {1, 1})) ==
        "reorder_rows: 1, 1 is not a permutation of 2 axes");
}

TEST_CASE("a transpose swaps the dimensions of shape and values, but is refused for blocks along the rows") {
  CHECK(shape(transpose(leaf("F16", {8, 3, 2}), {1, 0, 2})) == "3 x 8 x 2");
  CHECK(shape(transpose(leaf("Q8_0", {32, 3, 2}), {0, 2, 1})) == "32 x 2 x 3");
  CHECK(shape(transpose(leaf("Q8_0", {32, 3}), {1, 0})) ==
        "transpose: blocks of Q8_0 run along the rows and cannot be transposed");
  CHECK(shape(transpose(leaf("F16", {8, 3}), {0})) == "transpose: 0 is not a permutation of the dimensions of 8 x 3");
}

TEST_CASE("numeric types can be cast, but not to source-only types") {
  CHECK(cast(leaf("BF16", {8, 3}), type("F16")).value()->type == &type("F16"));
  CHECK(cast(leaf("I32", {8}), type("F32")).value()->type == &type("F32"));
  CHECK(cast(leaf("F8_E4M3", {8}), type("BF16")).value()->type == &type("BF16"));
  CHECK(cast(leaf("F32", {8}), type("I64")).value()->type == &type("I64"));
  CHECK(shape(cast(leaf("F32", {8}), type("F8_E5M2"))) == "cast: conversion to F8_E5M2 is not supported");
  CHECK(shape(cast(leaf("F16", {8}), type("Q8_0"))) ==
        "cast: rows of 8 elements are not a multiple of the block size 32 of Q8_0");
}

TEST_CASE("the matrices of a product of low rank must fit each other and the tensor") {
  CHECK(shape(low_rank(leaf("BF16", {300, 130, 4}), leaf("F16", {300, 8, 4}), leaf("F32", {8, 130, 4}), 2)) ==
        "300 x 130 x 4");
  CHECK(shape(low_rank(nullptr, leaf("F16", {300, 8}), leaf("F32", {8, 130}), 2)) == "300 x 130");
  CHECK(shape(low_rank(nullptr, leaf("F16", {300, 8}), leaf("F32", {4, 130}), 2)) ==
        "low_rank: A of 300 x 8 and B of 4 x 130 do not have the same rank");
  CHECK(shape(low_rank(leaf("F32", {300, 131}), leaf("F16", {300, 8}), leaf("F32", {8, 130}), 2)) ==
        "low_rank: the product of A of 300 x 8 and B of 8 x 130 is 300 x 130, but the tensor is 300 x 131");
  CHECK(shape(low_rank(nullptr, leaf("F16", {300, 5000}), leaf("F32", {5000, 130}), 2)) ==
        "low_rank: a rank of 5000 is above the limit of 4096");
}

TEST_CASE("functions and scales need F32, and scales must cover the values") {
  const MapFunction& add = *find_map_function("add");
  CHECK(map(leaf("F32", {8}), add, 1));
  CHECK(shape(map(leaf("F16", {8}), add, 1)) == "map: the input is F16, not F32");
  CHECK(shape(scale_blocks(leaf("F32", {300, 130}), leaf("F32", {3, 2}), 128, 128)) == "300 x 130");
  CHECK(shape(scale_blocks(leaf("F32", {300, 130}), leaf("F32", {2, 2}), 128, 128)) ==
        "scale_blocks: 300 x 130 in blocks of 128 x 128 need 3 x 2 scales, not 2 x 2");
  CHECK(shape(scale_blocks(leaf("F32", {300, 130}), leaf("F32", {3, 2}), 128, 128, leaf("F32", {3, 1}))) ==
        "scale_blocks: 300 x 130 in blocks of 128 x 128 need 3 x 2 offsets, not 3 x 1");
  CHECK(shape(add_blocks(leaf("F32", {300, 130}), leaf("F32", {3, 2}), 128, 128)) == "300 x 130");
  CHECK(shape(add_blocks(leaf("F32", {300, 130}), leaf("F32", {2, 2}), 128, 128)) ==
        "add_blocks: 300 x 130 in blocks of 128 x 128 need 3 x 2 addends, not 2 x 2");
}

TEST_CASE("bytes are looked up in a table with the same number of values for each") {
  CHECK(shape(lookup(leaf("U8", {32, 5}), leaf("F32", {256}))) == "32 x 5");
  CHECK(shape(lookup(leaf("U8", {32, 5}), leaf("F32", {512}))) == "64 x 5");
  CHECK(shape(lookup(leaf("I8", {32, 5}), leaf("F32", {512}))) == "lookup: the bytes are I8, not U8");
  CHECK(shape(lookup(leaf("U8", {32, 5}), leaf("F32", {500}))) ==
        "lookup: the table is 500 of F32, not one row of F32 for 256 bytes");
}

TEST_CASE("columns are gathered by the numbers in an I32 row") {
  CHECK(shape(gather(leaf("F16", {3, 5}), leaf("I32", {8}))) == "8 x 5");
  CHECK(shape(gather(leaf("Q8_0", {32, 5}), leaf("I32", {8}))) ==
        "gather: columns of Q8_0 cannot be gathered individually");
  CHECK(shape(gather(leaf("F16", {16385, 5}), leaf("I32", {8}))) ==
        "gather: rows have 16385 columns, more than the limit of 16384");
  CHECK(shape(gather(leaf("F16", {3, 5}), leaf("I64", {8}))) ==
        "gather: the column numbers are 8 of I64, not a row of I32");
  CHECK(shape(gather(leaf("F16", {3, 5}), leaf("I32", {8, 2}))) ==
        "gather: the column numbers are 8 x 2 of I32, not a row of I32");
}

TEST_CASE("repacked blocks take the right number of bytes from each input") {
  const RepackFunction& mxfp4 = *find_repack_function("mxfp4");
  CHECK(shape(repack(mxfp4, leaf("I8", {48, 5}), leaf("I8", {3, 5}))) == "96 x 5");
  CHECK(shape(repack(mxfp4, leaf("I8", {48, 5}), leaf("I8", {4, 5}))) ==
        "repack: mxfp4 needs rows of 1 bytes per block as input 1, not 4 x 5 of I8");
}

TEST_CASE("keys are equal only for equal expressions") {
  const auto one = stack({leaf("F16", {8, 3}), leaf("F16", {8, 3}, 64)}).value();
  CHECK(key_of(*one) == key_of(*stack({leaf("F16", {8, 3}), leaf("F16", {8, 3}, 64)}).value()));
  CHECK(key_of(*one) != key_of(*stack({leaf("F16", {8, 3}), leaf("F16", {8, 3}, 65)}).value()));
  CHECK(key_of(*one) != key_of(*concat({leaf("F16", {8, 3}), leaf("F16", {8, 3}, 64)}, 1).value()));
}

TEST_CASE("the exponential is the nearest float") {
  const auto negate_exp = find_map_function("negate_exp")->apply;
  CHECK(negate_exp(0.0f, 0) == -1.0f);
  CHECK(negate_exp(-200.0f, 0) == 0.0f);
  CHECK(negate_exp(1.0f, 0) == -2.7182817459106445f);
  CHECK(negate_exp(3.08999968f, 0) == -21.9770718f);
}
