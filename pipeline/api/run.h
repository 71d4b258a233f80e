#pragma once
// Runs plans: checks, resumes and reports what the engine does.

#include <atomic>
#include <functional>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/graph/engine.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Options of Context::run().
struct RunOptions {
  EngineKind engine = EngineKind::kGraph;
  IoKind io = IoKind::kAuto;
  bool overwrite = false;
  const std::atomic<bool>* stop = nullptr;          // when set, ends with kInterrupted
  std::function<void(const Progress&)> progress{};  // called from one thread at a time, at most every 50 ms
  // If set, resumes an earlier run of the same plan and, if interrupted or even killed, keeps the work done. If not
  // set, starts over, and an orderly end leaves nothing behind.
  bool resume = true;
  // Receives, before anything is written, the reason why an earlier run is not resumed. Empty: the reason becomes a
  // warning of the report.
  std::function<void(const std::string& why)> starts_over{};
  Profile* profile = nullptr;  // must outlive the run; the trace refers to the plan's tensor names
};

EngineOptions engine_options(const RunOptions& options);

// Context::run(), with an engine that also has the options of `engine` that are missing from RunOptions. For tests.
Result<RunReport> run_resumably(const Plan& plan, const Kernels& kernels, const RunOptions& options,
                                EngineOptions engine);

// Writes the units `engine.units` of a plan into `engine.store`, which is required. Checks neither the targets nor the
// disks, keeps no journal, and writes neither manifests nor reports. For the parts of a cluster job.
Result<RunReport> run_into_store(const Plan& plan, const Kernels& kernels, const EngineOptions& engine);

}  // namespace ggufmill
