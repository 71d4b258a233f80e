#pragma once
// What a fuzzer reads, as a file, and what must be said of it where it is wrong.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"

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

  // What is wrong with an error about it: it names the file, and says in one line that the input is bad. Else nothing.
  std::string problem_of(const Error& error) const {
    const bool clear = error.code == ExitCode::kBadInput && error.where == path() && !error.what.empty() &&
                       error.what.find('\n') == std::string::npos;
    return clear ? "" : "not a clear error: " + render(error);
  }

 private:
  int descriptor_;
  bool good_;
};

}  // namespace ggufmill
