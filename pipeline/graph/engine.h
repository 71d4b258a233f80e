#pragma once
// Runs a plan with the plain loop (the reference) or the flow graph. Both write the same bytes.

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

// Returns the version of oneTBB.
std::string engine_library_version();

struct Progress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  const std::string* tensor = nullptr;  // of the unit finished last
  // Bytes written to each file, in the order of outputs and their files, and how many of them an earlier run wrote.
  std::span<const std::uint64_t> file_bytes, file_bytes_before;
};

// The units [first, last) of a plan.
struct UnitRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

struct RunReport;

struct EngineOptions {
  EngineKind engine = EngineKind::kGraph;
  IoKind io = IoKind::kAuto;
  bool overwrite = false;
  const std::atomic<bool>* stop = nullptr;        // when set, ends with kInterrupted; keeps only what `ledger` keeps
  std::function<void(const Progress&)> progress;  // called from one thread at a time, at most every 50 ms
  // Called when all outputs are complete under their temporary names, before they are renamed. An error ends the run.
  // The report contains the results of the steps.
  std::function<Status(OutputStore&, const RunReport&)> when_sealed;
  std::optional<UnitRange> units;  // units to do; none: all
  Ledger* ledger = nullptr;        // records the units done; must outlive the run; null: none
  OutputStore* store = nullptr;    // receives the outputs; must outlive the run; null: the store of the plan's paths
  bool attach = false;             // resume the outputs left by an earlier run
  bool leave = false;              // leave the outputs unfinished, for a later run to resume
  unsigned threads = 0;            // 0: as many as the plan's limits and the CPUs allow (benchmarks: more)
  std::uint64_t shuffle_seed = 0;  // nonzero: process slabs in random order (tests)
  std::uint64_t slab_bytes = 0;    // 0: chosen from the budget
  Profile* profile = nullptr;      // must outlive the run; the trace refers to the plan's tensor names
};

// The results of a step.
struct StepResult {
  std::vector<TargetResult> encodings;  // one per encoding, if a report was requested
  bool same_bytes = true;               // of a comparison: bytes and types are the same
  std::optional<ErrorSums> difference;  // of a comparison; none if a type cannot be decoded
};

struct RunReport {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t peak_budget = 0;  // most bytes acquired at a time
  double seconds = 0;
  IoMode io_mode = IoMode::kCached;
  std::string io;  // "io_uring" or "threads"; "blocking" for the plain loop
  unsigned threads = 0;
  std::vector<std::string> warnings;  // one line for each request that could not be met
  std::vector<StepResult> steps;      // one per step; empty without report and comparison
  std::size_t units_kept = 0;         // units taken over from an earlier run
  std::vector<bool> steps_kept;       // true: an earlier run did some rows, not included in `steps`; empty: none
};

// Writes all outputs of the plan, or none of those not yet sealed. Thread-safe for distinct outputs. Returns the errors
// of find_problems() if there are any. Fails with exit code 4 if a source changed after the plan was made or changes
// during the run.
Result<RunReport> run_plan(const Plan& plan, const Kernels& kernels, const EngineOptions& options);

}  // namespace ggufmill
