#pragma once
// Complete reads and writes at a position, and their errors. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

// A read or write request to the system: `bytes` bytes at `offset`, of which at least the first `least` must be
// transferred (direct reads request whole blocks, and a file may end within its last block). `data` is not modified by
// a write.
struct Transfer {
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t least = 0;

  // Returns the remainder of the transfer after `done` bytes.
  Transfer after(std::size_t done) const;
};

// Block; continue after EINTR and short transfers until `least` bytes are done. `path` is for messages.
Status read_all(Transfer transfer, const std::string& path);
Status write_all(Transfer transfer, const std::string& path);
Status write_all(int descriptor, const std::string& path, std::uint64_t offset, std::span<const std::byte> from);

// An open file that is written at positions, by its own write() or by other means. Thread-safe for disjoint ranges.
class WriteTarget {
 public:
  virtual ~WriteTarget() = default;
  virtual const std::string& path() const = 0;  // for messages
  // Blocks; writes all bytes or fails.
  Status write(std::uint64_t offset, std::span<const std::byte> from);
  // For callers that write by other means: begin_write() returns the transfer to request from the system, and
  // end_write() is called once it has completed.
  virtual Result<Transfer> begin_write(std::uint64_t offset, std::span<const std::byte> from) = 0;
  virtual void end_write(std::uint64_t offset, std::size_t bytes) = 0;
};

// Error: the file ends before the requested `bytes` at `offset` (exit code 4).
Error ends_early(const std::string& path, std::uint64_t offset, std::uint64_t bytes);
// Exit code 6.
Error read_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value);
Error write_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value);
// Error: the file system of `path` does not support direct I/O (exit code 6).
Error no_direct_io(const std::string& path);

}  // namespace ggufmill
