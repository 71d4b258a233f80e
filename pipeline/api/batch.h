#pragma once
// Batches: many sources, each with its outputs, one after the other.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/config/job.h"
#include "pipeline/core/error.h"
#include "pipeline/graph/engine.h"
#include "pipeline/io/output_target.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

class Context;

enum class CellState {
  kWritten,
  kUnchanged,  // it was there already, as its manifest says
  kFailed,
  kNotRun,  // the batch ended before
};
std::string_view name_of(CellState state);  // "written"

// An output of a source.
struct BatchCell {
  std::string source, output;  // paths; that of an output's first file, empty where it is not known
  std::string recipe;          // empty: none
  CellState state = CellState::kNotRun;
  std::optional<Error> error;  // kFailed
  std::uint64_t bytes = 0;     // of its files
  std::uint64_t weights = 0, tensor_bytes = 0;
  double seconds = 0;  // of the run that wrote it, which may have written others too
};

struct BatchReport {
  std::vector<BatchCell> cells;  // in the order of sources and outputs
  double seconds = 0;
  std::vector<std::string> warnings;  // of runs
  std::optional<Error> unreported;    // the batch's report could not be written

  std::size_t count(CellState state) const;
};

struct BatchOptions {
  RunOptions run{};        // of each source's run; progress and when_sealed are not used
  bool fail_fast = false;  // nothing is begun after a failure
  // Of each job, where given, before it is planned: options of the command line, measurements. An error fails all of
  // its outputs.
  std::function<Status(const std::string& source, Job& job)> adjust{};
  // When the run for source `index` of `count` is begun: it has something left to do.
  std::function<void(const std::string& source, std::size_t index, std::size_t count)> begun{};
  std::function<void(const Plan& plan, const Progress& now)> progress{};  // as RunOptions::progress
  // When nothing more is done for a cell, whatever came of it.
  std::function<void(const BatchCell& cell)> ended{};
};

// Runs every job, and then writes the report that the batch asks for, over that of an earlier run: what is unchanged is
// left out, what cannot be made is told and left out, the rest is one read of the source. What an earlier run of a job
// has left is gone on with. Errors are in the report: nothing ends a batch but `stop` and, where asked for, the first
// failure.
BatchReport run_batch(const Context& context, const Batch& batch, const BatchOptions& options);

// What there is to do for one source of a batch.
struct SourcePlan {
  std::vector<BatchCell> cells;  // of all its outputs: kUnchanged, kFailed, or kNotRun, which are to be written
  std::optional<Plan> plan;      // of those that are to be written; none where there are none
};
// What run_batch() would run for this source, without running it. Of `options` it uses run.overwrite and adjust.
SourcePlan plan_source(const Context& context, const BatchJob& job, const BatchOptions& options);

// The errors of cells that failed, one per cause, with the outputs and sources that it is for.
std::vector<Error> failures_of(const std::vector<BatchCell>& cells);

// The outputs of a plan, as kNotRun.
std::vector<BatchCell> cells_of(const Plan& plan, const std::string& source);

// The report as data, and as a page that needs no other file: {format: "ggufmill batch", version: 1, ggufmill, seconds,
// written, unchanged, failed, not_run, cells: [{source, output, recipe, state, bytes, weights, bits_per_weight,
// seconds, error}]}.
std::string batch_json(const BatchReport& report);
std::string batch_html(const BatchReport& report);
// What the jobs of a batch read and write.
struct BatchFiles {
  std::vector<std::string> read;
  std::vector<WrittenPath> written;
  void add(const Plan& plan);
};
// In the forms that have a path, over an earlier report. Exit code 2 where that is one of `files`.
Status write_batch_report(const BatchReport& report, const ReportRequest& wanted, const BatchFiles& files);

}  // namespace ggufmill
