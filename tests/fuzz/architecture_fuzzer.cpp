// The libFuzzer target: ./architecture_fuzzer FOLDER (a corpus; a copy of configs/architectures is a first one).

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/architecture_entry.h"

// NOLINTNEXTLINE(readability-identifier-naming): the fuzzer looks for this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string problem = ggufmill::fuzz_architecture({reinterpret_cast<const char*>(data), bytes});
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}
