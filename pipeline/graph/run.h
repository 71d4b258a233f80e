#pragma once
// State shared by the parts of a run: files, first error, stop request and progress.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/graph/engine.h"
#include "pipeline/graph/slab.h"
#include "pipeline/io/ledger.h"
#include "pipeline/io/output_store.h"

namespace ggufmill {

// Thread-safe except for finished() and status().
class RunState {
 public:
  // The operations on a slab, in order, for fail(); tile t is kTiles + t.
  static constexpr std::uint64_t kRead = 0, kTiles = 1, kWrite = std::numeric_limits<std::uint64_t>::max();

  // `done`: units done by earlier runs, which count as progress.
  RunState(const Plan& plan, const EngineOptions& options, Ledger& ledger, const std::vector<bool>& done);

  // Records an error. Of all errors, the one from the earliest slab and its earliest operation is kept, and slabs
  // before that one are still finished, so the flow graph reports the same error as the plain loop.
  void fail(std::uint64_t ordinal, std::uint64_t at, Error error) noexcept;
  // Calls f, which returns a Status or nothing. An error or exception becomes the error of the run, and the result is
  // false.
  template <class F>
  bool guard(std::uint64_t ordinal, std::uint64_t at, const F& f) noexcept {
    try {
      if constexpr (std::is_void_v<decltype(f())>) {
        f();
      } else {
        const Status status = f();
        if (!status) return fail(ordinal, at, status.error()), false;
      }
      return true;
    } catch (...) {
      fail(ordinal, at, error_of_exception());
      return false;
    }
  }

  // True if slab `ordinal` need not be processed because an earlier one failed or the run was stopped.
  bool skips(std::uint64_t ordinal) const { return stopped() || ordinal > failed_ordinal_; }
  // True if the slab must not be written: as above, or because it failed itself.
  bool spoiled(std::uint64_t ordinal) const { return stopped() || ordinal >= failed_ordinal_; }
  bool feeds_no_more() const { return stopped() || failed_ordinal_ != kNone; }
  bool stopped() const { return stop_ && *stop_; }

  // Computes the checksums of a slab's encoded bytes if the ledger wants them. Called by the thread that owns the slab.
  void sum_up(Slab& slab) const;
  // Counts a finished slab, informs the ledger of completed units and reports progress. Must not be called
  // concurrently.
  void finished(const Slab& slab);
  // Returns the error of the run, if any. To be called after the last slab.
  Status status();

  std::size_t units_done() const { return units_done_; }
  // Bytes read and written by this run only.
  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes_written() const {
    return std::accumulate(file_bytes_.begin(), file_bytes_.end(), std::uint64_t{0});
  }
  // Bytes written by this run to each file of all outputs, in order.
  const std::vector<std::uint64_t>& file_bytes() const { return file_bytes_; }
  // Returns the index of a file among the files of all outputs.
  std::size_t file_of(const Place& place) const { return first_file_[place.output] + place.file; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  void count(const Unit& unit);
  void finished(const SlabPart& part);
  void report(bool at_once);

  const std::atomic<bool>* stop_;
  const std::function<void(const Progress&)>& report_;
  Ledger& ledger_;
  std::atomic<std::uint64_t> failed_ordinal_{kNone};
  std::mutex mutex_;
  std::pair<std::uint64_t, std::uint64_t> failed_at_{kNone, kNone};  // guarded by mutex_
  std::optional<Error> error_;                                       // guarded by mutex_
  Progress progress_;
  Clock::time_point reported_;
  const Plan& plan_;
  struct UnitUnderWay {
    std::uint64_t bytes_left = 0;
    std::vector<std::uint64_t> checksums;
  };
  std::map<std::size_t, UnitUnderWay> units_;  // units started but not completed
  std::size_t units_done_ = 0;
  std::vector<std::size_t> first_file_;  // of each output: index into file_bytes_
  std::uint64_t bytes_read_ = 0;
  std::vector<std::uint64_t> file_bytes_;  // written to each file of all outputs
  std::vector<std::uint64_t> progress_of_files_, before_of_files_;
};

// The opened sources of a plan.
class RunSources {
 public:
  // Fails with exit code 4 if a source differs from the planned one. See ByteSource::open() for `stop`.
  static Result<std::unique_ptr<RunSources>> open(const Plan& plan, IoMode mode, const std::atomic<bool>* stop);

  const ByteSource& of(const SourceFile& source) const { return *sources_.at(&source); }
  // Returns the source for a read. Direct I/O is used only if the read owns its pages and so cannot overwrite other
  // data.
  const ByteSource& of(const SlabRead& read) const {
    return read.owns_pages || cached_.empty() ? of(*read.source) : *cached_.at(read.source);
  }
  // Returns the source for reads that do not own whole pages.
  const ByteSource& cached(const SourceFile& source) const {
    return cached_.empty() ? of(source) : *cached_.at(&source);
  }
  // Fails with exit code 4 if a source was modified.
  Status check_unchanged() const;

 private:
  std::map<const SourceFile*, std::shared_ptr<const ByteSource>> sources_;
  std::map<const SourceFile*, std::shared_ptr<const ByteSource>>
      cached_;  // the same files without direct I/O; empty if that is off
};

// One run, as seen by the engines.
struct Run {
  const Plan& plan;
  const std::vector<BoundStep>& steps;
  const Kernels& kernels;
  const RunSources& sources;
  OutputStore& store;
  Feed& feed;
  Budget& budget;
  Metrics& metrics;
  RunState& state;
  unsigned threads;
  Profile* profile;  // null: not wanted
};

// Acquires budget for a batch, and the metrics that its rows use. Returns false if there is not enough now.
bool acquire(Run& run, const SlabBatch& batch, std::uint64_t ordinal, Metrics::Used& metrics);
// Makes a metric; an error becomes that of the run.
void make_metric(Run& run, const ForEach& for_each, Metric& metric) noexcept;

// Both engines read, convert and write every slab of the feed, report errors to run.state, and return when no slab is
// in flight.

// The specification: one slab at a time, with blocking I/O, on the calling thread only.
void run_plain(Run& run);

// The flow graph: reads ahead, converts on run.threads threads, and writes behind.
void run_flow(Run& run, IoService& io);

}  // namespace ggufmill
