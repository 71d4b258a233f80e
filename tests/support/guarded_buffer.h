#pragma once
// Memory with a page on either side that no one may touch: a kernel that reads or writes past its bounds is stopped by
// the processor, in every build.

#include <cstddef>
#include <span>

namespace ggufmill {

class GuardedBuffer {
 public:
  // Which guard page the bytes lie against. At the end their address has the alignment of their size.
  enum class Side { kFront, kEnd };

  // `size` bytes, at least 1, all 0xa5; `gap` bytes (less than a page) lie between them and the guard page. Throws
  // std::system_error.
  GuardedBuffer(std::size_t size, Side side, std::size_t gap = 0);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::span<std::byte> bytes() { return bytes_; }
  // Every byte to `value`.
  void fill(std::byte value);
  void copy_from(std::span<const std::byte> source);

 private:
  void* mapping_;
  std::size_t mapped_;
  std::span<std::byte> bytes_;
};

}  // namespace ggufmill
