#include "pipeline/io/write_behind.h"

#include <algorithm>
#include <utility>

#include "pipeline/io/platform/files.h"

namespace ggufmill {

void WriteBehind::wrote(int descriptor, std::uint64_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  Range full;
  if (!gather({offset, offset + bytes, bytes}, full)) return;
  start_writing_back(descriptor, full.offset, full.bytes());
  Range oldest;
  while (mode_ != IoMode::kCached && take_oldest(oldest, kBehind)) {
    finish_writing_back(descriptor, oldest.offset, oldest.bytes());
    drop_from_cache(descriptor, oldest.offset, oldest.bytes());
  }
}

// Adds `range` to the gathered range. Once that is large enough, moves it to `full`, for the caller to flush, and
// returns true.
bool WriteBehind::gather(const Range& range, Range& full) {
  const std::scoped_lock lock(mutex_);
  if (gathered_.written == 0) gathered_ = {range.offset, range.end, 0};
  gathered_.offset = std::min(gathered_.offset, range.offset);
  gathered_.end = std::max(gathered_.end, range.end);
  gathered_.written += range.written;
  if (gathered_.written < kAtOnce) return false;
  full = std::exchange(gathered_, {});
  if (mode_ == IoMode::kCached) return true;
  ranges_.push_back(full);
  bytes_ += full.written;
  return true;
}

bool WriteBehind::take_oldest(Range& range, std::size_t most_kept) {
  const std::scoped_lock lock(mutex_);
  if (ranges_.empty() || bytes_ <= most_kept) return false;
  range = ranges_.front();
  ranges_.pop_front();
  bytes_ -= range.written;
  return true;
}

void WriteBehind::drop_all(int descriptor) {
  Range range;
  while (take_oldest(range, 0)) drop_from_cache(descriptor, range.offset, range.bytes());
  if (mode_ != IoMode::kCached && gathered_.written != 0)
    drop_from_cache(descriptor, gathered_.offset, gathered_.bytes());
}

}  // namespace ggufmill
