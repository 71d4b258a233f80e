// The fuzzer's entry over the seeds and over damage that is the same in every run.

#include "tests/fuzz/gguf_entry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("no seed breaks the reader") {
  for (const std::string& seed : gguf_seeds()) {
    const std::string problem = fuzz_gguf(seed);
    CAPTURE(problem);
    CHECK(problem.empty());
  }
}

TEST_CASE("no damaged file breaks the reader") {
  constexpr std::uint64_t kTimes = 60;
  const std::vector<std::string> seeds = gguf_seeds();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    // Damage to the good files, which come first, gets deepest.
    const std::uint64_t times = i < 7 ? 30 * kTimes : kTimes;
    for (std::uint64_t k = 0; k < times; ++k) {
      const std::string problem = fuzz_gguf(damaged(seeds[i], i * 1000000 + k));
      CAPTURE(i, k, problem);
      REQUIRE(problem.empty());
    }
  }
}
