#pragma once
// Input files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

// A regular file opened for reading. Anything else (folder, pipe, device) is refused; links to regular files are
// followed. Thread-safe.
class InputFile {
 public:
  // Exit code 4 for what is missing or not a regular file, 6 for what the system refuses.
  static Result<std::shared_ptr<const InputFile>> open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }  // when it was opened
  int descriptor() const { return descriptor_; }
  // Blocking; fills all of `into` or fails (kBadInput when the file ends early). Retries EINTR and short reads.
  Status read(std::uint64_t offset, std::span<std::byte> into) const;
  // Whether `bytes` at `offset` lie in the file: the same error as of read().
  Status check(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  InputFile(std::string path, std::uint64_t bytes, int descriptor);
  std::string path_;
  std::uint64_t bytes_;
  int descriptor_;
};

}  // namespace ggufmill
