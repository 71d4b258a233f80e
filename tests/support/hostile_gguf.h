#pragma once
// GGUF files that are wrong in every way known to have broken a reader. Each must give exactly one error with exit code
// 4, the text `says`, and the byte offset `at`.

#include <cstdint>
#include <string>
#include <vector>

namespace ggufmill {

struct HostileFile {
  std::string name;
  std::string bytes;
  std::string says;      // part of the error's first line
  std::uint64_t at = 0;  // byte offset in the error
};

// Returns single files, in versions 1 and 3 and both byte orders if that makes a difference.
std::vector<HostileFile> hostile_files();

}  // namespace ggufmill
