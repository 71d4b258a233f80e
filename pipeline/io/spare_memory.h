#pragma once
// Memory of buffers that are gone, kept for the next.

#include <cstddef>
#include <mutex>
#include <vector>

namespace ggufmill {

// Keeps a few MiB of it for the buffers that come: getting new pages from the kernel costs more time than copying as
// many bytes. Thread-safe.
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
