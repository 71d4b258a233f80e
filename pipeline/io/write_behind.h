#pragma once
// Flushes written data to the disk in the background while writing continues.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "pipeline/core/io_mode.h"

namespace ggufmill {

// State for one output file. Thread-safe. All calls are hints: anything that the kernel does not flush now is flushed
// by the final fsync.
class WriteBehind {
 public:
  explicit WriteBehind(IoMode mode) : mode_(mode) {}

  // Records that `bytes` at `offset` are in the page cache. Once kAtOnce bytes have accumulated, writeback is started
  // for them; unless the mode is kCached, bytes written kBehind bytes earlier are waited for and dropped from the
  // cache.
  void wrote(int descriptor, std::uint64_t offset, std::size_t bytes);
  // Drops the remaining pages; called after an fsync.
  void drop_all(int descriptor);

 private:
  // Enough to keep a disk busy while more is written.
  static constexpr std::size_t kBehind = 32 << 20;
  // Flushing small writes individually would cause small requests.
  static constexpr std::size_t kAtOnce = 2 << 20;

  struct Range {
    std::uint64_t offset = 0, end = 0;
    std::size_t written = 0;  // bytes written; writes are nearly in order, so there are few gaps
    std::uint64_t bytes() const { return end - offset; }
  };
  bool gather(const Range& range, Range& full);
  bool take_oldest(Range& range, std::size_t most_kept);

  const IoMode mode_;
  std::mutex mutex_;
  Range gathered_;            // writeback not started yet
  std::deque<Range> ranges_;  // writeback started, oldest first
  std::size_t bytes_ = 0;     // total of `ranges_`
};

}  // namespace ggufmill
