#include "pipeline/kernels/check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "pipeline/kernels/check/hard_inputs.h"
#include "pipeline/kernels/check/kernel_run.h"

namespace ggufmill::conformance {
namespace {

struct Pair {
  const ggufmill_kernel& expected;
  const ggufmill_kernel& tested;
};

bool both_nan(const Bytes& a, const Bytes& b, std::size_t at) {
  float x, y;
  std::memcpy(&x, a.data() + at / 4 * 4, 4);
  std::memcpy(&y, b.data() + at / 4 * 4, 4);
  return std::isnan(x) && std::isnan(y);
}

std::optional<std::size_t> first_difference(const Bytes& a, const Bytes& b, bool any_nan) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(any_nan && both_nan(a, b, i))) return i;
  return std::nullopt;
}

class Comparison {
 public:
  Comparison(const CompareOptions& options, CompareResult& result)
      : seed_(options.seed), random_(options.seed), result_(result) {}

  // Runs one shape with all kinds of input.
  void run(const Pair& pair) {
    const std::uint64_t rows = 1 + random_.below(4);
    const bool is_small = pair.tested.block_elements <= 32 && !is_search(pair.tested);
    const std::uint64_t most = pair.tested.block_elements == 1 ? 100 : is_small ? 24 : 6;
    const std::uint64_t cols = (1 + random_.below(most)) * pair.tested.block_elements;
    if (pair.tested.operation == GGUFMILL_DECODE || pair.tested.block_elements == 1)
      compare(pair, {random_bytes(random_, rows * source_row_bytes(pair.tested, cols)), rows, cols, {}}, "any bytes");
    if (pair.tested.operation == GGUFMILL_DECODE) return;
    for (int kind = 0; kind < kInputKinds; ++kind) encode(pair, static_cast<InputKind>(kind), rows, cols);
  }

  // Runs as many rows as fill lanes of vectors and more, and rows as long as those of large models, on ordinary input.
  void run_large(const Pair& pair) {
    const std::uint64_t block = pair.tested.block_elements;
    for (const std::uint64_t rows : kNumbersOfRows) run_ordinary(pair, rows, (1 + random_.below(3)) * block);
    for (const Shape shape : long_shapes(pair.tested)) run_ordinary(pair, shape.rows, shape.blocks * block);
  }

 private:
  void run_ordinary(const Pair& pair, std::uint64_t rows, std::uint64_t cols) {
    if (pair.tested.operation == GGUFMILL_DECODE)
      return compare(pair, {random_bytes(random_, rows * source_row_bytes(pair.tested, cols)), rows, cols, {}},
                     "any bytes");
    const std::vector<float> values = hard_input(InputKind::kWeights, random_, rows * cols);
    Work work{std::as_bytes(std::span(values)), rows, cols, {}};
    const std::string input = name_of(InputKind::kWeights);
    if (!(pair.tested.flags & GGUFMILL_NEEDS_IMPORTANCE)) compare(pair, work, input);
    if (pair.tested.flags == 0) return;
    const std::vector<float> importance = hard_importance(ImportanceKind::kOrdinary, random_, cols);
    work.importance = importance;
    compare(pair, work, input + ", with importance");
  }

  void encode(const Pair& pair, InputKind kind, std::uint64_t rows, std::uint64_t cols) {
    const std::vector<float> values = hard_input(kind, random_, rows * cols);
    const Work work{std::as_bytes(std::span(values)), rows, cols, {}};
    if (!(pair.tested.flags & GGUFMILL_NEEDS_IMPORTANCE)) compare_all(pair, work, name_of(kind));
    if (pair.tested.flags == 0) return;
    compare_weighted(pair, work, kind, ImportanceKind::kOrdinary);
    compare_weighted(pair, work, kind, static_cast<ImportanceKind>(1 + random_.below(kImportanceKinds - 1)));
  }

  void compare_weighted(const Pair& pair, Work work, InputKind kind, ImportanceKind importance_kind) {
    const std::vector<float> importance = hard_importance(importance_kind, random_, work.cols);
    work.importance = importance;
    compare_all(pair, work, fmt::format("{}, with {}", name_of(kind), name_of(importance_kind)));
  }

  // With all efforts and weights of a search.
  void compare_all(const Pair& pair, Work work, const std::string& input) {
    if (!is_search(pair.tested)) return compare(pair, work, input);
    for (work.effort = 1; work.effort <= 3; ++work.effort)
      for (work.weights = 0; work.weights <= GGUFMILL_WEIGHTS_PLAIN; ++work.weights)
        compare(pair, work, fmt::format("{}, effort {}, weights {}", input, work.effort, work.weights));
  }

  void compare(const Pair& pair, const Work& work, const std::string& input) {
    ++result_.calls;
    const Outcome expected = try_kernel(pair.expected, work);
    const Outcome tested = try_kernel(pair.tested, work);
    const std::string found = difference(pair.tested, expected, tested);
    if (!found.empty())
      result_.differences.push_back(fmt::format("{}, seed {}, input {}, {} rows of {}: {}", describe(pair.tested),
                                                seed_, input, work.rows, work.cols, found));
  }

  std::uint64_t seed_;
  Random random_;
  CompareResult& result_;
};

}  // namespace

std::string difference(const ggufmill_kernel& kernel, const Outcome& expected, const Outcome& tested) {
  if (expected.status != tested.status) return fmt::format("status {} instead of {}", tested.status, expected.status);
  if (expected.status != GGUFMILL_OK) return {};
  const bool any_nan = kernel.operation == GGUFMILL_DECODE && kernel.block_elements > 1;
  const auto at = first_difference(expected.bytes, tested.bytes, any_nan);
  return at ? fmt::format("byte {} differs", *at) : "";
}

void compare_kernels(const ggufmill_kernel& expected, const ggufmill_kernel& tested, const CompareOptions& options,
                     CompareResult& result, std::size_t most) {
  // Each kernel starts from the seed, so that running it alone reproduces its inputs.
  Comparison comparison(options, result);
  const std::uint64_t step = is_search(tested) ? 5 : 1;
  for (std::uint64_t round = 0; round < options.rounds && result.differences.size() < most; round += step)
    comparison.run({expected, tested});
  if (result.differences.size() < most) comparison.run_large({expected, tested});
}

CompareResult compare_modules(KernelList expected, KernelList tested, const CompareOptions& options) {
  CompareResult result;
  for (const ggufmill_kernel& kernel : tested) {
    if (!options.type.empty() && options.type != kernel.name) continue;
    ++result.kernels;
    if (const ggufmill_kernel* namesake = find_counterpart(expected, kernel))
      compare_kernels(*namesake, kernel, options, result);
    else
      result.differences.push_back(fmt::format("{}: has no counterpart", describe(kernel)));
  }
  return result;
}

}  // namespace ggufmill::conformance
