#pragma once
// A budget of bytes, shared by everything that holds buffers.

#include <atomic>
#include <cstdint>

namespace ggufmill {

// Acquire never blocks. Thread-safe.
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

}  // namespace ggufmill
