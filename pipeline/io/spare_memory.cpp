#include "pipeline/io/spare_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace ggufmill {
namespace {

// 0 where that overflows, which no system call accepts.
std::size_t whole_pages(std::size_t bytes) {
  static const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

std::byte* or_null(void* mapped) { return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped); }

}  // namespace

SpareMemory& SpareMemory::instance() {
  static SpareMemory* const memory = new SpareMemory;  // buffers may live until the very end of the program
  return *memory;
}

std::byte* SpareMemory::take(std::size_t bytes) {
  bytes = whole_pages(bytes);
  if (const Piece piece = nearest(bytes); piece.data) {
    if (piece.bytes == bytes) return piece.data;
    // Keeps the pages that both have.
    if (std::byte* data = or_null(::mremap(piece.data, piece.bytes, bytes, MREMAP_MAYMOVE))) return data;
    ::munmap(piece.data, piece.bytes);
  }
  return or_null(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

SpareMemory::Piece SpareMemory::nearest(std::size_t bytes) {
  const auto distance = [bytes](const Piece& p) { return p.bytes > bytes ? p.bytes - bytes : bytes - p.bytes; };
  const std::scoped_lock lock(mutex_);
  const auto found = std::min_element(pieces_.begin(), pieces_.end(),
                                      [&](const Piece& a, const Piece& b) { return distance(a) < distance(b); });
  if (found == pieces_.end()) return {nullptr, 0};
  const Piece piece = *found;
  pieces_.erase(found);
  kept_ -= piece.bytes;
  return piece;
}

void SpareMemory::give(std::byte* data, std::size_t bytes) {
  bytes = whole_pages(bytes);
  {
    const std::scoped_lock lock(mutex_);
    if (bytes <= kMostBytes - kept_) {
      pieces_.push_back({data, bytes});
      kept_ += bytes;
      return;
    }
  }
  ::munmap(data, bytes);
}

std::size_t SpareMemory::kept() const {
  const std::scoped_lock lock(mutex_);
  return kept_;
}

}  // namespace ggufmill
