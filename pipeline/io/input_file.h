#pragma once
// Input files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/core/io_mode.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {

// A regular file opened for reading. Anything else (folder, pipe, device) is refused; links to regular files are
// followed. Thread-safe.
class InputFile {
 public:
  // Exit code 4 for what is missing or not a regular file, 6 for what the system refuses, which direct I/O may be.
  static Result<std::shared_ptr<const InputFile>> open(const std::string& path, IoMode mode = IoMode::kCached);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }  // when it was opened
  // Blocking; fills all of `into` or fails (kBadInput when the file ends early). Retries EINTR and short reads. Direct:
  // `into` starts at the same place of a memory page as `offset` of a block, and the pages it lies in are the caller's
  // (Buffer with a phase).
  Status read(std::uint64_t offset, std::span<std::byte> into) const;

  // The same without ever waiting for a disk: false, whatever is in `into` by then, where not all of it is in the page
  // cache, or the system cannot tell; or where read() has an error to give.
  bool read_if_cached(std::uint64_t offset, std::span<std::byte> into) const;

  // For those who read by other means: what to ask the system for (the same errors as of read()), and the word that it
  // is there.
  Result<Extent> begin_read(std::uint64_t offset, std::span<std::byte> into) const;
  void end_read(std::uint64_t offset, std::size_t bytes) const;

 private:
  InputFile(std::string path, std::uint64_t bytes, int descriptor, IoMode mode);
  std::string path_;
  std::uint64_t bytes_;
  int descriptor_;
  IoMode mode_;
};

}  // namespace ggufmill
