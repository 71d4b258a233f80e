#include "tests/conformance/contract.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/conformance/hard_inputs.h"
#include "tests/conformance/kernel_run.h"

namespace ggufmill::conformance {
namespace {

constexpr std::uint64_t kRows = 3;

void note(bool right, const std::string& subject, const char* violation, ContractResult& result) {
  ++result.checks;
  if (!right) result.violations.push_back(fmt::format("{}: {}", subject, violation));
}

Bytes source_for(const ggufmill_kernel& kernel, std::uint64_t cols, Random& random) {
  if (kernel.operation == GGUFMILL_DECODE) return random_bytes(random, kRows * source_row_bytes(kernel, cols));
  const std::vector<float> values = hard_input(InputKind::kWeights, random, kRows * cols);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Bytes row_by_row(const ggufmill_kernel& kernel, const Work& work) {
  const std::uint64_t step = source_row_bytes(kernel, work.cols);
  Bytes all;
  for (std::uint64_t row = 0; row < work.rows; ++row) {
    const Bytes one = run_kernel(kernel, {work.source.subspan(row * step, step), 1, work.cols, work.importance});
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void check_runs(const ggufmill_kernel& kernel, const Work& work, ContractResult& result) {
  using Side = GuardedBuffer::Side;
  const std::string subject =
      fmt::format("{}, rows of {}{}", describe(kernel), work.cols, work.importance.empty() ? "" : ", with importance");
  const Bytes bytes = run_kernel(kernel, work, {Side::kEnd}, std::byte{0xa5});
  note(bytes == run_kernel(kernel, work, {Side::kEnd}, std::byte{0x5a}), subject, "leaves target bytes unwritten",
       result);
  note(bytes == run_kernel(kernel, work, {Side::kFront}), subject, "depends on the address", result);
  note(bytes == run_kernel(kernel, work, {Side::kEnd, true}), subject, "depends on the alignment", result);
  note(bytes == row_by_row(kernel, work), subject, "depends on the number of rows", result);
}

void check_kernel(const ggufmill_kernel& kernel, Random& random, ContractResult& result) {
  for (std::uint64_t blocks : {1, 2, 7}) {
    const std::uint64_t cols = blocks * kernel.block_elements;
    const Bytes source = source_for(kernel, cols, random);
    if (!(kernel.flags & GGUFMILL_NEEDS_IMPORTANCE)) check_runs(kernel, {source, kRows, cols, {}}, result);
    if (kernel.flags != 0) check_runs(kernel, {source, kRows, cols, hard_importance(random, cols)}, result);
  }
}

bool is_known_operation(std::uint32_t operation) {
  return operation == GGUFMILL_DECODE || operation == GGUFMILL_ENCODE;
}

void check_statistics(const ggufmill_module& module, ContractResult& result) {
  note(module.magic == GGUFMILL_MAGIC && module.struct_size == sizeof(ggufmill_module) &&
           module.abi_major == GGUFMILL_ABI_MAJOR && module.kernel_size == sizeof(ggufmill_kernel),
       "module", "magic, sizes or ABI are wrong", result);
  for (const ggufmill_kernel& kernel : kernels_of(module)) {
    note(is_known_operation(kernel.operation) && kernel.block_elements > 0 && kernel.block_bytes > 0 &&
             kernel.run != nullptr,
         describe(kernel), "its figures are wrong", result);
    note(kernel.operation == GGUFMILL_ENCODE || kernel.flags == 0, describe(kernel), "a decoder has flags", result);
    note(find_counterpart(module, kernel) == &kernel, describe(kernel), "is there twice", result);
  }
}

}  // namespace

ContractResult check_contract(const ggufmill_module& module, std::uint64_t seed) {
  ContractResult result;
  check_statistics(module, result);
  if (!result.violations.empty()) return result;
  Random random(seed);
  for (const ggufmill_kernel& kernel : kernels_of(module)) check_kernel(kernel, random, result);
  return result;
}

}  // namespace ggufmill::conformance
