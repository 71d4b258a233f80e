// The fuzzers' entries over the seeds and over damage that is the same in every run.

#include "tests/fuzz/gguf_entry.h"
#include "tests/fuzz/tokenizer_entry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

void check(const std::vector<std::string>& seeds, std::string (*fuzz)(std::string_view), std::uint64_t times) {
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    for (std::uint64_t k = 0; k <= times; ++k) {
      const std::string problem = fuzz(k == 0 ? seeds[i] : damaged(seeds[i], i * 1000000 + k));
      CAPTURE(i, k, problem);
      REQUIRE(problem.empty());
    }
  }
}

}  // namespace

TEST_CASE("no tokenizer.json, damaged or not, breaks the reader") {
  check(tokenizer_json_seeds(), fuzz_tokenizer_json, 1000);
}

TEST_CASE("no tokenizer.model, damaged or not, breaks the reader") {
  check(tokenizer_model_seeds(), fuzz_tokenizer_model, 3000);
}
