#pragma once
// From a plan to its outputs: what `run`, `quantize` and `convert` share.

#include "pipeline/cli/planning.h"

namespace ggufmill {

// --engine, --io-engine and --quiet; --no-resume and --discard; --report and --errors; --profile.
void add_run_options(boost::program_options::options_description& options);

// A file that a run has left, in a line: which, and whose it is.
std::string describe(const Leftover& file);

// Prints what is done with each tensor, one line each.
void say_tensors(const PlannedOutput& output);

// Runs the plan with progress on stderr, and says what was written; or, with --discard, removes what earlier runs have
// left. Returns the exit code.
int execute(const Planned& planned, const boost::program_options::variables_map& values, bool overwrite);

// The same for all jobs of a batch, one after the other: what is unchanged is left out, and what fails is told at the
// end; the exit code is that of the first failure.
int execute_batch(const Loaded& loaded, const boost::program_options::variables_map& values, bool overwrite);

// A line on what became of an output of a batch.
void say_cell(const BatchCell& cell);
// Says what failed, outputs that failed for one reason together. The exit code of the first.
int say_failures(const std::vector<BatchCell>& cells);
// The end of a batch: failures, among them of its report, and counts. The exit code.
int finish_batch(const BatchReport& report, bool quiet);

}  // namespace ggufmill
