#pragma once
// What is fuzzed of safetensors files, by the fuzzer and by the regression test alike.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// Reads `bytes` as a file, and when they are a checkpoint lays it out and reads that back. Returns what is broken: an
// error without its parts, a tensor outside the file, or tensors that do not come back the same; else nothing.
std::string fuzz_safetensors(std::string_view bytes);

// Good files, and hostile ones.
std::vector<std::string> safetensors_seeds();

}  // namespace ggufmill
