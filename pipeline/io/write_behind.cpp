#include "pipeline/io/write_behind.h"

#include <fcntl.h>

namespace ggufmill {
namespace {

constexpr unsigned kWholly = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

void send(int descriptor, std::uint64_t offset, std::size_t bytes, unsigned how) {
  ::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes), how);
}

// Only clean pages can be dropped.
void drop(int descriptor, std::uint64_t offset, std::size_t bytes) {
  ::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

}  // namespace

void WriteBehind::wrote(int descriptor, std::uint64_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  send(descriptor, offset, bytes, SYNC_FILE_RANGE_WRITE);
  if (mode_ == IoMode::kCached) return;
  {
    const std::scoped_lock lock(mutex_);
    ranges_.push_back({offset, bytes});
    bytes_ += bytes;
  }
  Range oldest{};
  while (take_oldest(oldest, kBehind)) {
    send(descriptor, oldest.offset, oldest.bytes, kWholly);
    drop(descriptor, oldest.offset, oldest.bytes);
  }
}

bool WriteBehind::take_oldest(Range& range, std::size_t most_kept) {
  const std::scoped_lock lock(mutex_);
  if (ranges_.empty() || bytes_ <= most_kept) return false;
  range = ranges_.front();
  ranges_.pop_front();
  bytes_ -= range.bytes;
  return true;
}

void WriteBehind::drop_all(int descriptor) {
  Range range{};
  while (take_oldest(range, 0)) drop(descriptor, range.offset, range.bytes);
}

}  // namespace ggufmill
