#pragma once
// Takes measurements for size targets, with messages.

#include <string>

#include "pipeline/api/measurement_file.h"
#include "pipeline/api/operations/jobs.h"

namespace ggufmill {

// Calls measure_to() with the progress, notes and warnings of the call, and an estimate of the time.
Result<Measurement> measure_with_notes(const Context& context, const Job& job, MeasuringOptions options,
                                       const Call& call);

// Gives the targets of a job that have no measurement that from the cache. If it is not complete, `if_unmeasured`
// determines what happens; before measuring, everything that can be learned from headers is checked. Returns a note
// about what the cache contains; empty if the job needs no measurement.
Result<std::string> take_measurement(const Context& context, Job& job, IfUnmeasured if_unmeasured, const Call& call);

// Returns a plan's problems without those that `run` solves first, by measuring or by computing the importance, which
// become notes and are added to `solved`.
std::vector<Error> without_what_run_solves(std::vector<Error> problems, const Call& call,
                                           std::vector<Error>* solved = nullptr);

}  // namespace ggufmill
