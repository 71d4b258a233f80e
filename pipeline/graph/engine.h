#pragma once
// Runs a plan: the plain loop (reference) or the flow graph. Both write the same bytes.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/io_mode.h"
#include "pipeline/io/io.h"
#include "pipeline/io/ledger.h"
#include "pipeline/io/output_store.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/difference.h"

namespace ggufmill {

class Profile;

enum class EngineKind { kGraph, kSimple };

struct Progress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  const std::string* tensor = nullptr;  // of the unit that was finished last
  // Written of each file, in the order of outputs and their files; and what of that an earlier run wrote.
  std::span<const std::uint64_t> file_bytes, file_bytes_before;
};

// Units [first, last) of a plan.
struct UnitRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

struct RunOptions {
  EngineKind engine = EngineKind::kGraph;
  IoKind io = IoKind::kAuto;
  bool overwrite = false;
  const std::atomic<bool>* stop = nullptr;        // once set, the run ends with kInterrupted and nothing is left of it
  std::function<void(const Progress&)> progress;  // from one thread at a time, not more often than every 50 ms
  // Of Context::run() alone: goes on with what an earlier run of the same plan left, and leaves what it has done when
  // it is ended early, be it killed. Without: begins anew, and an end in order leaves nothing.
  bool resume = true;
  // Of Context::run() alone: told, before anything is written, why what an earlier run left is not gone on with. Empty:
  // it is a warning of the report.
  std::function<void(const std::string& why)> begins_anew;
  // Called when all outputs are whole under their temporary names, before they get their own; an error ends the run.
  std::function<Status(OutputStore&)> when_sealed;
  std::optional<UnitRange> units;  // those to be done; none: all
  Ledger* ledger = nullptr;        // of the units done; outlives the run; null: none
  // Where the outputs go; outlives the run, which opens files of this machine where it is null. With it Context::run()
  // neither looks at the targets nor keeps a journal nor writes manifests and reports.
  OutputStore* store = nullptr;
  bool attach = false;             // goes on with the outputs that an earlier run left
  bool leave = false;              // leaves the outputs unfinished, for a later run to go on with
  std::uint64_t shuffle_seed = 0;  // not 0: slabs in a random order (tests)
  std::uint64_t slab_bytes = 0;    // 0: chosen from the budget
  Profile* profile = nullptr;      // outlives the run; the trace names the plan's tensors
};

// The result of a step.
struct StepResult {
  std::vector<TargetResult> encodings;  // of each, where a report was asked for
  bool same_bytes = true;               // of a comparison: and the same type
  std::optional<ErrorSums> difference;  // likewise; none where a type cannot be decoded
};

struct RunReport {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t peak_budget = 0;  // most bytes acquired at once
  double seconds = 0;
  IoMode io_mode = IoMode::kCached;
  std::string io;  // "io_uring" or "threads"; "blocking" of the plain loop
  unsigned threads = 0;
  std::vector<std::string> warnings;  // what was asked for and could not be had, a line each
  std::vector<StepResult> steps;      // of each step; empty where neither a report was asked for nor anything compared
  std::size_t units_kept = 0;         // of an earlier run
  std::vector<bool> steps_kept;       // rows of a step are of an earlier run, and not in its result; empty: of none
};

// Writes all outputs of the plan or none of those not yet sealed. Thread-safe for distinct outputs. A plan that
// find_problems() finds something wrong with is refused with that. Exit code 4 for a source that changed since the plan
// was made, or during the run.
Result<RunReport> run_plan(const Plan& plan, const Kernels& kernels, const RunOptions& options);

}  // namespace ggufmill
