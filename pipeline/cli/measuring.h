#pragma once
// Takes measurements for size targets and manages the file next to the pipeline file that stores them.

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "pipeline/api/ggufmill.h"

namespace ggufmill {

// Returns the default path of a job's measurement, for example "job.measured.json" for job.yaml. `measure` writes it;
// plan, check and run read it for targets that name no measurement.
std::string measurement_path(const Job& job);
// Returns the default path for one source of a matrix, for example "job.Llama-3-8B.measured.json".
std::string measurement_path(const Job& job, const std::string& source);
// Returns the pipeline file's path with its extension replaced by `ending`.
std::string path_beside(const Job& job, const char* ending);

// Identifies one part of a measurement that is divided into `parts` parts.
struct MeasuredPart {
  std::size_t part = 0, parts = 1;
};
struct MeasuringOptions {
  bool overwrite = false;  // replace an existing file at the path
  bool quiet = false;
  bool begins_anew = false;               // first remove the files of earlier calls
  std::optional<MeasuredPart> part = {};  // measure only this part and keep it for the call that measures everything
};
// Measures, shows progress on stderr and writes `path`. Resumes an earlier interrupted measurement and reuses parts
// measured separately.
Result<Measurement> measure_to(const Context& context, const Job& job, const std::string& path,
                               const MeasuringOptions& options);

// Adds the journals that interrupted or running measurements for `path` have left.
void add_partial_measurements(const std::string& path, Leftovers& leftovers);

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
void say_unmeasured(std::vector<Error>& problems);

}  // namespace ggufmill
