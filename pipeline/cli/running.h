#pragma once
// Executes plans; shared by `run` and `quantize`.

#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"

namespace ggufmill {

// Adds --engine, --io-engine, --quiet, --no-resume, --discard, --report, --errors and --profile.
void add_run_options(boost::program_options::options_description& options);

// Prints one line per tensor that shows how it is converted.
void print_tensors(const PlannedOutput& output);

// Runs the plan with progress on stderr and prints a summary of the outputs; with --discard, removes the leftover files
// of earlier runs instead. Returns the exit code.
int execute(const Planned& planned, const boost::program_options::variables_map& values, bool overwrite);

// Runs all jobs of a batch in order. Unchanged outputs are skipped, and failures are printed at the end. Returns the
// exit code of the first failure.
int execute_batch(const Loaded& loaded, const boost::program_options::variables_map& values, bool overwrite);

// Runs the jobs of a pipeline file with steps, one after the other, up to the first that fails. Returns its exit code.
int execute_steps(const Loaded& loaded, const boost::program_options::variables_map& values, bool overwrite);
// Prints the steps of a job as a table, with those that are done.
Status print_steps(const Context& context, const BatchJob& job);

// Prints one line with the result for an output of a batch.
void print_cell(const BatchCell& cell);
// Prints the failures, combining outputs that failed for the same reason. Returns the exit code of the first.
int print_failures(const std::vector<BatchCell>& cells);
// Prints the failures of a batch, including that of its report, and the counts. Returns the exit code.
int finish_batch(const BatchReport& report, bool quiet);

}  // namespace ggufmill
