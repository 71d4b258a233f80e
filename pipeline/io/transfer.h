#pragma once
// Whole reads and writes at a position, and the errors of both. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

// What is asked of the system for a read or write: `bytes` at `offset`, of which the first `least` must arrive (direct
// reads ask for whole blocks, and a file may end within its last). `data` is not written to where the file is written.
struct Transfer {
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t least = 0;

  // What is left of it when `done` bytes are there.
  Transfer after(std::size_t done) const;
};

// Blocking; go on after EINTR and short transfers until enough is done. `path` is for messages.
Status read_all(Transfer transfer, const std::string& path);
Status write_all(Transfer transfer, const std::string& path);
Status write_all(int descriptor, const std::string& path, std::uint64_t offset, std::span<const std::byte> from);

// An open file that is written at positions, by its own write() or by other means. Thread-safe for disjoint ranges.
class WriteTarget {
 public:
  virtual ~WriteTarget() = default;
  virtual const std::string& path() const = 0;  // for messages
  // Blocking: all of it, or an error.
  Status write(std::uint64_t offset, std::span<const std::byte> from);
  // For those who write by other means: what to ask the system for, and what to call when it is done.
  virtual Result<Transfer> begin_write(std::uint64_t offset, std::span<const std::byte> from) = 0;
  virtual void end_write(std::uint64_t offset, std::size_t bytes) = 0;
};

// `bytes` at `offset` were wanted of a file that ends before (exit code 4).
Error ends_early(const std::string& path, std::uint64_t offset, std::uint64_t bytes);
// Exit code 6.
Error read_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value);
Error write_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value);
// The file system of `path` has no direct I/O (exit code 6).
Error no_direct_io(const std::string& path);

}  // namespace ggufmill
