// The libFuzzer target: ./tokenizer_model_fuzzer FOLDER (a corpus; tokenizer_seeds makes the first one).

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/tokenizer_entry.h"

// NOLINTNEXTLINE(readability-identifier-naming): the fuzzer looks for this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string problem = ggufmill::fuzz_tokenizer_model({reinterpret_cast<const char*>(data), bytes});
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}
