// Tests of BitNet's weights. The expected sums were computed with torch 2.6 in one thread.
#include "stages/huggingface/checkpoint/ternary.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "pipeline/io/source_path.h"
#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

float sum_of(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7919 % 65537) / 65537;
  TorchSum sum(count);
  const std::size_t half = count / 3;  // in pieces of any size
  sum.add(std::span(values).first(half));
  sum.add(std::span(values).subspan(half));
  return sum.total();
}

Result<ExpressionRef> ternary_of(const TempDir& folder, const std::vector<float>& values) {
  std::string bytes(4 * values.size(), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  write_text(folder.file("a"), bytes);
  const auto file = open_source(folder.file("a")).value()->describe();
  return ternary(
      expressions::extent(type_named("F32"), Shape{1, {values.size(), 1, 1, 1}}, {file, 0, bytes.size()}).value());
}

}  // namespace

TEST_CASE("values are added in torch's order") {
  CHECK(sum_of(40) == 0x1.33fd5c0000000p+4f);
  CHECK(sum_of(4096) == 0x1.0022300000000p+11f);
  CHECK(sum_of(20000) == 0x1.3878520000000p+13f);
  CHECK(sum_of(300007) == 0x1.24f9980000000p+17f);
}

TEST_CASE("values become -1, 0 or 1 times the mean of the magnitudes") {
  const TempDir folder;
  const auto result = ternary_of(folder, {0.5f, -2.0f, 1.5f, -0.25f, 0.75f, 0, 1, -2});
  REQUIRE(result);
  CHECK(expression_values(*result.value()) == std::vector<float>{0, -1, 1, 0, 1, 0, 1, -1});  // the mean is 1
  CHECK(expression_values(*ternary_of(folder, {0, 0, 0, 0}).value()) == std::vector<float>(4));
}

TEST_CASE("the mean is that of a tensor of any size") {
  const TempDir folder;
  std::vector<float> values(300'000, 1);
  values.back() = -300'001;  // the mean is 2
  const std::vector<float> found = expression_values(*ternary_of(folder, values).value());
  CHECK(found.front() == 0);
  CHECK(found.back() == -2);
}

TEST_CASE("packed values, four in a byte, are divided by their scale") {
  const TempDir folder;
  write_text(folder.file("a"), std::string{"\x24\x81", 2});  // 0, 1, 2, 0 and 1, 0, 0, 2, lowest bits first
  const auto file = open_source(folder.file("a")).value()->describe();
  const auto bytes = expressions::extent(type_named("U8"), Shape{2, {2, 1, 1, 1}}, {file, 0, 2}).value();
  const auto values = unpack_ternary(bytes, 0.5f);
  REQUIRE(values);
  CHECK(describe(values.value()->shape) == "2 x 4");
  CHECK(expression_values(*values.value()) == std::vector<float>{-2, 0, 0, -2, 2, -2, -2, 2});
  const auto rounded = ternary(values.value());
  REQUIRE(rounded);
  CHECK(expression_values(*rounded.value()) == std::vector<float>{-1.5, 0, 0, -1.5, 1.5, -1.5, -1.5, 1.5});
  CHECK(unpack_ternary(bytes, 0).error().what == "its scale is 0");
  CHECK(unpack_ternary(bytes, INFINITY).error().what == "its scale is inf");
  const auto row = expressions::extent(type_named("U8"), Shape{1, {2, 1, 1, 1}}, {file, 0, 2}).value();
  CHECK(unpack_ternary(row, 1).error().what == "2 of U8 is not a matrix of packed bytes");
}

TEST_CASE("a scale must be finite") {
  const TempDir folder;
  CHECK(ternary_of(folder, {1, INFINITY}).error().what ==
        "has values that are not finite, or too large for BitNet's scale");
}
