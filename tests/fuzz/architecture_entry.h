#pragma once
// What is fuzzed of the maps of architectures, by the fuzzer and by the regression test alike.

#include <string>
#include <string_view>

namespace ggufmill {

// Reads `yaml` as a map, and when it is one makes metadata and tensors of a small checkpoint by it. Returns what is
// broken: an error without its parts, or tensors of one name; else nothing.
std::string fuzz_architecture(std::string_view yaml);

}  // namespace ggufmill
