#pragma once
// What the parts of a run share: its files, its first error, whether to go on, and how far it is.

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

// Thread-safe but for finished() and status().
class RunState {
 public:
  // What is done with a slab, in order, for fail(); tile t is kTiles + t.
  static constexpr std::uint64_t kRead = 0, kTiles = 1, kWrite = std::numeric_limits<std::uint64_t>::max();

  // `done`: units of earlier runs, which count as progress.
  RunState(const Plan& plan, const RunOptions& options, Ledger& ledger, const std::vector<bool>& done);

  // Of all errors that of the earliest slab and the earliest thing done with it is kept, and slabs before it are still
  // finished: the flow graph ends with the error that the plain loop meets first.
  void fail(std::uint64_t ordinal, std::uint64_t at, Error error) noexcept;
  // Calls f, which returns a Status or nothing; an error or exception of it becomes the error of the run, and the
  // result false.
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

  // Whether slab `ordinal` need not be worked on, as an earlier one failed or the user stopped the run.
  bool skips(std::uint64_t ordinal) const { return stopped() || ordinal > failed_ordinal_; }
  // Whether it must not be written: as before, or it failed itself.
  bool spoiled(std::uint64_t ordinal) const { return stopped() || ordinal >= failed_ordinal_; }
  bool feeds_no_more() const { return stopped() || failed_ordinal_ != kNone; }
  bool stopped() const { return stop_ && *stop_; }

  // Sums up what was made of a slab, where the ledger wants that. By the thread that has the slab.
  void sum_up(Slab& slab) const;
  // Counts a slab that came to its end, tells the ledger of units that are done, and reports progress. One thread at a
  // time.
  void finished(const Slab& slab);
  // After the last slab: the error that the run ends with, if any.
  Status status();

  std::size_t units_done() const { return units_done_; }
  // Of this run alone.
  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes_written() const {
    return std::accumulate(file_bytes_.begin(), file_bytes_.end(), std::uint64_t{0});
  }
  // Of each file of all outputs, in order, written by this run.
  const std::vector<std::uint64_t>& file_bytes() const { return file_bytes_; }
  // The place of a file among all of them.
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
  std::map<std::size_t, UnitUnderWay> units_;  // those that are begun
  std::size_t units_done_ = 0;
  std::vector<std::size_t> first_file_;  // of each output: index into file_bytes_
  std::uint64_t bytes_read_ = 0;
  std::vector<std::uint64_t> file_bytes_;  // written of each file of all outputs
  std::vector<std::uint64_t> progress_of_files_, before_of_files_;
};

// The sources that a plan reads, opened.
class RunSources {
 public:
  // Exit code 4 for one that is not what was planned with. For `stop` see ByteSource::open().
  static Result<std::unique_ptr<RunSources>> open(const Plan& plan, IoMode mode, const std::atomic<bool>* stop);

  const ByteSource& of(const SourceFile& source) const { return *sources_.at(&source); }
  // The same for a read: past the page cache only where that harms nothing beside it.
  const ByteSource& of(const SlabRead& read) const {
    return read.owns_pages || cached_.empty() ? of(*read.source) : *cached_.at(read.source);
  }
  // Whether nothing has written to them; exit code 4.
  Status check_unchanged() const;

 private:
  std::map<const SourceFile*, std::shared_ptr<const ByteSource>> sources_;
  std::map<const SourceFile*, std::shared_ptr<const ByteSource>> cached_;  // with direct I/O: the same without it
};

// One run, as the engines see it.
struct Run {
  const Plan& plan;
  const std::vector<BoundStep>& steps;
  const Kernels& kernels;
  const RunSources& sources;
  OutputStore& store;
  Feed& feed;
  Budget& budget;
  RunState& state;
  unsigned threads;
  Profile* profile;  // null: not wanted
};

// Read, convert and write every slab of the feed. Errors go to run.state. Both return when nothing is under way any
// more.

// The specification: one slab after the other, blocking I/O, the calling thread alone.
void run_plain(Run& run);

// The flow graph: reads ahead, conversions on run.threads threads, writes behind.
void run_flow(Run& run, IoService& io);

}  // namespace ggufmill
