#pragma once
// Takes measurements for size targets, with messages on stderr.

#include <string>

#include "pipeline/api/measurement_file.h"

namespace ggufmill {

// Calls measure_to() with an estimate of the time, progress, notes and warnings on stderr, until a signal arrives.
Result<Measurement> measure_showing_progress(const Context& context, const Job& job, MeasuringOptions options,
                                             bool quiet);

enum class IfUnmeasured {
  kLeave,            // leave the job unchanged
  kMeasure,          // measure
  kMeasureNewFiles,  // measure if no output exists yet
};
// Gives the targets of a job that have no measurement that from the cache. If it is not complete, `if_unmeasured`
// determines what happens; before measuring, everything that can be learned from headers is checked, and an estimate of
// the time is printed. Returns a note about what the cache contains; empty if the job needs no measurement.
Result<std::string> take_measurement(const Context& context, Job& job, IfUnmeasured if_unmeasured, bool quiet);

// Removes from a plan's problems those that `run` solves first, by measuring or by computing the importance, and prints
// them as notes.
void print_what_run_solves(std::vector<Error>& problems);

}  // namespace ggufmill
