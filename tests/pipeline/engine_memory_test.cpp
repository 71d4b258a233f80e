// This is a separate program because it examines the peak memory of the process.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "pipeline/io/platform/filesystem.h"
#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using testing::shape_of;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Returns VmHWM, the peak resident memory so far.
std::uint64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) != 0) continue;
    std::uint64_t kib = 0;
    std::istringstream(line.substr(6)) >> kib;
    return kib * 1024;
  }
  return 0;
}

bool has_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("memory stays under the budget and 64 MiB for a tensor 50 times the budget") {
  constexpr std::uint64_t kBudget = 4 * kMiB;
  TempDir folder;
  const std::vector<testing::TensorRecipe> huge{{"huge", shape_of({4096, 12800}), "F32", {"Q4_0", "F16"}, false}};
  const std::string source = folder.file("source.gguf");
  { std::ofstream file(source); }
  fs::resize_file(source, testing::source_bytes(huge));  // a hole of zeros, without disk space
  Plan plan = testing::plan_of(huge, folder.path(), kBudget, InputFile::open(source).value()->describe());
  REQUIRE(plan.bytes_read() == 50 * kBudget);
  plan.limits.threads = 8;
  plan.report.error = GENERATE(false, true);
  const RunReport report = run_plan(plan, testing::reference_kernels(), {}).value();
  CHECK(report.bytes_read == 50 * kBudget);
  CHECK(report.peak_budget <= kBudget);
  CHECK(report.peak_budget > kBudget / 2);  // and the budget is used
  if (!has_sanitizer()) CHECK(peak_resident_bytes() < kBudget + 64 * kMiB);
}

TEST_CASE("a tensor of many times the budget is transposed within it") {
  constexpr std::uint64_t kBudget = 16 * kMiB;
  const std::uint64_t columns = 8192, rows = 8192;  // in F16: 8 times the budget
  TempDir folder;
  const std::string path = folder.file("source.gguf");
  { std::ofstream file(path); }
  fs::resize_file(path, columns * rows * 2);  // a hole of zeros, without disk space
  Model model;
  model.files.push_back(InputFile::open(path).value()->describe());
  const auto values =
      expressions::extent(type_named("F16"), shape_of({columns, rows}), {model.files[0], 0, columns * rows * 2, false});
  Tensor& tensor = model.tensors.emplace_back();
  tensor.name = "turned";
  tensor.expression = expressions::transpose(values.value(), {1, 0}).value();
  tensor.type = tensor.expression->type;
  Plan plan = testing::plan_for(model, {{"Q4_0"}}, folder.path(), kBudget);
  REQUIRE(plan.least_memory < kBudget);
  plan.limits.threads = 2;
  const auto report = run_plan(plan, testing::reference_kernels(), {});
  if (!report) FAIL(render(report.error()));
  CHECK(report.value().bytes_read == columns * rows * 2);
  CHECK(report.value().peak_budget > kBudget / 8);
  if (!has_sanitizer()) CHECK(peak_resident_bytes() < kBudget + 64 * kMiB);
}
