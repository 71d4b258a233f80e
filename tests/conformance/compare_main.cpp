// kernel_compare: compares two modules byte by byte on the same random inputs. Prints the seed, so that a difference
// can be reproduced; succeeds if there is none.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>

#include "pipeline/kernels/check/compare.h"
#include "pipeline/kernels/check/kernel_run.h"
#include "plugins/reference/reference.h"
#include "tests/support/module_file.h"
#include "tests/support/skip.h"

namespace {

using namespace ggufmill;
using namespace ggufmill::conformance;

constexpr const char* kUsage =
    "usage: kernel_compare [--expected MODULE.so] [--seed N] [--rounds N] [--type NAME] MODULE.so\n"
    "  --expected  what MODULE is compared with (the reference that is linked in)\n"
    "  --seed      of the random inputs (from the clock)\n"
    "  --rounds    shapes for each kernel (20)\n";

struct Arguments {
  std::string expected;
  std::string tested;
  CompareOptions options;
};

Arguments parse(int count, char** words) {
  Arguments arguments;
  arguments.options.seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  arguments.options.rounds = 20;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--expected" && has_value)
      arguments.expected = words[++i];
    else if (word == "--seed" && has_value)
      arguments.options.seed = std::stoull(words[++i]);
    else if (word == "--rounds" && has_value)
      arguments.options.rounds = std::stoull(words[++i]);
    else if (word == "--type" && has_value)
      arguments.options.type = words[++i];
    else
      arguments.tested = word;
  }
  if (arguments.tested.empty() || arguments.tested.starts_with("--")) throw std::runtime_error(kUsage);
  return arguments;
}

int run(const Arguments& arguments) {
  std::optional<ModuleFile> expected;
  if (!arguments.expected.empty()) expected.emplace(arguments.expected);
  const ModuleFile tested(arguments.tested);
  if (const std::string missing = missing_here(tested.module()); !missing.empty()) {
    fmt::print("skipped: {} needs {}, which this machine does not have\n", arguments.tested, missing);
    return kSkippedExitCode;
  }
  fmt::print("seed {}\n", arguments.options.seed);
  const CompareResult result = compare_modules(kernels_of(expected ? expected->module() : ggufmill_reference_module),
                                               kernels_of(tested.module()), arguments.options);
  for (const std::string& line : result.differences) fmt::print("{}\n", line);
  fmt::print("{} kernels, {} calls, {} differences\n", result.kernels, result.calls, result.differences.size());
  return result.kernels > 0 && result.differences.empty() ? 0 : 1;
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
