// The fuzzer's entry over the seeds and over damage that is the same in every run.

#include "tests/fuzz/gguf_entry.h"
#include "tests/fuzz/safetensors_entry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("no safetensors file, damaged or not, breaks the reader") {
  const std::vector<std::string> seeds = safetensors_seeds();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    for (std::uint64_t k = 0; k <= 1000; ++k) {
      const std::string problem = fuzz_safetensors(k == 0 ? seeds[i] : damaged(seeds[i], i * 1000000 + k));
      CAPTURE(i, k, problem);
      REQUIRE(problem.empty());
    }
  }
}
