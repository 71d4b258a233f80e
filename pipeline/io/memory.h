#pragma once
// Memory for slabs: a byte budget, buffers, and a cache of freed buffers.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// A budget of bytes, shared by all owners of buffers. Acquiring never blocks. Thread-safe.
class Budget {
 public:
  explicit Budget(std::uint64_t bytes) : bytes_(bytes) {}

  bool try_acquire(std::uint64_t bytes);  // false: not available now, nothing is acquired
  void release(std::uint64_t bytes);      // at most what was acquired
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t in_use() const;
  std::uint64_t peak() const;  // maximum of in_use() so far

 private:
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> in_use_{0};
  std::atomic<std::uint64_t> peak_{0};
};

// Page-aligned memory. The destructor returns it to the system, except for a few MiB in total (SpareMemory), so that
// resident memory follows the budget. Movable; a moved-from buffer is empty.
class Buffer {
 public:
  Buffer() = default;
  // The contents are undefined; throws std::bad_alloc if the system is out of memory. The buffer starts `phase` bytes
  // into a page and shares none of its pages with other data.
  explicit Buffer(std::size_t bytes, std::size_t phase = 0);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // Same, but returns an error (exit code 75: memory may be available later) instead of throwing.
  static Result<Buffer> allocate(std::size_t bytes, std::size_t phase = 0);

  std::span<std::byte> span() const { return {data_, bytes_}; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t phase_ = 0;
};

// Keeps a few MiB of freed buffers for reuse: getting new pages from the kernel takes longer than copying as many
// bytes. Thread-safe.
class SpareMemory {
 public:
  // Fits into the memory that a run may use in addition to its budget; enough for the few slabs that a run frees before
  // it allocates the next.
  static constexpr std::size_t kMaxBytes = 16 << 20;

  // Returns the instance of the whole program; never destroyed.
  static SpareMemory& instance();

  // Returns `bytes` bytes starting at a page boundary, contents undefined; null if the system is out of memory.
  std::byte* take(std::size_t bytes);
  // Takes back memory obtained with take(bytes); returns it to the kernel if enough is cached already.
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
