#pragma once
// Runs a plan: the plain loop (reference) or the flow graph. Both write the same bytes.

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/io_mode.h"
#include "pipeline/io/io.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/target_measure.h"

namespace ggufmill {

class Profile;

enum class EngineKind { kGraph, kSimple };

struct Progress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  const std::string* tensor = nullptr;        // finished last
  std::span<const std::uint64_t> file_bytes;  // written of each file, in the order of outputs and their files
};

struct RunOptions {
  EngineKind engine = EngineKind::kGraph;
  IoKind io = IoKind::kAuto;
  bool overwrite = false;
  const std::atomic<bool>* stop = nullptr;  // set by a signal handler: the run ends with kInterrupted, nothing is left
  std::function<void(const Progress&)> progress;  // from one thread at a time, not more often than every 50 ms
  std::uint64_t shuffle_seed = 0;                 // not 0: slabs in a random order (tests)
  std::uint64_t slab_bytes = 0;                   // 0: chosen from the budget
  Profile* profile = nullptr;                     // outlives the run; the trace names the plan's tensors
};

struct RunReport {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t peak_budget = 0;  // most bytes acquired at once
  double seconds = 0;
  IoMode io_mode = IoMode::kCached;
  std::string io;  // "io_uring" or "threads"; "blocking" of the plain loop
  unsigned threads = 0;
  std::vector<std::string> warnings;               // what was asked for and not had, a line each
  std::vector<std::vector<TargetResult>> targets;  // of the targets of each route; empty: no report was asked for
};

// Writes all outputs of the plan or none of those not yet sealed. Thread-safe for distinct outputs.
Result<RunReport> run_plan(const Plan& plan, const Kernels& kernels, const RunOptions& options);

}  // namespace ggufmill
