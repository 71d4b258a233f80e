#pragma once
// Input files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/io/byte_source.h"
#include "pipeline/io/descriptor.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {

// What an st_mode is of: "a file", "a folder", "a pipe", "a socket", "a device".
std::string_view kind_of_mode(unsigned mode);
// The same of what is at a path of this machine, or "a broken link"; empty where nothing is, and for an address.
std::string_view kind_of_path(const std::string& path);

// A regular file opened for reading. Anything else (folder, pipe, device) is refused; links to regular files are
// followed. Thread-safe.
class InputFile final : public ByteSource {
 public:
  // Exit code 4 for what is missing or not a regular file, 6 for what the system refuses, which direct I/O may be.
  static Result<std::shared_ptr<const InputFile>> open(const std::string& path, IoMode mode = IoMode::kCached);

  const SourceRef& describe() const override { return description_; }
  Status check_unchanged() const override;
  std::size_t request_bytes() const override { return 2 << 20; }
  // Retries EINTR and short reads. With direct I/O, past the page cache where `into` starts at the same place of a
  // memory page as `offset` of a block; the pages it lies in are then the caller's (Buffer with a phase).
  Status read(std::uint64_t offset, std::span<std::byte> into) const override;
  bool read_if_cached(std::uint64_t offset, std::span<std::byte> into) const override;
  void start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const override;

  // For those who read by other means: what to ask the system for (with the errors of read()), and what to call when it
  // is there.
  Result<Transfer> begin_read(std::uint64_t offset, std::span<std::byte> into) const;
  void end_read(std::uint64_t offset, std::size_t bytes) const;

 private:
  // Bytes at the beginning whose hash is a part of what a file is.
  static constexpr std::size_t kHashedBytes = 1 << 20;

  InputFile(std::string path, std::uint64_t bytes, Descriptor descriptor, IoMode mode)
      : path_(std::move(path)), bytes_(bytes), descriptor_(std::move(descriptor)), mode_(mode) {}
  Status open_direct();
  Result<SourceFile> identity() const;
  Result<std::int64_t> inode_time() const;

  std::string path_;
  std::uint64_t bytes_;
  Descriptor descriptor_, direct_;  // the second only with direct I/O
  IoMode mode_;
  SourceRef description_;
  std::int64_t inode_time_ = 0;  // when it was opened
};

}  // namespace ggufmill
