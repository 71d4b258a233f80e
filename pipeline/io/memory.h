#pragma once
// Memory for slabs: a budget of it, buffers, and what is kept of buffers that are gone.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// A budget of bytes, shared by everything that holds buffers. Acquire never blocks. Thread-safe.
class Budget {
 public:
  explicit Budget(std::uint64_t bytes) : bytes_(bytes) {}

  bool try_acquire(std::uint64_t bytes);  // false: not now, nothing is taken
  void release(std::uint64_t bytes);      // at most what was acquired
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t in_use() const;
  std::uint64_t peak() const;  // the most that was ever in use at once

 private:
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> in_use_{0};
  std::atomic<std::uint64_t> peak_{0};
};

// Page-aligned memory, given back to the system when destroyed but for a few MiB in all (SpareMemory), so that resident
// memory follows the budget. Movable; a moved-from buffer is empty.
class Buffer {
 public:
  Buffer() = default;
  // Contents undefined; std::bad_alloc when the system has no memory. It starts `phase` bytes into a page, and has all
  // of the pages that it lies in to itself.
  explicit Buffer(std::size_t bytes, std::size_t phase = 0);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // The same with an error (exit code 75: the memory may be there later) instead of an exception.
  static Result<Buffer> allocate(std::size_t bytes, std::size_t phase = 0);

  std::span<std::byte> span() const { return {data_, bytes_}; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t phase_ = 0;
};

// Keeps a few MiB of buffers that are gone for those that come: getting new pages from the kernel costs more time than
// copying as many bytes. Thread-safe.
class SpareMemory {
 public:
  // Within what a run may use beside its budget; enough for the few slabs that a run frees before it takes the next.
  static constexpr std::size_t kMostBytes = 16 << 20;

  // Of the whole program; never destroyed.
  static SpareMemory& instance();

  // `bytes` bytes from a page boundary, contents undefined; null when the system has none.
  std::byte* take(std::size_t bytes);
  // Takes back what take(bytes) gave; to the kernel where enough is kept already.
  void give(std::byte* data, std::size_t bytes);
  std::size_t kept() const;

 private:
  struct Piece {
    std::byte* data;
    std::size_t bytes;  // whole pages
  };
  Piece nearest(std::size_t bytes);

  mutable std::mutex mutex_;
  std::vector<Piece> pieces_;
  std::size_t kept_ = 0;
};

}  // namespace ggufmill
