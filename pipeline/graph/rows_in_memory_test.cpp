#include "pipeline/graph/rows_in_memory.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "pipeline/io/input_file.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Bytes = std::vector<std::byte>;

const Kernels& reference_kernels() {
  static const auto loaded = Kernels::load({{}, "reference"}).value();
  return *loaded;
}

std::vector<float> numbers(std::size_t count) {
  std::mt19937 random(7);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 2000) / 1000 - 1;
  return values;
}

Bytes encoded(const char* type, const std::vector<float>& values, std::uint64_t columns,
              const std::vector<float>& importance = {}, unsigned threads = 0) {
  const TypeInfo& to = type_named(type);
  Bytes into(values.size() / to.block_elements * to.block_bytes);
  const RowConversion conversion{&type_named("F32"), std::as_bytes(std::span(values)), &to, into, columns, importance};
  const Status made = convert_rows(conversion, reference_kernels(), {threads, nullptr});
  if (!made) FAIL(render(made.error()));
  return into;
}

Error refusal(const RowConversion& conversion) {
  const Status made = convert_rows(conversion, reference_kernels());
  if (made) FAIL("it was converted");
  return made.error();
}

// Encodes with one kernel call for each part that has its own importance.
Bytes by_kernel(const char* type, const std::vector<float>& values, std::uint64_t columns,
                const std::vector<float>& importance) {
  const TypeInfo& to = type_named(type);
  Bytes into(values.size() / to.block_elements * to.block_bytes);
  const std::size_t parts = std::max<std::size_t>(importance.size() / columns, 1), rows = values.size() / columns;
  for (std::size_t part = 0; part < parts; ++part) {
    const KernelCall call{values.data() + part * (values.size() / parts), into.data() + part * (into.size() / parts),
                          rows / parts, columns, importance.empty() ? nullptr : importance.data() + part * columns};
    REQUIRE(call_kernel(*reference_kernels().encode(to.id), call) == GGUFMILL_OK);
  }
  return into;
}

}  // namespace

TEST_CASE("rows are encoded as one call of the kernel would, whatever the threads") {
  const char* type = GENERATE("Q4_K", "Q8_0", "BF16");
  const std::vector<float> values = numbers(512 * 1000);
  for (const unsigned threads : {1u, 2u, 0u})
    CHECK(encoded(type, values, 512, {}, threads) == by_kernel(type, values, 512, {}));
}

TEST_CASE("each matrix has its own importance") {
  const std::vector<float> values = numbers(256 * 600);
  std::vector<float> importance = numbers(3 * 256);
  for (float& weight : importance) weight = std::abs(weight);
  CHECK(encoded("Q4_K", values, 256, importance) == by_kernel("Q4_K", values, 256, importance));
  const std::vector<float> shared(importance.begin(), importance.begin() + 256);
  CHECK(encoded("IQ2_XS", numbers(256 * 4), 256, shared) == by_kernel("IQ2_XS", numbers(256 * 4), 256, shared));
  CHECK(encoded("Q8_0", values, 256, importance) == by_kernel("Q8_0", values, 256, {}));  // Q8_0 ignores it
}

TEST_CASE("rows are decoded, however long they are, and what is not finite stays") {
  const std::vector<float> values = numbers(256 * 4000);
  const Bytes rows = encoded("Q4_K", values, 256);
  std::vector<float> expected(values.size()), decoded(values.size());
  const KernelCall call{rows.data(), expected.data(), 4000, 256, nullptr};
  REQUIRE(call_kernel(*reference_kernels().decode(type_named("Q4_K").id), call) == GGUFMILL_OK);
  for (const std::uint64_t columns : {std::uint64_t{256}, std::uint64_t{256 * 4000}}) {
    REQUIRE(convert_rows(
        {&type_named("Q4_K"), rows, &type_named("F32"), std::as_writable_bytes(std::span(decoded)), columns},
        reference_kernels()));
    CHECK(decoded == expected);
  }
  const std::uint16_t half[] = {0x7c00, 0x3c00};
  float two[2];
  REQUIRE(convert_rows({&type_named("F16"), std::as_bytes(std::span(half)), &type_named("F32"),
                        std::as_writable_bytes(std::span(two)), 2},
                       reference_kernels()));
  CHECK(std::isinf(two[0]));
  CHECK(two[1] == 1);
}

TEST_CASE("numbers of another type are decoded first, and those of the same are copied") {
  const std::vector<float> values = numbers(256 * 300);
  const Bytes half = encoded("F16", values, 256);
  std::vector<float> rounded(values.size());
  const auto into = std::as_writable_bytes(std::span(rounded));
  REQUIRE(convert_rows({&type_named("F16"), half, &type_named("F32"), into, 256}, reference_kernels()));
  Bytes direct(values.size() / 256 * 144);
  REQUIRE(convert_rows({&type_named("F16"), half, &type_named("Q4_K"), direct, 256}, reference_kernels()));
  CHECK(direct == encoded("Q4_K", rounded, 256));
  Bytes copy(half.size());
  REQUIRE(convert_rows({&type_named("F16"), half, &type_named("F16"), copy, 256}, reference_kernels()));
  CHECK(copy == half);
}

TEST_CASE("rows that are longer than a worker's scratch are converted a few at a time") {
  const std::uint64_t columns = 1 << 20, rows = kRowsMemory / (columns * sizeof(float)) + 3;
  const Bytes half = encoded("F16", numbers(columns * rows), columns);
  std::vector<float> rounded(columns * rows);
  REQUIRE(
      convert_rows({&type_named("F16"), half, &type_named("F32"), std::as_writable_bytes(std::span(rounded)), columns},
                   reference_kernels()));
  Bytes into(columns / 32 * 34 * rows);
  REQUIRE(
      convert_rows({&type_named("F16"), half, &type_named("Q8_0"), into, columns}, reference_kernels(), {2, nullptr}));
  CHECK(into == by_kernel("Q8_0", rounded, columns, {}));
}

TEST_CASE("a value that cannot be converted is reported with its position") {
  std::vector<float> values = numbers(256 * 700);
  Bytes into(700 * 144);
  const TypeInfo &f32 = type_named("F32"), &q4 = type_named("Q4_K");
  const auto bytes = std::as_bytes(std::span(values));
  CHECK(refusal({&f32, bytes, &q4, into, 100}).what == "rows of 100 values are not a whole number of blocks of Q4_K");
  CHECK(refusal({&f32, bytes.first(100), &q4, into, 256}).what == "100 bytes are not whole rows of 256 values of F32");
  CHECK(refusal({&f32, bytes, &q4, std::span(into).first(9), 256}).what ==
        "9 bytes is the wrong size for 700 rows of 256 values of Q4_K");
  CHECK(refusal({&f32, bytes, &type_named("Q8_K"), into, 256}).code == ExitCode::kUsage);  // wrong output size
  Bytes more(700 * 256);
  CHECK(refusal({&f32, bytes, find_source_type("U8"), more, 256}).code == ExitCode::kKernel);
  Bytes less(700 * 50);
  CHECK(refusal({&f32, bytes, &type_named("IQ1_S"), less, 256}).what == "IQ1_S needs importance weights");
  std::vector<float> weights(256, 1);
  weights[5] = -1;
  CHECK(refusal({&f32, bytes, &q4, into, 256, weights}).what == "importance weight 5 is -1");
  weights.resize(100);
  CHECK(refusal({&f32, bytes, &q4, into, 256, weights}).what ==
        "100 importance weights do not fit 700 rows of 256 values");
  values[256 * 600 + 17] = std::numeric_limits<float>::quiet_NaN();
  values[256 * 300 + 3] = std::numeric_limits<float>::infinity();
  const Error error = refusal({&f32, bytes, &q4, into, 256});  // the first error, whatever the number of threads
  CHECK(error.what == "row 300, column 3: infinity");
  CHECK(error.code == ExitCode::kBadInput);
  values[256 * 300 + 3] = 0;
  values[256 * 600 + 17] = 1e38f;
  Bytes half(values.size() * 2);
  CHECK(refusal({&f32, bytes, &type_named("F16"), half, 256}).what ==
        "row 600, column 17: a value is too large for F16");
}

namespace {

// Returns a covariance of columns of which neighbours are correlated.
std::vector<double> covariance_of(std::uint64_t columns) {
  std::vector<double> made(columns * columns);
  for (std::uint64_t i = 0; i < columns; ++i)
    for (std::uint64_t j = 0; j < columns; ++j)
      made[i * columns + j] =
          (1 + double(i % 3)) * (1 + double(j % 3)) * std::pow(0.8, std::abs(double(i) - double(j)));
  return made;
}

// Returns the sum of e H e^T of all rows.
double loss(const std::vector<float>& values, const Bytes& rows, const char* type, const std::vector<double>& h,
            std::uint64_t columns) {
  std::vector<float> decoded(values.size());
  const auto into = std::as_writable_bytes(std::span(decoded));
  REQUIRE(convert_rows({&type_named(type), rows, &type_named("F32"), into, columns}, reference_kernels()));
  double sum = 0;
  for (std::size_t row = 0; row < values.size(); row += columns)
    for (std::uint64_t i = 0; i < columns; ++i)
      for (std::uint64_t j = 0; j < columns; ++j)
        sum += double{values[row + i] - decoded[row + i]} * h[i * columns + j] *
               double{values[row + j] - decoded[row + j]};
  return sum;
}

}  // namespace

TEST_CASE("levels are chosen with a covariance, whatever the threads and the number of rows") {
  const char* type = GENERATE("Q4_K", "Q8_0", "IQ4_NL");
  constexpr std::uint64_t kWidth = 256;
  const std::vector<float> values = numbers(kWidth * 150);
  const std::vector<double> h = covariance_of(kWidth);
  const Bytes start = encoded(type, values, kWidth);
  const auto chosen = [&](std::span<const float> some, unsigned threads) {
    Bytes rows(start.begin(), start.begin() + std::ptrdiff_t(start.size() / 150 * (some.size() / kWidth)));
    REQUIRE(choose_levels({&type_named(type), some, rows, kWidth, h, 2}, reference_kernels(), {threads, nullptr}));
    return rows;
  };
  const Bytes made = chosen(values, 1);
  CHECK(loss(values, made, type, h, kWidth) < 0.9 * loss(values, start, type, h, kWidth));
  CHECK(chosen(values, 3) == made);
  const Bytes fewer = chosen(std::span(values).first(17 * kWidth), 2);
  CHECK(std::equal(fewer.begin(), fewer.end(), made.begin()));
}

TEST_CASE("a choice of levels that cannot be made is refused") {
  std::vector<float> values = numbers(64 * 3);
  std::vector<double> h = covariance_of(64);
  Bytes rows(3 * 36);
  const auto refused = [&](const char* type, std::uint64_t columns) {
    const Status made = choose_levels({&type_named(type), values, rows, columns, h, 2}, reference_kernels());
    return made ? Error{} : made.error();
  };
  CHECK(refused("Q4_0", 64).what.empty());
  CHECK(refused("F16", 64).what == "rows of F16 have no levels that can be chosen with a covariance");
  CHECK(refused("Q4_K", 64).what == "rows of 64 values are not a whole number of blocks of Q4_K");
  CHECK(refused("Q8_0", 64).what == "108 bytes is the wrong size for 3 rows of 64 values of Q8_0");
  CHECK(refused("Q4_0", 32).what == "a covariance of 4096 elements does not fit rows of 32 values");
  h.pop_back();
  CHECK(refused("Q4_0", 64).what == "a covariance of 4095 elements does not fit rows of 64 values");
  h.push_back(-1);
  CHECK(refused("Q4_0", 64).what == "the covariance is not positive definite");
  CHECK(refused("Q4_0", 64).code == ExitCode::kBadInput);
  h.back() = std::numeric_limits<double>::infinity();
  CHECK(refused("Q4_0", 64).what == "the covariance contains numbers that are not finite");
  h.back() = 1e35;
  CHECK(refused("Q4_0", 64).what == "the covariance contains 1e+35, which is too large");
  h = covariance_of(64);
  values[70] = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused("Q4_0", 64).what == "row 1, column 6: the value is not finite");
}

TEST_CASE("an empty conversion writes nothing, and a stopped one reports it") {
  CHECK(convert_rows({&type_named("F32"), {}, &type_named("Q4_K"), {}, 256}, reference_kernels()));
  CHECK(convert_rows({&type_named("F32"), {}, &type_named("Q4_K"), {}, 0}, reference_kernels()));
  const std::vector<float> values = numbers(256 * 10);
  Bytes into(1440);
  const std::atomic<bool> stop{true};
  const Status stopped =
      convert_rows({&type_named("F32"), std::as_bytes(std::span(values)), &type_named("Q4_K"), into, 256},
                   reference_kernels(), {0, &stop});
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ExitCode::kInterrupted);
}

TEST_CASE("rows of a tensor are read from wherever its expression has them") {
  const TempDir folder;
  const std::vector<float> values = numbers(64 * 40 * 3);
  write_text(folder.file("values"), {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  const SourceRef source = InputFile::open(folder.file("values")).value()->describe();
  const TypeInfo& f32 = type_named("F32");
  const Shape shape{3, {64, 40, 3, 1}};
  const ExpressionRef all = expressions::extent(f32, shape, {source, 0, values.size() * sizeof(float)}).value();
  Tensor tensor;
  tensor.name = "t";
  tensor.expression = expressions::transpose(all, {1, 0, 2}).value();
  tensor.type = &f32;
  const auto expected = [&](std::size_t row, std::size_t column) {  // rows have 40 columns
    return values[row / 64 * 64 * 40 + column * 64 + row % 64];
  };
  std::vector<float> read(40 * 100);
  REQUIRE(read_rows({&tensor, 30, 100, &f32, std::as_writable_bytes(std::span(read))}, reference_kernels()));
  for (std::size_t i = 0; i < read.size(); ++i) REQUIRE(read[i] == expected(30 + i / 40, i % 40));

  tensor.expression = expressions::cast(tensor.expression, type_named("BF16")).value();
  std::vector<std::uint16_t> own(40);
  REQUIRE(
      read_rows({&tensor, 191, 1, &type_named("BF16"), std::as_writable_bytes(std::span(own))}, reference_kernels()));
  std::vector<float> decoded(40);
  REQUIRE(read_rows({&tensor, 191, 1, &f32, std::as_writable_bytes(std::span(decoded))}, reference_kernels()));
  for (std::size_t i = 0; i < 40; ++i) {
    const std::uint32_t word = std::uint32_t{own[i]} << 16;
    REQUIRE(std::memcmp(&word, &decoded[i], sizeof word) == 0);
    REQUIRE(std::abs(decoded[i] - expected(191, i)) <= 1e-2f);
  }

  CHECK_FALSE(read_rows({&tensor, 190, 3, &f32, std::as_writable_bytes(std::span(read))}, reference_kernels()));
  CHECK_FALSE(read_rows({&tensor, 0, 1, &f32, {}}, reference_kernels()));
  CHECK_FALSE(read_rows({&tensor, 0, 1, &type_named("Q8_0"), {}}, reference_kernels()));
  CHECK(read_rows({&tensor, 192, 0, &f32, {}}, reference_kernels()));
  write_text(folder.file("values"), "something else");
  const Status changed =
      read_rows({&tensor, 0, 1, &f32, std::as_writable_bytes(std::span(decoded))}, reference_kernels());
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ExitCode::kBadInput);
}

TEST_CASE("many rows of a tensor are read in slabs, in any number of threads") {
  const TempDir folder;
  const std::vector<float> values = numbers(std::size_t{3000} * 500);
  write_text(folder.file("values"), {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  const SourceRef source = InputFile::open(folder.file("values")).value()->describe();
  const TypeInfo& f32 = type_named("F32");
  const ExpressionRef all =
      expressions::extent(f32, {2, {3000, 500, 1, 1}}, {source, 0, values.size() * sizeof(float), false}).value();
  Tensor tensor;
  tensor.name = "t";
  tensor.expression = expressions::transpose(all, {1, 0}).value();
  std::vector<float> read(500 * 2900);
  const RowsOptions options{GENERATE(1u, 2u), nullptr};
  REQUIRE(read_rows({&tensor, 50, 2900, &f32, std::as_writable_bytes(std::span(read))}, reference_kernels(), options));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < read.size(); ++i) wrong += read[i] != values[i % 500 * 3000 + 50 + i / 500];
  CHECK(wrong == 0);
}

TEST_CASE("rows that are not finite are read as they are") {
  const TempDir folder;
  std::vector<float> values = numbers(256);
  values[3] = std::numeric_limits<float>::infinity();
  write_text(folder.file("values"), {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  const SourceRef source = InputFile::open(folder.file("values")).value()->describe();
  Tensor tensor;
  tensor.expression = expressions::extent(type_named("F32"), {1, {256, 1, 1, 1}}, {source, 0, 1024, false}).value();
  std::vector<float> read(256);
  REQUIRE(read_rows({&tensor, 0, 1, &type_named("F32"), std::as_writable_bytes(std::span(read))}, reference_kernels()));
  CHECK(read == values);
}
