#pragma once
// Batches: many sources, each with its own outputs, processed in order.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/run.h"
#include "pipeline/config/job.h"
#include "pipeline/core/error.h"
#include "pipeline/io/output_target.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

class Context;

enum class CellState {
  kWritten,
  kUnchanged,  // it already existed and matches its manifest
  kFailed,
  kNotRun,  // the batch ended first
};
std::string_view name_of(CellState state);  // for example "written"

// One output of one source.
struct BatchCell {
  std::string source, output;  // paths; `output` is the first file's, empty if unknown
  std::string recipe{};        // empty: none
  CellState state = CellState::kNotRun;
  std::optional<Error> error{};  // set if kFailed
  std::uint64_t bytes = 0;       // total size of its files
  std::uint64_t weights = 0, tensor_bytes = 0;
  double seconds = 0;  // duration of the run that wrote it, possibly together with others
};

struct BatchReport {
  std::vector<BatchCell> cells;  // ordered by source, then output
  double seconds = 0;
  std::vector<std::string> warnings;  // from the runs
  std::optional<Error> unreported;    // set if the batch's report could not be written

  std::size_t count(CellState state) const;
};

struct BatchOptions {
  RunOptions run{};        // for each source's run; progress is ignored
  bool fail_fast = false;  // start nothing more after a failure
  // Optional; called for each job before it is planned, to apply command-line options and measurements. An error fails
  // all outputs of the job.
  std::function<Status(const std::string& source, Job& job)> adjust{};
  // Called when the run for source `index` of `count` starts. Not called for sources with nothing left to do.
  std::function<void(const std::string& source, std::size_t index, std::size_t count)> begun{};
  std::function<void(const Plan& plan, const Progress& now)> progress{};  // as RunOptions::progress
  // Called when a cell has reached its final state.
  std::function<void(const BatchCell& cell)> ended{};
};

// Runs every job, then writes the report that the batch requests, replacing that of an earlier run. Unchanged outputs
// are skipped; outputs that cannot be made are reported and skipped; the remaining outputs of a source are written in a
// single pass over it. An interrupted run of a job is resumed. Errors are returned in the report: only `stop` and, with
// fail_fast, the first failure end a batch early.
BatchReport run_batch(const Context& context, const Batch& batch, const BatchOptions& options);

// The work to be done for one source of a batch.
struct SourcePlan {
  std::vector<BatchCell> cells;  // all its outputs: kUnchanged, kFailed, or kNotRun if still to be written
  std::optional<Plan> plan;      // covers the kNotRun outputs; none if there are no such outputs
};
// Returns what run_batch() would do for this source, without doing it. Uses only run.overwrite and adjust of `options`.
SourcePlan plan_source(const Context& context, const BatchJob& job, const BatchOptions& options);

// Returns the errors of the failed cells, one per cause, each listing the outputs and sources it affects.
std::vector<Error> failures_of(const std::vector<BatchCell>& cells);

// Returns the errors individually, each with a note that it concerns `source` of a batch; no note if `source` is empty.
std::vector<Error> of_source(const std::vector<Error>& errors, const std::string& source);

// Returns the outputs of a plan as cells in state kNotRun.
std::vector<BatchCell> cells_of(const Plan& plan, const std::string& source);

// Return the report as JSON and as a self-contained HTML page. The JSON is {format: "ggufmill batch", version: 1,
// ggufmill, seconds, written, unchanged, failed, not_run, cells: [{source, output, recipe, state, bytes, weights,
// bits_per_weight, seconds, error}]}.
std::string batch_json(const BatchReport& report);
std::string batch_html(const BatchReport& report);
// The files that the jobs of a batch read and write.
struct BatchFiles {
  std::vector<std::string> read;
  std::vector<WrittenPath> written;
  void add(const Plan& plan);
};
// Writes the report in each format for which a path is given, replacing an earlier report. Fails with exit code 2 if a
// path is one of `files`.
Status write_batch_report(const BatchReport& report, const ReportRequest& wanted, const BatchFiles& files);

}  // namespace ggufmill
