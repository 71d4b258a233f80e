#pragma once
// Sends what was written to the disk while the writer goes on.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "pipeline/core/io_mode.h"

namespace ggufmill {

// Of one output file. Thread-safe. All of it is advice: what the kernel does not do now, the fsync at the end does.
class WriteBehind {
 public:
  explicit WriteBehind(IoMode mode) : mode_(mode) {}

  // `bytes` at `offset` are in the page cache. Their way to the disk begins; unless the mode is kCached, those written
  // kBehind bytes before are waited for and dropped from the cache.
  void wrote(int descriptor, std::uint64_t offset, std::size_t bytes);
  // Drops what is left, after an fsync.
  void drop_all(int descriptor);

 private:
  // Enough for a disk to work on while more is written.
  static constexpr std::size_t kBehind = 32 << 20;

  struct Range {
    std::uint64_t offset;
    std::size_t bytes;
  };
  bool take_oldest(Range& range, std::size_t most_kept);

  const IoMode mode_;
  std::mutex mutex_;
  std::deque<Range> ranges_;  // in the cache, oldest first
  std::size_t bytes_ = 0;     // of all
};

}  // namespace ggufmill
