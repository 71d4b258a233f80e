#pragma once
// What is fuzzed of the GGUF format, by the fuzzer and by the regression test alike.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// Reads `bytes` as a file, and when they are a model lays it out and reads that back. Returns what is broken: an error
// without its parts, a tensor outside the file, or a model that does not come back the same; else nothing.
std::string fuzz_gguf(std::string_view bytes);

// Good files of every version and byte order, and all hostile ones.
std::vector<std::string> gguf_seeds();

// `bytes` with some damage that depends on `seed` alone.
std::string damaged(std::string bytes, std::uint64_t seed);

}  // namespace ggufmill
