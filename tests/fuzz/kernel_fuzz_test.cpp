// Runs the fuzzer's entry point on its seeds. `fuzz_kernels_test '[random]'` draws others from the clock.

#include <fmt/format.h>

#include <chrono>

#include "tests/fuzz/kernel_entry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

void check_seeds(const KernelFuzz& fuzz, std::uint64_t seed) {
  std::size_t number = 0;
  for (const std::vector<std::byte>& input : fuzz.seeds(seed)) {
    const std::string problem = fuzz.run(input);
    CAPTURE(seed, number, problem);
    CHECK(problem.empty());
    ++number;
  }
}

}  // namespace

TEST_CASE("all modules agree on the seeds") {
  const KernelFuzz fuzz;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) check_seeds(fuzz, seed);
}

TEST_CASE("all modules agree on inputs of this run", "[.random]") {
  constexpr int kTimes = 5;
  const KernelFuzz fuzz;
  const auto seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  fmt::print("{}; seeds from {}\n{}", fuzz.modules(), seed, fuzz.refused());
  for (int i = 0; i < kTimes; ++i) check_seeds(fuzz, seed + static_cast<std::uint64_t>(i));
}

TEST_CASE("no input is too short") {
  const KernelFuzz fuzz;
  for (std::size_t bytes = 0; bytes < 8; ++bytes) {
    const std::vector<std::byte> input(bytes, std::byte{3});
    CHECK(fuzz.run(input).empty());
  }
}
