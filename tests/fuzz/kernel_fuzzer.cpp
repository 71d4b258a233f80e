// The libFuzzer target: ./kernel_fuzzer FOLDER (a corpus; kernel_seeds makes the first one).

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/kernel_entry.h"

// NOLINTNEXTLINE(readability-identifier-naming): the fuzzer looks for this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const ggufmill::KernelFuzz fuzz;
  const std::string problem = fuzz.run(std::as_bytes(std::span(data, bytes)));
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}
