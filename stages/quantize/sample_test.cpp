#include "stages/quantize/sample.h"

#include <fmt/format.h>

#include <set>

#include "pipeline/core/rows.h"
#include "tests/support/catch.h"
#include "tests/support/needs.h"

using namespace ggufmill;

namespace {

constexpr std::uint64_t kColumns = 32;

Tensor tensor_of(const std::string& name, const Shape& shape) {
  const auto source = std::make_shared<const SourceFile>(SourceFile{"model", 1 << 30, 0, 0});
  Tensor tensor;
  tensor.name = name;
  tensor.type = &type_named("F32");
  tensor.expression = expressions::extent(*tensor.type, shape, {source, 0, shape.elements() * sizeof(float)}).value();
  return tensor;
}

// Returns the rows of the tensor that the sample reads, counted over all matrices.
std::vector<std::uint64_t> rows_in(const Tensor& tensor, RowSample sample) {
  const Tensor rows = sampled(tensor, sample).value();
  const Shape& shape = rows.shape();
  std::vector<std::uint64_t> read;
  for (std::uint64_t row = 0; row < shape.rows(); ++row)
    for (const ByteRange& range : ranges_of(*rows.expression, box_of_rows(shape, row, 1))) {
      CHECK(range.bytes == kColumns * sizeof(float));
      read.push_back(range.offset / (kColumns * sizeof(float)));
    }
  return read;
}

Result<RowSample> parsed(const std::string& text) { return parse_document(text, "sample", sample_form()); }

}  // namespace

TEST_CASE("a sample is all rows or one of N") {
  CHECK(parsed("all").value() == RowSample{1});
  CHECK(parsed("1/16").value() == RowSample{16});
  CHECK(parsed("1/1").value().is_all());
  for (const char* text : {"1/0", "16", "1/", "2/3", "1/16x", "1/2000000", "''"}) {
    CAPTURE(text);
    const auto sample = parsed(text);
    REQUIRE_FALSE(sample);
    CHECK(sample.error().code == ExitCode::kUsage);
  }
}

TEST_CASE("sampled rows are evenly spread over a tensor") {
  const std::vector<std::uint64_t> rows = rows_in(tensor_of("a", {2, {kColumns, 4096, 1, 1}}), {16});
  REQUIRE(rows.size() == 4096 / 15);
  for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i] - rows[i - 1] == 15);
  CHECK(rows.front() < 31);
  CHECK(rows.back() >= 4096 - 31);
}

TEST_CASE("sampled rows depend on the name") {
  std::set<std::uint64_t> first;
  for (int i = 0; i < 20; ++i) {
    const Tensor tensor = tensor_of(fmt::format("blk.{}.x", i), {2, {kColumns, 4096, 1, 1}});
    CHECK(rows_in(tensor, {16}) == rows_in(tensor, {16}));
    first.insert(rows_in(tensor, {16}).front());
  }
  CHECK(first.size() > 8);
}

TEST_CASE("every matrix is sampled") {
  const Shape shape{4, {kColumns, 20, 3, 5}};
  const Tensor tensor = tensor_of("experts", shape);
  const Tensor rows = sampled(tensor, {16}).value();
  CHECK(rows.shape() == Shape{4, {kColumns, 20 / 3, 3, 5}});
  std::vector<std::uint64_t> in_matrix(15);
  for (const std::uint64_t row : rows_in(tensor, {16})) ++in_matrix[row / 20];
  CHECK(in_matrix == std::vector<std::uint64_t>(15, 6));
}

TEST_CASE("small tensors are measured with more of their rows") {
  CHECK(rows_in(tensor_of("a", {2, {kColumns, 300, 1, 1}}), {16}).size() ==
        100);  // 1/4 would be 75; the distance is odd
  CHECK(rows_in(tensor_of("a", {2, {kColumns, 127, 1, 1}}), {16}).size() == 127);
  CHECK(rows_in(tensor_of("a", {2, {kColumns, 128, 1, 1}}), {16}).size() == 64);
}

TEST_CASE("interleaved rows are separated before some are taken") {
  GGUFMILL_NEEDS("Q4_K_R4");
  const TypeInfo& type = *Types().find("Q4_K_R4");
  const Shape shape{2, {256, 1024, 1, 1}};
  const auto source = std::make_shared<const SourceFile>(SourceFile{"model", 1 << 30, 0, 0});
  Tensor tensor;
  tensor.name = "a";
  tensor.type = &type;
  tensor.expression = expressions::extent(type, shape, {source, 0, bytes_of(type, shape).value()}).value();
  const Tensor rows = sampled(tensor, {16}).value();
  CHECK(rows.expression->type == type.plain);
  CHECK(rows.shape() == Shape{2, {256, 1024 / 15, 1, 1}});
}

TEST_CASE("all rows are the tensor itself") {
  const Tensor tensor = tensor_of("a", {2, {kColumns, 4096, 1, 1}});
  CHECK(sampled(tensor, {1}).value().expression == tensor.expression);
}
