#pragma once
// What a fuzzer reads, as a file.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ggufmill {

// A file without a name, in memory; a regular file all the same.
class MemoryFile {
 public:
  // Zeros up to `size`.
  MemoryFile(std::string_view bytes, std::uint64_t size) : descriptor_(::memfd_create("fuzzed", MFD_CLOEXEC)) {
    good_ = descriptor_ >= 0 &&
            ::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
            ::ftruncate(descriptor_, static_cast<off_t>(size)) == 0;
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }
  bool good() const { return good_; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
  bool good_;
};

}  // namespace ggufmill
