// Tests the checks themselves: they must accept correct kernels and detect faulty ones.

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "pipeline/core/types.h"
#include "pipeline/kernels/check/compare.h"
#include "pipeline/kernels/check/hard_inputs.h"
#include "pipeline/kernels/check/kernel_checks.h"
#include "pipeline/kernels/check/kernel_run.h"
#include "plugins/reference/reference.h"
#include "tests/conformance/golden_check.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::conformance {
namespace {

int32_t run_reference(const char* type, const ggufmill_call* call) {
  for (std::uint32_t i = 0; i < ggufmill_reference_module.kernel_count; ++i) {
    const ggufmill_kernel& kernel = ggufmill_reference_module.kernels[i];
    if (kernel.operation == GGUFMILL_ENCODE && std::strcmp(kernel.name, type) == 0 && !kernel.encoder)
      return kernel.run(call);
  }
  return 1;
}

// Encodes Q8_0 with one bit of the last byte flipped.
int32_t wrong_byte(const ggufmill_call* call) {
  const int32_t status = run_reference("Q8_0", call);
  static_cast<unsigned char*>(call->dst)[call->rows * (call->cols / 32) * 34 - 1] ^= 1;
  return status;
}

// Encodes only the first row to Q8_0.
int32_t first_row_only(const ggufmill_call* call) {
  ggufmill_call first = *call;
  first.rows = 1;
  return run_reference("Q8_0", &first);
}

struct OneKernel {
  ggufmill_kernel kernel;
  ggufmill_module module = ggufmill_reference_module;
  explicit OneKernel(ggufmill_run run) : kernel{GGUFMILL_ENCODE, 8, 32, 34, 0, 0, "Q8_0", run, nullptr, nullptr, 0, 0} {
    module.kernels = &kernel;
    module.kernel_count = 1;
  }
};

const KernelList kReference = kernels_of(ggufmill_reference_module);

// Returns the names of the checks that find a defect.
std::vector<std::string> failed(const OneKernel& one) {
  std::vector<std::string> names;
  for (const ConformanceResult& result : check_kernels(kernels_of(one.module), {}))
    if (result.finding.kind == Finding::Kind::kFailed) names.push_back(result.check);
  return names;
}

}  // namespace

TEST_CASE("the reference fills every slot of the table of types") {
  const auto check = [](std::uint32_t operation, const TypeInfo& type) {
    CAPTURE(type.name, operation);
    const ggufmill_kernel* kernel = find_kernel(kernels_of(ggufmill_reference_module), operation, type.name);
    REQUIRE(kernel != nullptr);
    CHECK(kernel->name == type.name);
    CHECK(kernel->block_elements == type.block_elements);
    CHECK(kernel->block_bytes == type.block_bytes);
  };
  for (const TypeInfo& type : built_in_types()) {
    check(GGUFMILL_DECODE, type);
    check(GGUFMILL_ENCODE, type);
  }
  for (const TypeInfo& type : source_types()) check(GGUFMILL_DECODE, type);
}

TEST_CASE("a module compares equal with itself") {
  const CompareResult result = compare_modules(kReference, kReference, {3, 1, "Q4_0"});
  CHECK(result.differences.empty());
  CHECK(result.kernels == 3);
  // decoder; encoder, and search with every effort and weights, each without importance and with
  // two kinds of it; then large shapes, with which encoders are called without importance and with it, the search
  // too
  const std::size_t large = std::size(kNumbersOfRows) + 2;
  CHECK(result.calls == 1 + 3 * kInputKinds + 3 * kInputKinds * 3 * 4 + large * (1 + 2 + 2));
}

TEST_CASE("a byte that differs is found, every time") {
  const OneKernel wrong(wrong_byte);
  const CompareResult result = compare_modules(kReference, kernels_of(wrong.module), {3, 2, ""});
  CHECK(result.differences.size() == result.calls);
}

TEST_CASE("a kernel that is missing from the expected module is a difference") {
  const OneKernel only(wrong_byte);
  CHECK(compare_modules(kernels_of(only.module), kReference, {3, 1, "Q8_1"}).differences.size() == 2);
}

TEST_CASE("the checks notice target bytes left unwritten") {
  const OneKernel lazy(first_row_only);
  CHECK(failed(lazy) == std::vector<std::string>{"complete", "rows"});
}

TEST_CASE("the checks notice bytes that depend on the number of rows") {
  const OneKernel uneven(wrong_byte);  // one wrong byte per call, regardless of the number of rows
  CHECK(failed(uneven) == std::vector<std::string>{"rows"});
}

TEST_CASE("golden figures tell right from wrong") {
  const std::vector<GoldenRow> all = load_golden_table("tests/golden/kernels.tsv");
  std::vector<GoldenRow> rows;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows), [](const GoldenRow& r) { return r.type == "Q8_0"; });
  REQUIRE(rows.size() == 19);
  SECTION("of a wrong kernel") {
    const OneKernel wrong(wrong_byte);
    const GoldenResult result = check_golden(wrong.module, ggufmill_reference_module, rows);
    CHECK(result.quantized.wrong.size() == 19);
    CHECK(result.dequantized.lacking == 19);
  }
  SECTION("of a table that was changed") {
    rows[0].dequantized[0] = rows[0].dequantized[0] == '0' ? '1' : '0';
    const GoldenResult result = check_golden(ggufmill_reference_module, ggufmill_reference_module, rows);
    CHECK(result.quantized.right == 19);
    CHECK(result.dequantized.right == 18);
  }
}

TEST_CASE("a broken golden table is refused with its line") {
  TempDir folder;
  const std::string path = folder.file("kernels.tsv");
  std::ofstream(path) << "type\nQ8_0\tnormal\tno\n";
  try {
    load_golden_table(path);
    FAIL("accepted");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find("kernels.tsv:2: 3 fields") != std::string::npos);
  }
}

}  // namespace ggufmill::conformance
