#pragma once
// GGUF files that are wrong in every way known to have broken a reader. Each must give one error: exit code 4, the
// words in `says`, at the byte `at`.

#include <cstdint>
#include <string>
#include <vector>

namespace ggufmill {

struct HostileFile {
  std::string name;
  std::string bytes;
  std::string says;      // is in the error's first line
  std::uint64_t at = 0;  // the byte offset that the error names
};

// Of a single file, in versions 1 and 3 and both byte orders where that matters.
std::vector<HostileFile> hostile_files();

}  // namespace ggufmill
