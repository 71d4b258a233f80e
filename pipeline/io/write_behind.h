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

  // `bytes` at `offset` are in the page cache. Once kAtOnce have come together their way to the disk begins; unless the
  // mode is kCached, those written kBehind bytes before are waited for and dropped from the cache.
  void wrote(int descriptor, std::uint64_t offset, std::size_t bytes);
  // Drops what is left, after an fsync.
  void drop_all(int descriptor);

 private:
  // Enough for a disk to work on while more is written.
  static constexpr std::size_t kBehind = 32 << 20;
  // Small writes one by one would become small requests.
  static constexpr std::size_t kAtOnce = 2 << 20;

  struct Range {
    std::uint64_t offset = 0, end = 0;
    std::size_t written = 0;  // bytes of it; writes come nearly in order, so that there are few gaps
  };
  bool gather(const Range& range, Range& full);
  bool take_oldest(Range& range, std::size_t most_kept);

  const IoMode mode_;
  std::mutex mutex_;
  Range gathered_;            // not yet on its way
  std::deque<Range> ranges_;  // on their way, oldest first
  std::size_t bytes_ = 0;     // of all
};

}  // namespace ggufmill
