// The libFuzzer targets: ./X_fuzzer FOLDER (a corpus; ./X_seeds creates the first one). GGUFMILL_ENTRY names the entry
// point.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz.h"

// NOLINTNEXTLINE(readability-identifier-naming): the fuzzer looks for this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string problem = ggufmill::GGUFMILL_ENTRY({reinterpret_cast<const char*>(data), bytes});
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}
