#pragma once
// Limits how many writes of a file the system makes at a time. The best number depends on the file system: the kernel
// may lock the file for each write, and then more writers only wait for one another and burn processor time (tmpfs, and
// the page cache of most file systems), or each write may wait for a device or a server, which many of them keep busy
// (direct I/O, network file systems). So the number is found while writing.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "pipeline/io/io_service.h"

namespace ggufmill {

// Finds the least number of writers that a file bears: doubles it as long as the throughput rises by a tenth, halves it
// if that costs less, and looks again from time to time. Not thread-safe.
class WriterCount {
 public:
  static constexpr unsigned kMax = 16;

  unsigned value() const { return value_; }
  // Reports the throughput of value() writers, in bytes per second, measured while others waited.
  void measured(double throughput);
  // Throughput of `writers`, a power of two, as measured lately; 0: never.
  double throughput_of(unsigned writers) const;

 private:
  static constexpr unsigned kLevels = 5;       // 1, 2, 4, 8, 16 writers
  static constexpr double kWorthwhile = 1.1;   // times the throughput for twice as many writers
  static constexpr unsigned kBeforeLook = 64;  // measurements between two looks at a neighbouring number
  static constexpr double kNew = .25;          // weight of a new measurement in a mean

  void try_level(unsigned level);

  unsigned value_ = 1;
  unsigned level_ = 0;     // value_ == 1 << level_
  unsigned settled_ = 0;   // the level to return to
  bool is_trying_ = true;  // level_ is on trial against settled_
  bool looks_up_ = false;  // what the next look tries
  unsigned until_look_ = kBeforeLook;
  double throughput_[kLevels] = {};
};

// The writes of one file. Thread-safe; must outlive its last write.
class WriteGate {
 public:
  // Like io.write(), at once or when one of the writes before it has ended.
  void start(IoService& io, WriteTarget& file, std::uint64_t offset, std::span<const std::byte> from,
             IoService::Completion done);
  // Does `work` in the place of a write once none is active or waits, and lets writes wait meanwhile: work that needs
  // the file's lock, for which other threads would only burn processor time. Blocks. Returns false, without doing it,
  // once cancel() was called.
  bool when_idle(const std::function<void()>& work);
  void cancel();
  // Returns what was measured, such as "2 at a time (1: 2.1 GB/s, 2: 3.0 GB/s, 4: 3.1 GB/s)"; empty if writes never had
  // to wait long enough to tell.
  std::string findings() const;

 private:
  // A sample needs as much as this, so that the length of a single write does not matter.
  static constexpr std::uint64_t kSampleBytes = 32 << 20;

  struct Write {
    IoService* io;
    WriteTarget* file;
    std::uint64_t offset;
    std::span<const std::byte> from;
    std::shared_ptr<IoService::Completion> done;  // outlives a call of io.write() that throws
  };
  void begin(const Write& write);
  void ended(std::uint64_t bytes);
  void start_waiting();
  bool next(Write& write);

  mutable std::mutex mutex_;  // guards the members below
  std::deque<Write> waiting_;
  unsigned active_ = 0;
  std::condition_variable idle_;
  bool is_cancelled_ = false;
  WriterCount count_;
  bool is_sampling_ = false;  // since sample_start_, a write has been waiting all the time
  double sample_start_ = 0;   // seconds
  std::uint64_t sample_bytes_ = 0;
};

}  // namespace ggufmill
