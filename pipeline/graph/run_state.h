#pragma once
// What the steps of a run share: its first error, whether to go on, and how far it is.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/graph/engine.h"
#include "pipeline/graph/flight.h"

namespace ggufmill {

// What an exception of a library comes to: 75 when it ran out of memory, else an internal error.
Error unexpected(const std::exception& exception);

// Thread-safe but for finished() and status().
class RunState {
 public:
  // Steps of a slab in their order, for fail(); tile t is step kTiles + t.
  static constexpr std::uint64_t kRead = 0, kTiles = 1, kWrite = std::numeric_limits<std::uint64_t>::max();

  RunState(const Plan& plan, const RunOptions& options);

  // Of all errors that of the earliest slab and step is kept, and slabs before it are still finished: the flow graph
  // ends with the error that the plain loop meets first.
  void fail(std::uint64_t ordinal, std::uint64_t step, Error error);

  // Whether slab `ordinal` need not be worked on, as an earlier one failed or the user stopped the run.
  bool skips(std::uint64_t ordinal) const { return stopped() || ordinal > failed_ordinal_; }
  // Whether it must not be written: as before, or it failed itself.
  bool spoiled(std::uint64_t ordinal) const { return stopped() || ordinal >= failed_ordinal_; }
  bool feeds_no_more() const { return stopped() || failed_ordinal_ != kNone; }
  bool stopped() const { return stop_ && *stop_; }

  // Counts a flight that came to its end, and reports progress. One thread at a time.
  void finished(const Flight& flight);
  // After the last slab: the error that the run ends with, if any.
  Status status();

  std::uint64_t bytes_read() const { return progress_.bytes_read; }
  std::uint64_t bytes_written() const { return progress_.bytes_written; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  void finished(const Leg& leg);
  void report(bool at_once);

  const std::atomic<bool>* stop_;
  const std::function<void(const Progress&)>& report_;
  std::atomic<std::uint64_t> failed_ordinal_{kNone};
  std::mutex mutex_;
  std::pair<std::uint64_t, std::uint64_t> failed_at_{kNone, kNone};  // ordinal and step; guarded by mutex_
  std::optional<Error> error_;                                       // guarded by mutex_
  Progress progress_;
  Clock::time_point reported_;
  const Plan& plan_;
  std::vector<std::uint64_t> bytes_left_;  // of each route
  std::vector<std::size_t> first_file_;    // of each output: index into file_bytes_
  std::vector<std::uint64_t> file_bytes_;  // written of each file of all outputs
};

}  // namespace ggufmill
