// Tests of tensor operations, against moving the elements individually.
#include "stages/huggingface/map/tensor_operations.h"
#include "stages/huggingface/checkpoint/named_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/json/parse.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "pipeline/io/source_path.h"
#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
namespace json = boost::json;

namespace {

Shape shape_of(std::initializer_list<std::uint64_t> dims) {
  Shape shape;
  for (const std::uint64_t dim : dims) shape.dims[shape.rank++] = dim;
  return shape;
}

// Returns a tensor whose element i is i.
ExpressionRef counted(std::initializer_list<std::uint64_t> dims) {
  const Shape shape = shape_of(dims);
  std::vector<float> values(shape.elements());
  std::iota(values.begin(), values.end(), 0.0f);
  return expressions::constant(shape, std::move(values)).value();
}

Result<ExpressionRef> apply(std::string_view name, ExpressionRef input, const std::string& arguments) {
  const auto found = std::ranges::find(tensor_operations(), name, &TensorOperation::name);
  REQUIRE(found != tensor_operations().end());
  const json::array values = json::parse(arguments).as_array();
  CHECK(values.size() >= found->least);
  CHECK(values.size() <= found->most);
  return found->apply(std::move(input), {values.data(), values.size()});
}

std::string fault(std::string_view name, ExpressionRef input, const std::string& arguments) {
  const auto result = apply(name, std::move(input), arguments);
  return result ? "" : result.error().what;
}

Result<ExpressionRef> make(std::string_view name, const std::string& arguments) {
  const json::array values = json::parse(arguments).as_array();
  return std::ranges::find(tensor_functions(), name, &TensorFunction::name)->make({values.data(), values.size()});
}

// Checks the result's dimensions, and that its element at (x, y, z, w) is element `from(x, y, z, w)` of the input.
using From = std::function<std::uint64_t(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t)>;
void check(std::string_view name, ExpressionRef input, const std::string& arguments,
           std::initializer_list<std::uint64_t> dims, const From& from) {
  const auto result = apply(name, std::move(input), arguments);
  CAPTURE(name, arguments, result ? "" : result.error().what);
  REQUIRE(result);
  const Shape shape = shape_of(dims);
  CHECK(describe(result.value()->shape) == describe(shape));
  std::vector<float> expected;
  for (std::uint64_t w = 0; w < shape.dims[3]; ++w)
    for (std::uint64_t z = 0; z < shape.dims[2]; ++z)
      for (std::uint64_t y = 0; y < shape.dims[1]; ++y)
        for (std::uint64_t x = 0; x < shape.dims[0]; ++x) expected.push_back(static_cast<float>(from(x, y, z, w)));
  CHECK(expression_values(*result.value()) == expected);
}

const From kSame = [](auto x, auto, auto, auto) { return x; };

}  // namespace

TEST_CASE("a number of rows is checked") {
  const ExpressionRef input = counted({4, 3});
  CHECK(apply("of_rows", input, "[3]").value() == input);
  CHECK(fault("of_rows", input, "[4]") == "it has 3 rows, expected 4");
}

TEST_CASE("numbers take the place of a tensor") {
  CHECK(expression_values(*apply("numbers", counted({2}), "[[1, 0.5, -2]]").value()) == std::vector<float>{1, 0.5, -2});
  CHECK(fault("numbers", counted({2}), "[[]]") == "'[]' is not a list of numbers");
  CHECK(fault("numbers", counted({2}), "[3]") == "'3' is not a list of numbers");
}

TEST_CASE("a number of columns is checked") {
  const ExpressionRef input = counted({4, 3});
  CHECK(apply("of_columns", input, "[4]").value() == input);
  CHECK(fault("of_columns", input, "[3]") == "it has rows of 4 values, expected 3");
}

TEST_CASE("halves of heads become pairs") {
  // Two heads of six rows: rows 0, 3, 1, 4, 2, 5 of each.
  check("pair_halves", counted({2, 12}), "[2]", {2, 12}, [](auto x, auto y, auto, auto) {
    const auto head = y / 6, row = y % 6;
    return (head * 6 + row / 2 + row % 2 * 3) * 2 + x;
  });
  check("pair_halves", counted({12}), "[2]", {12}, [](auto x, auto, auto, auto) {
    const auto head = x / 6, row = x % 6;
    return head * 6 + row / 2 + row % 2 * 3;
  });
  check("pair_halves", counted({2, 12}), "[2, 8]", {2, 12}, [](auto x, auto y, auto, auto) {
    const auto head = y / 4, row = y % 4;
    return (y < 8 ? head * 4 + row / 2 + row % 2 * 2 : y) * 2 + x;
  });
  CHECK(fault("pair_halves", counted({2, 12}), "[4]") ==
        "12 rows cannot be split into 4 heads with an even number of rows");
  CHECK(fault("pair_halves", counted({2, 12}), "[0]") ==
        "12 rows cannot be split into 0 heads with an even number of rows");
  CHECK(fault("pair_halves", counted({2, 12}), "[-1]") == "'-1' is not an integer from 0 to 2^63 - 1");
  CHECK(fault("pair_halves", counted({2, 12}), "[9223372036854775808]") ==
        "'9223372036854775808' is not an integer from 0 to 2^63 - 1");
}

TEST_CASE("pairs at the beginning of heads become halves") {
  // Two heads of five rows, four of them in pairs: rows 0, 2, 1, 3, 4 of each.
  const std::uint64_t order[] = {0, 2, 1, 3, 4};
  check("split_pairs", counted({3, 10}), "[2, 4]", {3, 10},
        [&](auto x, auto y, auto, auto) { return (y / 5 * 5 + order[y % 5]) * 3 + x; });
  check("split_pairs", counted({10}), "[2, 4]", {10},
        [&](auto x, auto, auto, auto) { return x / 5 * 5 + order[x % 5]; });
  CHECK(fault("split_pairs", counted({3, 10}), "[2, 6]") ==
        "10 rows cannot be split into 2 heads with 6 rows of pairs");
  CHECK(fault("split_pairs", counted({3, 10}), "[0, 2]") ==
        "10 rows cannot be split into 0 heads with 2 rows of pairs");
}

TEST_CASE("rows of a grid are reordered") {
  check("reorder_rows", counted({2, 6}), "[[3, 2], [1, 0]]", {2, 6},
        [](auto x, auto y, auto, auto) { return (y / 2 + y % 2 * 3) * 2 + x; });
  CHECK(fault("reorder_rows", counted({2, 6}), "[[4, 2], [1, 0]]").find("6 rows are not a grid of 4 x 2") !=
        std::string::npos);
  CHECK(fault("reorder_rows", counted({2, 6}), "[[3, 2], [1, 4294967296]]").find("is not a permutation of 2 axes") !=
        std::string::npos);
  CHECK(fault("reorder_rows", counted({2, 6}), "[3, 2]") == "reorder_rows takes two lists");
}

TEST_CASE("dimensions are swapped, split, joined, and dropped") {
  check("transpose", counted({2, 3}), "[]", {3, 2}, [](auto x, auto y, auto, auto) { return x * 2 + y; });
  check("transpose", counted({2, 3, 4}), "[]", {3, 2, 4},
        [](auto x, auto y, auto z, auto) { return (z * 3 + x) * 2 + y; });
  check("transpose", counted({2, 3, 4}), "[[0, 2, 1]]", {2, 4, 3},
        [](auto x, auto y, auto z, auto) { return (y * 3 + z) * 2 + x; });
  check("reshape", counted({2, 6}), "[[4, 3]]", {4, 3}, [](auto x, auto y, auto, auto) { return y * 4 + x; });
  check("grid", counted({2, 6}), "[3, 2]", {2, 3, 2}, [](auto x, auto y, auto z, auto) { return (z * 3 + y) * 2 + x; });
  check("rows", counted({2, 3, 2}), "[]", {2, 6}, [](auto x, auto y, auto, auto) { return y * 2 + x; });
  check("rows", counted({1, 3, 2}), "[]", {6}, kSame);
  check("flatten", counted({2, 3}), "[]", {6}, kSame);
  check("squeeze", counted({1, 3, 1, 2}), "[]", {3, 2}, [](auto x, auto y, auto, auto) { return y * 3 + x; });
  check("squeeze", counted({1, 1}), "[]", {1}, kSame);
  CHECK(fault("reshape", counted({2, 6}), "[[5, 2]]") != "");
  CHECK(fault("reshape", counted({2, 6}), "[[1, 2, 3, 1, 2]]") == "reshape takes a list of one to four dimensions");
  CHECK(fault("reshape", counted({2, 6}), "[[4294967296, 4294967296, 4294967296]]") != "");
  CHECK(fault("grid", counted({2, 6}), "[0, 2]") != "");
  CHECK(fault("transpose", counted({6}), "[]") != "");
  CHECK(fault("transpose", counted({2, 6}), "[[1, 4294967296]]") != "");
}

TEST_CASE("parts of a dimension") {
  check("slice", counted({4, 3}), "[0, 1, 2]", {2, 3}, [](auto x, auto y, auto, auto) { return y * 4 + x + 1; });
  check("slice", counted({4, 3}), "[1, 1]", {4, 2}, [](auto x, auto y, auto, auto) { return (y + 1) * 4 + x; });
  check("part", counted({4, 6}), "[1, 2, 3]", {4, 2}, [](auto x, auto y, auto, auto) { return (y + 4) * 4 + x; });
  check("alternate", counted({4, 6}), "[1, 1]", {4, 3}, [](auto x, auto y, auto, auto) { return (2 * y + 1) * 4 + x; });
  check("alternate", counted({4, 2, 3}), "[0, 0]", {2, 2, 3},
        [](auto x, auto y, auto z, auto) { return (z * 2 + y) * 4 + 2 * x; });
  check("first_rows", counted({4, 6}), "[2]", {4, 2}, [](auto x, auto y, auto, auto) { return y * 4 + x; });
  check("first_rows", counted({6}), "[2]", {2}, [](auto x, auto, auto, auto) { return x; });
  check("first_rows", counted({4, 6}), "[99]", {4, 6}, [](auto x, auto y, auto, auto) { return y * 4 + x; });
  CHECK(fault("slice", counted({4, 3}), "[2, 1]") == "4 x 3 has no dimension 2");
  CHECK(fault("slice", counted({4, 3}), "[1, 18446744073709551615, 1]") != "");
  CHECK(fault("slice", counted({4, 3}), "[1, 2, 18446744073709551615]") != "");
  CHECK(fault("part", counted({4, 6}), "[1, 0, 4]") == "dimension 1 of 4 x 6 cannot be split into 4 equal parts");
  CHECK(fault("part", counted({4, 6}), "[1, 0, 0]") == "dimension 1 of 4 x 6 cannot be split into 0 equal parts");
  CHECK(fault("alternate", counted({3, 6}), "[0, 0]") == "3 x 6 has no pairs in dimension 0");
}

TEST_CASE("zeros are inserted before the matrices of a stack") {
  const auto extended = apply("extend_front", to_type(counted({4, 3, 2}), "BF16").value(), "[1]");
  REQUIRE(extended);
  CHECK(extended.value()->shape == shape_of({4, 3, 3}));
  CHECK(extended.value()->type->name == "BF16");
  const std::vector<float> values = expression_values(*extended.value());
  CHECK(std::ranges::all_of(std::span(values).first(12), [](float value) { return value == 0; }));
  CHECK(values[13] == 1);
  CHECK(fault("extend_front", counted({4, 3}), "[16777216]") ==
        "16777216 rows of zeros are missing in 4 x 3, which are more than 16777216 values");
}

TEST_CASE("rows are repeated, and zeros appended") {
  check("repeat_rows", counted({4, 3}), "[2]", {4, 6}, [](auto x, auto y, auto, auto) { return x + y % 3 * 4; });
  CHECK(fault("repeat_rows", counted({4, 3}), "[0]") == "0 copies; expected 1 to 65536");
  const auto padded = apply("pad_rows", to_type(counted({4, 3}), "BF16").value(), "[5]");
  REQUIRE(padded);
  CHECK(padded.value()->shape == shape_of({4, 5}));
  CHECK(padded.value()->type->name == "BF16");
  check("pad_rows", counted({4, 3}), "[2]", {4, 3}, [](auto x, auto y, auto, auto) { return x + y * 4; });
  CHECK(fault("pad_rows", counted({4, 3}), "[16777216]") ==
        "16777213 rows of zeros are missing in 4 x 3, which are more than 16777216 values");
}

TEST_CASE("values are changed in single precision") {
  const auto added = apply("add", counted({3}), "[1]");
  REQUIRE(added);
  CHECK(expression_values(*added.value()) == std::vector<float>{1, 2, 3});
  const ExpressionRef input = counted({3});
  CHECK(apply("add", input, "[0]").value() == input);
  const auto multiplied = apply("multiply", counted({3}), "[-0.5]");
  REQUIRE(multiplied);
  CHECK(expression_values(*multiplied.value()) == std::vector<float>{0, -0.5, -1});
  CHECK(apply("multiply", input, "[1]").value() == input);
  CHECK(fault("multiply", counted({3}), "[1e300]") == "1e+300 is too large for F32");
  const auto negated = apply("negate_exp", counted({2}), "[]");
  REQUIRE(negated);
  CHECK(expression_values(*negated.value())[0] == -1);
  const auto soft = apply("softplus", counted({2}), "[]");
  REQUIRE(soft);
  CHECK(expression_values(*soft.value())[0] == 0.6931471824645996f);
  CHECK(fault("add", counted({3}), "[1e300]") == "1e+300 is too large for F32");
  CHECK(fault("add", counted({3}), "[\"x\"]") == "expected a number");
}

TEST_CASE("a tensor of one dimension gets dimensions of 1") {
  check("column", counted({3}), "[]", {1, 3}, [](auto, auto y, auto, auto) { return y; });
  CHECK(apply("column", counted({3}), "[2]").value()->shape == shape_of({1, 1, 3}));
  CHECK(apply("column", counted({3}), "[0, 1]").value()->shape == shape_of({3, 1}));
  CHECK(apply("column", counted({3}), "[2, 1]").value()->shape == shape_of({1, 1, 3, 1}));
  CHECK(fault("column", counted({1, 3}), "[]") == "1 x 3 has more than one dimension");
  CHECK(fault("column", counted({3}), "[2, 2]") == "2 and 2 dimensions of 1; expected at most 3");
}

TEST_CASE("every second group of rows is negated") {
  const auto made = apply("alternate_signs", counted({2, 4}), "[1]");
  REQUIRE(made);
  CHECK(expression_values(*made.value()) == std::vector<float>{0, 1, -2, -3, 4, 5, -6, -7});
  CHECK(fault("alternate_signs", counted({2, 4}), "[3]") == "2 x 4 cannot be split into pairs of groups of 3 rows");
  CHECK(!fault("alternate_signs", counted({2, 4}), "[0]").empty());
  CHECK(!fault("alternate_signs", counted({4}), "[1]").empty());
}

TEST_CASE("integers of 64 bits become 32 bits") {
  const TempDir folder;
  const std::string path = folder.file("a");
  write_text(path, std::string("\x01\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff", 16));  // 1, -2
  const auto file = open_source(path).value()->describe();
  const auto tensor = [&](std::string_view type, std::uint64_t rows) {
    return expressions::extent(type_named(type), shape_of({1, rows}), {file, 0, 16}).value();
  };
  const ExpressionRef narrow = apply("int32", tensor("I64", 2), "[]").value();
  CHECK(narrow->type->name == "I32");
  CHECK(describe(narrow->shape) == "1 x 2");
  CHECK(expression_values(*narrow) == std::vector<float>{1, -2});
  CHECK(expression_values(*apply("int32", tensor("I32", 4), "[]").value()) == std::vector<float>{1, 0, -2, -1});
  CHECK(fault("int32", tensor("F32", 4), "[]") == "1 x 4 of F32 is not a tensor of integers");
}

TEST_CASE("two rows are multiplied") {
  const ExpressionRef product = apply("product_of_rows", counted({3, 2}), "[]").value();
  CHECK(describe(product->shape) == "3");
  CHECK(expression_values(*product) == std::vector<float>{0, 4, 10});
  CHECK(fault("product_of_rows", counted({2, 3}), "[]") == "2 x 3 is not two rows");
}

TEST_CASE("halves of rows are added") {
  const ExpressionRef sum = apply("add_halves", counted({4, 1, 2}), "[]").value();
  CHECK(describe(sum->shape) == "2 x 1 x 2");
  CHECK(expression_values(*sum) == std::vector<float>{2, 4, 10, 12});
  const ExpressionRef half = apply("add_halves", to_type(counted({2, 2}), "F16").value(), "[]").value();
  CHECK(half->type->name == "F16");
  CHECK(expression_values(*half) == std::vector<float>{1, 5});
  CHECK(fault("add_halves", counted({3, 2}), "[]") == "rows of 3 values do not have two halves of at most 4096");
  CHECK(fault("add_halves", counted({8194}), "[]") == "rows of 8194 values do not have two halves of at most 4096");
}

TEST_CASE("a row is replaced by numbers in the type of the matrix") {
  for (const auto& [row, expected] :
       {std::pair("0", std::vector<float>{8, 9, 2, 3, 4, 5}), {"1", {0, 1, 8, 9, 4, 5}}, {"2", {0, 1, 2, 3, 8, 9}}})
    CHECK(expression_values(*apply("replace_row", counted({2, 3}), fmt::format("[{}, [8, 9]]", row)).value()) ==
          expected);
  const auto half = apply("replace_row", to_type(counted({2, 1}), "BF16").value(), "[0, [1.00390625, 3]]").value();
  CHECK(half->type->name == "BF16");
  CHECK(fault("replace_row", counted({2, 3}), "[3, [8, 9]]") == "2 x 3 has no row 3");
  CHECK(fault("replace_row", counted({6}), "[0, [8, 9]]") == "6 has no row 0");
  CHECK(fault("replace_row", counted({2, 3}), "[0, [8]]") == "1 values do not replace a row of 2 x 3");
  CHECK(fault("replace_row", counted({2, 3}), "[0, 8]") == "'8' is not a list of numbers");
}

TEST_CASE("rows are divided by one number each") {
  // Rows (0, 1), (2, 3), (4, 5), divided by 6, 7, and 8.
  const ExpressionRef rows = apply("divide_rows", counted({9}), "[3, 1e-5]").value();
  CHECK(describe(rows->shape) == "2 x 3");
  CHECK(expression_values(*rows) == std::vector<float>{0, 1.0f / 6, 2.0f / 7, 3.0f / 7, 0.5f, 0.625f});
  CHECK(expression_values(*apply("divide_rows", counted({4}), "[2, 4]").value()) == std::vector<float>{0, 0.25f});
  for (const char* arguments : {"[2, 1]", "[0, 1]", "[-1, 1]", "[9, 1]"}) {
    CAPTURE(arguments);
    CHECK(fault("divide_rows", counted({9}), arguments).starts_with("9 does not have '"));
  }
  CHECK(fault("divide_rows", counted({2, 3}), "[3, 1]") == "2 x 3 does not have '3' rows and their divisors");
  CHECK(fault("divide_rows", to_type(counted({9}), "F16").value(), "[3, 1]") == "is F16, not F32");
}

TEST_CASE("exponentials of values") {
  CHECK(expression_values(*apply("exp", counted({1}), "[]").value()) == std::vector<float>{1});
  CHECK(expression_values(*apply("reciprocal_exp", counted({1}), "[1]").value()) == std::vector<float>{0.5f});
  const std::vector<float> values = expression_values(*apply("reciprocal_exp", counted({3}), "[1e-9]").value());
  CHECK(std::abs(values[2] - std::exp(-2.0f)) < 1e-7f);
  CHECK(fault("exp", to_type(counted({2}), "BF16").value(), "[]") == "is BF16, not F32");
  const float infinity = std::numeric_limits<float>::infinity();
  const auto one = [](float value) { return expressions::constant(Shape{1, {1, 1, 1, 1}}, {value}).value(); };
  for (const char* const operation : {"exp", "softplus"})
    CHECK(expression_values(*apply(operation, one(-infinity), "[]").value()) == std::vector<float>{-infinity});
  CHECK(expression_values(*apply("reciprocal_exp", one(infinity), "[1]").value()) == std::vector<float>{infinity});
  for (const float divisor : {infinity, -infinity}) {
    const ExpressionRef row = expressions::concat({one(8), one(divisor)}, 0).value();
    CHECK(expression_values(*apply("divide_rows", row, "[1, 1]").value()) == std::vector<float>{divisor});
  }
}

TEST_CASE("a number replaces a tensor") {
  CHECK(expression_values(*apply("fill", counted({2, 3}), "[3, 1.5]").value()) == std::vector<float>{1.5, 1.5, 1.5});
  CHECK(fault("fill", counted({2}), "[0, 1]") == "a tensor of 0 values; expected 1 to 1048576");
  CHECK(fault("fill", counted({2}), "[1048577, 1]") == "a tensor of 1048577 values; expected 1 to 1048576");
}

TEST_CASE("computed tensors") {
  CHECK(make("numbers", "[[1, 2.5], 2]").value()->values == std::vector<float>{1, 2.5});
  CHECK(make("numbers", "[[1, 2.5], 3]").error().what == "2 numbers, expected 3");
  CHECK(make("numbers", "[[]]").error().what == "expected a list of numbers");
  CHECK(make("numbers", "[[1e300]]").error().what == "1e+300 is too large for F32");
  // High frequencies are unchanged, low ones are divided by the factor, and the others are in between.
  const auto factors = make("llama3_rope_factors", "[64, 10000.0, 8.0, 1.0, 4.0, 8192]");
  REQUIRE(factors);
  const std::vector<float>& values = factors.value()->values;
  CHECK(values.size() == 32);
  CHECK(values.front() == 1);
  CHECK(values.back() == 8);
  CHECK(std::ranges::is_sorted(values));
  CHECK(make("llama3_rope_factors", "[1000000000, 10000.0, 8.0, 1.0, 4.0, 8192]").error().what ==
        "a head has 1000000000 dimensions");
  CHECK(make("llama3_rope_factors", "[64, 10000.0, 0, 1.0, 4.0, 100]").error().what ==
        "base 10000, factor 0, low 1, high 4, and context 100 give the factor 0");
  CHECK(!make("llama3_rope_factors", "[64, -2.0, 8, 1.0, 4.0, 100]"));
  CHECK(make("llama3_rope_factors", "[64, \"x\", 0, 1.0, 4.0, 100]").error().what ==
        "llama3_rope_factors takes numbers");
}

TEST_CASE("rotary embedding factors of the first dimensions of a head are 1 for the others") {
  const auto factors = make("llama3_rope_factors_padded", "[32, 10000.0, 8.0, 1.0, 4.0, 8192, 64]");
  REQUIRE(factors);
  const std::vector<float>& values = factors.value()->values;
  REQUIRE(values.size() == 32);
  CHECK(values[0] == 1);
  CHECK(values[15] == 8);
  CHECK(values[16] == 1);
  CHECK(values[31] == 1);
  CHECK(std::is_sorted(values.begin(), values.begin() + 16));
  CHECK(make("llama3_rope_factors_padded", "[32, 10000.0, 8.0, 1.0, 4.0, 8192, 16]").error().what ==
        "32 dimensions in a head of 16");
}

TEST_CASE("values of small tensors are read, and their mean is subtracted") {
  const TempDir folder;
  const std::string path = folder.file("a");
  write_text(path, std::string("\x00\x3c\x00\xc0\x01\x00\x00\xfc", 8));  // F16: 1, -2, 2^-24, -infinity
  const auto file = open_source(path).value()->describe();
  const auto tensor = [&](std::string_view type, std::uint64_t count) {
    return expressions::extent(type_named(type), shape_of({count}), {file, 0, 8}).value();
  };
  CHECK(read_small_values(*tensor("F16", 4)).value() == std::vector<float>{1, -2, std::ldexp(1.0f, -24), -INFINITY});
  CHECK(read_small_values(*tensor("BF16", 4)).value()[0] == std::bit_cast<float>(0x3c000000));
  CHECK(read_small_values(*tensor("F32", 2)).value()[0] == std::bit_cast<float>(0xc0003c00));
  CHECK(read_small_values(*tensor("I64", 1)).error().what == "is I64, not F32, F16, or BF16");
  write_text(path, std::string("\x00\x3c\x00\xc0\x00\x40\x00\x42", 8));  // 1, -2, 2, 3: 1 on average
  CHECK(expression_values(*apply("subtract_mean", tensor("F16", 4), "[]").value()) == std::vector<float>{0, -3, 1, 2});
}
