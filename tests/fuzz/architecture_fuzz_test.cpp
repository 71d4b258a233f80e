// The fuzzer's entry over the maps that are built in, and over damage to them that is the same in every run.

#include "stages/huggingface/architecture.h"
#include "tests/fuzz/architecture_entry.h"
#include "tests/fuzz/gguf_entry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("no map of an architecture, damaged or not, breaks what reads it and what follows it") {
  std::uint64_t seed = 0;
  for (const huggingface::BuiltInArchitecture& each : huggingface::built_in_architectures()) {
    for (int times = 0; times < 20; ++times) {
      const std::string yaml = times == 0 ? std::string(each.text) : damaged(std::string(each.text), ++seed);
      const std::string problem = fuzz_architecture(yaml);
      CAPTURE(each.name, times, problem);
      REQUIRE(problem.empty());
    }
  }
}
