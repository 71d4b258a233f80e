#pragma once
// Memory for slabs.

#include <cstddef>
#include <span>

#include "pipeline/core/error.h"

namespace ggufmill {

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

}  // namespace ggufmill
