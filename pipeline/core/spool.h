#pragma once
// A folder for bytes that wait to be uploaded and do not fit into memory.

#include <cstdint>
#include <string>

namespace ggufmill {

struct Spool {
  std::string folder;                 // empty: none
  std::uint64_t size = kDefaultSize;  // most bytes in it at a time

  static constexpr std::uint64_t kDefaultSize = 16ull << 30;
};

}  // namespace ggufmill
