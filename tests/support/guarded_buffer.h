#pragma once
// Memory with an inaccessible page on either side: the processor stops a kernel that reads or writes out of bounds, in
// every build.

#include <cstddef>
#include <span>

namespace ggufmill {

class GuardedBuffer {
 public:
  // The guard page that the bytes are adjacent to. At the end, the alignment of their address is that of their size.
  enum class Side { kFront, kEnd };

  // Allocates `size` bytes, at least 1, all 0xa5, at a distance of `gap` bytes (less than a page) from the guard page.
  // Throws std::system_error.
  GuardedBuffer(std::size_t size, Side side, std::size_t gap = 0);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::span<std::byte> bytes() { return bytes_; }
  // Sets every byte to `value`.
  void fill(std::byte value);
  void copy_from(std::span<const std::byte> source);

 private:
  void* mapping_;
  std::size_t mapped_;
  std::span<std::byte> bytes_;
};

}  // namespace ggufmill
