#include "pipeline/io/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "pipeline/io/platform/memory.h"

namespace ggufmill {
namespace {

// Returns 0 on overflow, which every system call rejects.
std::size_t whole_pages(std::size_t bytes) {
  const std::size_t page = page_bytes();
  return (bytes + page - 1) / page * page;
}

// Makes room for one more element; returns false if there is not enough memory. Destructors of buffers use this, since
// they must not throw.
template <class T>
bool has_room(std::vector<T>& pieces) try {
  if (pieces.size() == pieces.capacity()) pieces.reserve(2 * pieces.size() + 16);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

bool Budget::try_acquire(std::uint64_t bytes) {
  std::uint64_t used = in_use_.load();
  do {
    if (bytes > bytes_ - used) return false;
  } while (!in_use_.compare_exchange_weak(used, used + bytes));
  std::uint64_t peak = peak_.load();
  while (peak < used + bytes && !peak_.compare_exchange_weak(peak, used + bytes)) {
  }
  return true;
}

void Budget::release(std::uint64_t bytes) { in_use_.fetch_sub(bytes); }

std::uint64_t Budget::in_use() const { return in_use_.load(); }

std::uint64_t Budget::peak() const { return peak_.load(); }

Buffer::Buffer(std::size_t bytes, std::size_t phase) {
  if (bytes == 0) return;
  std::byte* const page = SpareMemory::instance().take(phase + bytes);
  if (!page) throw std::bad_alloc();
  data_ = page + phase;
  bytes_ = bytes;
  phase_ = phase;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), phase_(other.phase_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(bytes_, moved.bytes_);
  std::swap(phase_, moved.phase_);
  return *this;
}

Buffer::~Buffer() {
  if (data_) SpareMemory::instance().give(data_ - phase_, phase_ + bytes_);
}

Result<Buffer> Buffer::allocate(std::size_t bytes, std::size_t phase) {
  try {
    return Buffer(bytes, phase);
  } catch (const std::bad_alloc&) {
    return Error{ExitCode::kTransient, "", fmt::format("cannot allocate a buffer of {} bytes", bytes), "",
                 "lower the memory limit of the pipeline, or run on a machine with more free memory"};
  }
}

SpareMemory& SpareMemory::instance() {
  static SpareMemory* const memory = new SpareMemory;  // buffers may exist until the very end of the program
  return *memory;
}

std::byte* SpareMemory::take(std::size_t bytes) {
  bytes = whole_pages(bytes);
  if (const Piece piece = nearest(bytes); piece.data) {
    if (piece.bytes == bytes) return piece.data;
    if (std::byte* data = resize_pages(piece.data, piece.bytes, bytes)) return data;
    unmap_pages(piece.data, piece.bytes);
  }
  return map_pages(bytes);
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
    if (bytes <= kMaxBytes - kept_ && has_room(pieces_)) {
      pieces_.push_back({data, bytes});
      kept_ += bytes;
      return;
    }
  }
  unmap_pages(data, bytes);
}

std::size_t SpareMemory::kept() const {
  const std::scoped_lock lock(mutex_);
  return kept_;
}

}  // namespace ggufmill
