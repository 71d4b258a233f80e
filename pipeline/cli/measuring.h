#pragma once
// Takes measurements for size targets, with messages on stderr.

#include <string>

#include "pipeline/api/measurement_file.h"

namespace ggufmill {

// Calls measure_to() with progress, notes and warnings on stderr, until a signal arrives.
Result<Measurement> measure_showing_progress(const Context& context, const Job& job, const std::string& path,
                                             MeasuringOptions options, bool quiet);

enum class IfUnmeasured {
  kLeave,            // leave the job unchanged
  kMeasure,          // measure
  kMeasureNewFiles,  // measure if no output exists yet
};
// Assigns the measurement at `path` to those targets of the job that name none. If it is missing or was made for a
// different source, importance or candidates, `if_unmeasured` determines what happens. Before measuring, checks
// everything that can be learned from headers and prints an estimate of the time needed.
Status take_measurement(const Context& context, Job& job, const std::string& path, IfUnmeasured if_unmeasured,
                        bool quiet);

// Returns true if the size of the output is known, that is, none of its targets needs a measurement.
bool is_measured(const PlannedOutput& output);
// Removes from a plan's problems those that a measurement would solve, and prints them as notes.
void print_unmeasured(std::vector<Error>& problems);

}  // namespace ggufmill
