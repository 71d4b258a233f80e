#pragma once
// Provides the input of a fuzzer as a file, and checks the errors about it.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"

namespace ggufmill {

// An unnamed file in memory that behaves like a regular file.
class MemoryFile {
 public:
  // Pads the file with zeros up to `size`.
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

  // Describes the defect of an error about this file: it must name the file, and report in one line that the input is
  // bad. Returns an empty string if the error is correct.
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
