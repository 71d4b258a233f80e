#pragma once
// Input files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/io/byte_source.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {

// Name of a kind of file: "a file", "a folder", "a pipe", "a socket", "a device".
std::string_view name_of(FileStatus::Kind kind);
// Same for a local path, or "a broken link"; empty if nothing exists there, or if `path` is an address.
std::string_view kind_of_path(const std::string& path);

// Collects the local files that this thread opens as an InputFile while the object exists: all that planning a job
// reads, whichever stage reads it. An inner one does not hide them from an outer one.
class OpenedFiles {
 public:
  OpenedFiles();
  ~OpenedFiles();
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;
  // The paths as they were opened, without duplicates, in the order of first use.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  friend class InputFile;
  static void add(const std::string& path);
  OpenedFiles* const outer_;
  std::vector<std::string> paths_;
};

// A regular file opened for reading. Anything else (folder, pipe, device) is refused; links to regular files are
// followed. Thread-safe.
class InputFile final : public ByteSource {
 public:
  // Exit code 4 if the file is missing or not a regular file, 6 if the system refuses to open it, for example with
  // direct I/O.
  static Result<std::shared_ptr<const InputFile>> open(const std::string& path, IoMode mode = IoMode::kCached);

  const SourceRef& describe() const override { return description_; }
  Status check_unchanged() const override;
  std::size_t request_bytes() const override { return 2 << 20; }
  // Retries after EINTR and short reads. In direct I/O mode, bypasses the page cache if the address of `into` has the
  // same offset within a memory page as `offset` has within a block. The read may then write anywhere in the pages that
  // contain `into`, which must belong to the caller (Buffer with a phase).
  Status read(std::uint64_t offset, std::span<std::byte> into) const override;
  bool read_if_cached(std::uint64_t offset, std::span<std::byte> into) const override;
  void start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const override;

  // For callers that read by other means: begin_read() returns the transfer to request from the system (with the errors
  // of read()), and end_read() is called once it has completed.
  Result<Transfer> begin_read(std::uint64_t offset, std::span<std::byte> into) const;
  void end_read(std::uint64_t offset, std::size_t bytes) const;

 private:
  // Number of leading bytes whose hash is part of the file's identity.
  static constexpr std::size_t kHashedBytes = 1 << 20;

  InputFile(std::string path, std::uint64_t bytes, Descriptor descriptor, IoMode mode)
      : path_(std::move(path)), bytes_(bytes), descriptor_(std::move(descriptor)), mode_(mode) {}
  Status open_direct();
  Result<SourceFile> identity() const;
  Result<std::int64_t> inode_time() const;

  std::string path_;
  std::uint64_t bytes_;
  Descriptor descriptor_, direct_;  // the second is open in direct I/O mode only
  IoMode mode_;
  SourceRef description_;
  std::int64_t inode_time_ = 0;  // ctime when the file was opened
};

}  // namespace ggufmill
