// kernel_conformance: checks every named module, or the linked-in reference, against the golden digests and the
// contract of the ABI. Prints N of N; succeeds if nothing is wrong and, with --complete, nothing is missing.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>

#include "pipeline/kernels/check/kernel_checks.h"
#include "pipeline/kernels/check/kernel_run.h"
#include "plugins/reference/reference.h"
#include "tests/conformance/golden_check.h"
#include "tests/support/module_file.h"
#include "tests/support/skip.h"

namespace {

using namespace ggufmill;
using namespace ggufmill::conformance;

constexpr const char* kUsage =
    "usage: kernel_conformance [--table FILE] [--encoder NAME] [--complete] [--without TYPE ...] [MODULE.so ...]\n"
    "  --table FILE  the golden figures (tests/golden/kernels.tsv)\n"
    "  --encoder     checks the encoders of that name instead of the default ones\n"
    "  --complete    a case whose type the module has no kernel for is a failure\n"
    "  --without     cases of TYPE are left out\n"
    "without a module: the reference that is linked in\n";

struct Options {
  std::string table = "tests/golden/kernels.tsv";
  std::string encoder;
  bool complete = false;
  std::vector<std::string> without;
  std::vector<std::string> modules;
};

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--complete")
      options.complete = true;
    else if (word == "--without" && i + 1 < count)
      options.without.push_back(words[++i]);
    else if (word == "--table" && i + 1 < count)
      options.table = words[++i];
    else if (word == "--encoder" && i + 1 < count)
      options.encoder = words[++i];
    else if (word.starts_with("--"))
      throw std::runtime_error(kUsage);
    else
      options.modules.push_back(word);
  }
  return options;
}

void print_tally(const char* what, const Tally& tally) {
  fmt::print("  {}: {} of {}", what, tally.right, tally.cases);
  if (tally.lacking > 0) fmt::print(" ({} cases of types without a kernel)", tally.lacking);
  fmt::print("\n");
  for (const std::string& line : tally.wrong) fmt::print(stderr, "{}: {}\n", what, line);
}

bool is_right(const Tally& tally, bool complete) {
  return tally.wrong.empty() && tally.cases > 0 && !(complete && tally.lacking > 0);
}

// The bytes are those of the golden table; kernel_compare checks them on more inputs.
bool check_rules(const ggufmill_module& module) {
  std::size_t checks = 0, violations = 0;
  for (const ConformanceResult& result : check_kernels(kernels_of(module), {})) {
    if (result.finding.kind == Finding::Kind::kSkipped) continue;
    ++checks;
    if (result.finding.kind == Finding::Kind::kPassed) continue;
    ++violations;
    fmt::print(stderr, "rules: {} {} {}: {}: {}\n", result.operation, result.type, result.encoder, result.check,
               result.finding.detail);
  }
  fmt::print("  rules: {} of {}\n", checks - violations, checks);
  return violations == 0;
}

bool check(const ggufmill_module& module, const std::vector<GoldenRow>& rows, const Options& options) {
  fmt::print("{} {} ({}), {} kernels\n", module.name, module.version, module.isa, module.kernel_count);
  const GoldenResult golden = check_golden(module, ggufmill_reference_module, rows, options.encoder);
  print_tally("quantized", golden.quantized);
  print_tally("dequantized", golden.dequantized);
  const bool follows_rules = check_rules(module);
  return is_right(golden.quantized, options.complete) && is_right(golden.dequantized, options.complete) &&
         follows_rules;
}

int run(const Options& options) {
  std::vector<GoldenRow> rows = load_golden_table(options.table);
  std::erase_if(rows, [&](const GoldenRow& row) { return std::ranges::count(options.without, row.type) > 0; });
  if (options.modules.empty()) return check(ggufmill_reference_module, rows, options) ? 0 : 1;
  bool right = true, skipped = false;
  for (const std::string& path : options.modules) {
    const ModuleFile file(path);
    if (const std::string missing = missing_here(file.module()); !missing.empty()) {
      fmt::print("skipped: {} needs {}, which this machine does not have\n", path, missing);
      skipped = true;
      continue;
    }
    right = check(file.module(), rows, options) && right;
  }
  return !right ? 1 : skipped ? kSkippedExitCode : 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(parse(count, words));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
